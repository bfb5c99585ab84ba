import importlib.resources
import os
import subprocess

import pytest
import yaml

from pegboard.core.model.specs import PythonSpec
from pegboard.core.model.tools import CallResult
from pegboard.ports import CallContext
from pegboard.sources.python import PythonSource

CONFIG = yaml.safe_load(importlib.resources.files("pegboard.quickstart").joinpath("quickstart.yaml").read_text("utf-8"))
PLUGINS = {name: PythonSpec(name=name, target=plugin["python"]) for name, plugin in CONFIG["plugins"].items()}


class Quickstart:
    """Every tool of the quickstart by its name."""

    def __init__(self) -> None:
        self.source = PythonSource()

    async def tools(self) -> dict:
        found = {}
        for spec in PLUGINS.values():
            for tool in (await self.source.describe(spec, {})).tools:
                assert tool.name not in found, f"two tools are named {tool.name}"
                found[tool.name] = tool
        return found

    async def answer(self, name: str, **arguments) -> CallResult:
        tool = (await self.tools())[name]
        return await self.source.call(PLUGINS[tool.plugin], {}, tool, arguments, CallContext())

    async def __call__(self, name: str, **arguments) -> str:
        result = await self.answer(name, **arguments)
        assert not result.is_error, result.content
        return result.content[0]["text"]

    async def refusal(self, name: str, **arguments) -> str:
        result = await self.answer(name, **arguments)
        assert result.is_error, result.content
        return result.content[0]["text"]


@pytest.fixture
def quickstart(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("hidden")
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (folder / "src" / "main.py").write_text("def main():\n    return 'Hello'\n")
    (folder / "picture.bin").write_bytes(b"\x00\x01")
    (folder / "escape").symlink_to(tmp_path)
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "x.js").write_text("Hello")
    monkeypatch.chdir(folder)
    return Quickstart()


async def test_every_tool_is_read_only_and_described(quickstart):
    tools = await quickstart.tools()
    assert len(tools) >= 20
    assert len({tool.plugin for tool in tools.values()}) == 5
    for tool in tools.values():
        assert tool.read_only, tool.name
        assert tool.description.endswith("."), tool.name
        assert "\n" not in tool.description, tool.name
        assert tool.input_schema["type"] == "object"


async def test_the_agent_has_every_plugin_static_or_in_a_toolkit():
    agent = CONFIG["agents"]["default"]
    members = [name for toolkit in agent["allowed_toolkits"] for name in CONFIG["toolkits"][toolkit]["tools"]]
    assert sorted(agent["tools"] + members) == sorted(CONFIG["plugins"])


async def test_files_are_listed_found_and_read(quickstart):
    listed = (await quickstart("list_files")).split("\n")
    assert sorted(listed) == ["escape (link)", "node_modules/", "notes.txt (14)", "picture.bin (2)", "src/"]
    assert "  main.py (31)" in (await quickstart("list_tree")).split("\n")
    assert await quickstart("find_files", pattern="*.py") == "src/main.py"
    assert await quickstart("find_files", pattern="src/**/*.py") == "src/main.py"
    assert (
        await quickstart("read_file", path="notes.txt", first=2, count=1) == "two\n[1 more lines; go on with first=3]"
    )
    info = await quickstart.answer("file_info", path="notes.txt")
    assert (info.structured["lines"], info.structured["bytes"]) == (3, 14)


async def test_nothing_outside_the_current_folder_is_read(quickstart):
    paths = ("../secret.txt", "escape/secret.txt", "/etc/passwd", "src/../../secret.txt")
    for tool in ("read_file", "file_info", "count_words", "git_blame"):
        for path in paths:
            assert "outside of the current folder" in await quickstart.refusal(tool, path=path), (tool, path)


async def test_long_answers_are_cut_with_a_way_to_go_on(quickstart, tmp_path):
    (tmp_path / "here" / "long.txt").write_text("\n".join(f"line {n}" for n in range(1000)))
    text = await quickstart("read_file", path="long.txt", count=5000)
    assert text.endswith("[800 more lines; go on with first=201]")
    (tmp_path / "here" / "wide.txt").write_text("x" * 500_000)
    assert len(await quickstart("read_file", path="wide.txt")) < 20_500
    assert "binary" in await quickstart.refusal("read_file", path="picture.bin")


async def test_text_is_searched_with_context_and_within_bounds(quickstart):
    assert await quickstart("search_text", query="hello") == "src/main.py:2:     return 'Hello'"
    assert (await quickstart("search_text", query="t.o", regex=True, context=1)).split("\n") == [
        "notes.txt:1- one",
        "notes.txt:2: two",
        "notes.txt:3- three",
        "--",
    ]
    assert await quickstart("search_text", query="absent") == "Nothing matches 'absent'."
    assert "not a regular expression" in await quickstart.refusal("search_text", query="(", regex=True)
    assert "repeats" in await quickstart.refusal("search_text", query="(a+)+$", regex=True)
    counted = await quickstart.answer("count_words", path="notes.txt")
    assert counted.structured == {"lines": 3, "words": 3, "characters": 14, "different_words": 3}
    assert "+def main():" in await quickstart("compare_files", first="notes.txt", second="src/main.py")


def git(*arguments: str) -> None:
    identity = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "a@example.org"}
    identity |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "a@example.org"}
    subprocess.run(["git", *arguments], check=True, capture_output=True, env={**os.environ, **identity})


async def test_git_history_is_read_and_never_changed(quickstart, tmp_path):
    here = tmp_path / "here"
    assert await quickstart.refusal("git_log") == "RuntimeError: the current folder is not in a git repository."
    git("init", "-b", "main")
    assert "no commits yet" in await quickstart.refusal("git_log")
    git("add", "notes.txt")
    git("commit", "-m", "Write notes")
    (here / "notes.txt").write_text("one\n2\nthree\n")
    assert "Ada: Write notes" in await quickstart("git_log")
    assert "notes.txt" in await quickstart("git_status")
    assert "+2" in await quickstart("git_diff")
    assert "Write notes" in await quickstart("git_show")
    assert "Ada" in await quickstart("git_blame", path="notes.txt", first=1, count=1)
    assert "* main" in await quickstart("git_branches")
    for bad in ("--output=x", "HEAD:../secret.txt", "a b"):
        assert "not a revision" in await quickstart.refusal("git_show", revision=bad)
    assert not (here / "x").exists()


async def test_a_repository_cannot_make_git_run_programs(quickstart, tmp_path):
    here = tmp_path / "here"
    (here / "run.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (here / "run.sh").chmod(0o755)
    git("init", "-b", "main")
    git("add", "notes.txt")
    git("commit", "-m", "x")
    (here / ".gitattributes").write_text("* diff=evil filter=evil\n")
    (here / "notes.txt").write_text("changed\n")
    for key in (
        "core.fsmonitor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.process",
    ):
        git("config", key, str(here / "run.sh"))
    for tool in ("git_status", "git_diff", "git_show", "git_log"):
        await quickstart(tool)
    await quickstart("git_blame", path="notes.txt")
    assert not (tmp_path / "ran").exists()


async def test_times_are_told_converted_and_compared(quickstart):
    assert "UTC" in await quickstart("current_time")
    assert await quickstart("convert_time", moment="2025-03-01T09:30", zone="Europe/Paris", to="Asia/Tokyo") == (
        "2025-03-01T17:30:00+09:00 (Saturday, JST)"
    )
    gap = await quickstart.answer("time_between", start="2025-01-01", end="2025-01-02T12:00")
    assert (gap.structured["days"], gap.structured["seconds"]) == (1.5, 129600.0)
    assert (await quickstart("add_time", moment="2025-01-31", days=1)).startswith("2025-02-01")
    assert "not a time zone" in await quickstart.refusal("current_time", zone="Nowhere")
    assert "not an ISO date" in await quickstart.refusal("convert_time", moment="tomorrow", to="UTC")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("sqrt(16) ^ 2", "16.0"),
        ("-7 // 2", "-4"),
        ("round(pi, 2)", "3.14"),
        ("max(1, 2.5)", "2.5"),
    ],
)
async def test_arithmetic_is_worked_out(quickstart, expression, value):
    assert await quickstart("calculate", expression=expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "9 ** 9 ** 9",
        "10 ** 400",
        "'a' * 9",
        "(1).real",
        "1 / 0",
        "sqrt(-1)",
        "2 +",
        "(-8) ** 0.5",
        "[1]",
    ],
)
async def test_anything_but_bounded_arithmetic_is_refused(quickstart, expression):
    assert (await quickstart.refusal("calculate", expression=expression)).startswith("ValueError: ")


async def test_units_and_numbers(quickstart):
    assert float(await quickstart("convert_unit", value=1, unit="mi", to="km")) == pytest.approx(1.609344)
    assert float(await quickstart("convert_unit", value=100, unit="C", to="F")) == pytest.approx(212)
    assert "cannot convert" in await quickstart.refusal("convert_unit", value=1, unit="kg", to="km")
    summary = (await quickstart.answer("summarize_numbers", numbers=[1, 2, 3, 10])).structured
    assert (summary["mean"], summary["median"]) == (4.0, 2.5)


def test_the_quickstart_is_ordinary_plugin_code():
    import ast

    for file in importlib.resources.files("pegboard.quickstart").iterdir():
        if file.name.endswith(".py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                module = getattr(node, "module", None) or ""
                known = ("pegboard.marks", "pegboard.quickstart._bounds")
                assert not module.startswith("pegboard") or module in known, f"{file.name} imports {module}"
