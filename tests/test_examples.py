"""Run what is in examples/, from there and with the built wheel alone."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard import Pegboard
from sdk_servers import pegboard_command, program_command

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CONFIGURATIONS = ("assistant.yaml", "data-agents.yaml", "pegboard.yaml", "ten-servers.mcp.json")
SERVED = """
plugins: {clock: {python: pegboard.quickstart.clock}}
toolkits: {times: {label: "Time & dates", tools: [clock]}}
agents: {default: {allowed_toolkits: [times]}}
tokens: {settings: {token: settings-settings-settings, agents: [default], console: true}}
"""
AS_IN_ASYNCIO = """
import ast, asyncio, sys
asyncio.run(eval(compile(sys.argv[1], "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {}))
"""
"""Runs a program whose `await` is at the top level, as in `python -m asyncio`."""
WITHOUT_AGNO = "from importlib.util import find_spec; print(find_spec('agno') is None)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the examples, so that no state is left beside them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")))


def run(folder: Path, python: Path | str, *arguments: str) -> str:
    ran = subprocess.run([str(python), *arguments], cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stdout + ran.stderr
    return ran.stdout


@contextmanager
def started(folder: Path, *arguments: str, **env: str) -> Iterator[str]:
    """Run something that serves until the test is done with it; yields the address that it prints."""
    with subprocess.Popen(
        arguments, cwd=folder, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            yield next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        finally:
            process.terminate()


def checked(folder: Path, python: Path | str, name: str, *options: str) -> Any:
    command = pegboard_command() if python == sys.executable else [str(python), "-m", "pegboard"]
    return json.loads(run(folder, *command, "check", "--config", name, "--json", *options))


def test_the_examples_for_those_who_come_from_elsewhere_can_be_pasted_into_an_interpreter(folder: Path) -> None:
    """As `python -m asyncio` reads them before Python 3.13: an empty line ends a block."""
    document = (EXAMPLES.parent / "docs" / "coming-from.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    pasted = "\n".join(f"{block}\nprint('end of', 'block')\n" for block in blocks)
    ran = subprocess.run(
        [sys.executable, "-m", "asyncio"],
        cwd=folder,
        input=pasted,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.stdout.count("end of block") == len(blocks)
    assert "Error" not in ran.stderr, ran.stderr


def test_every_recipe_stands_in_its_document_and_can_be_read() -> None:
    """Their clients are not installed here: each is only compiled, and what it is served with is checked."""
    document, folder = (EXAMPLES.parent / "docs" / "recipes.md").read_text("utf-8"), EXAMPLES / "recipes"
    named = set(re.findall(r"examples/recipes/([\w.]+)", document))
    assert named == {path.name for path in folder.iterdir() if path.is_file()}
    for path in folder.glob("*.py"):
        compile(path.read_text("utf-8"), path.name, "exec")
    for path in folder.glob("*.mjs"):
        subprocess.run(["node", "--check", path], check=True, timeout=60)
    assert checked(folder, sys.executable, "pegboard.yaml", "--strict")["ok"] is True


def test_every_example_is_in_the_list_and_no_other() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    listed = re.findall(r"^\| `(.+?)` \|", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(files)
    assert {name for name in files if not name.endswith(".py")} == set(CONFIGURATIONS)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_passes_check(folder: Path, name: str) -> None:
    document = checked(folder, sys.executable, name)
    assert [problem for problem in document["problems"] if problem["severity"] == "error"] == []
    assert document["ok"]


def test_the_full_example_has_no_warning_but_of_what_writes_by_code(folder: Path) -> None:
    problems = checked(folder, sys.executable, "pegboard.yaml")["problems"]
    assert {problem["code"] for problem in problems} == {"unconfined"}


@pytest.mark.parametrize("name", ["assistant.yaml", "data-agents.yaml"])
def test_names_of_plugins_are_known_without_the_packages_that_provide_them(
    folder: Path, plain_python: Path, name: str
) -> None:
    "T3, P6: `check` passes with and without Agno; a load then says the exact install line."
    assert run(folder, sys.executable, "-c", WITHOUT_AGNO) == "False\n"
    assert run(folder, plain_python, "-c", WITHOUT_AGNO) == "True\n"
    assert checked(folder, plain_python, name)["ok"]
    call = ["-m", "pegboard", "session", "load", "devops", "--agent", "assistant", "--config", name, "--json"]
    refused = subprocess.run([plain_python, *call], cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    item = json.loads(refused.stdout)["items"][0]
    assert (refused.returncode, item["status"]) == (6, "tool_unavailable")
    assert "pegboard-slim[agno]" in item["message"]


def test_the_library_example_runs_with_the_wheel_alone_as_with_all_extras(folder: Path, plain_python: Path) -> None:
    said = run(folder, plain_python, "library.py")
    assert "The mean is 5." in said
    assert "Three times that is 15." in said
    assert said.endswith("numbers is loaded; 6 * 7 = 42\n")
    assert run(folder, sys.executable, "library.py") == said


def test_the_host_with_loadouts_in_code_runs(folder: Path) -> None:
    """L9, L8, P8: what it registers is used, a child has what its kind makes active, a specialist its own tools."""
    assert run(folder, *program_command("loadouts.py")).splitlines() == [
        "lead: file, git | clock: ok",
        "task: file",
        "delegate: timekeeper, with clock: the time is done",
    ]


def test_the_agent_of_the_readme_runs_as_a_file_with_the_wheel_alone(tmp_path: Path, plain_python: Path) -> None:
    readme = (EXAMPLES.parent / "README.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    (tmp_path / "agent.py").write_text(found[1])
    assert run(tmp_path, plain_python, "agent.py") == "('search_tools', 'load_tools', 'unload_tools')\n42\n"


async def test_the_plugin_of_the_full_example_has_two_tools_and_a_guard(folder: Path) -> None:
    "T10: the guard sees the principal and the arguments, and nothing has run where it refuses."
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        session = await board.session(agent="helper", session_id="s", principal="ada")
        refused = await session.call("add_note", {"text": "my password"})
        assert (refused.status, refused.message) == (
            "refused",
            "add_note was refused by its guard: ada may not note passwords",
        )
        added = await session.call("add_note", {"text": "tea"})
        assert added.result.content[0]["text"] == "There are 3 notes now."


def test_the_members_of_a_team_analyse_data_each_with_tools_of_its_own(folder: Path) -> None:
    said = run(folder, sys.executable, "agno_team.py")
    assert "assistant called load_tools, create_pandas_dataframe, run_dataframe_operation" in said
    assert "mean   4.000000" in said


def test_a_loop_of_messages_loads_falls_back_forgets_what_idles_and_restarts(folder: Path) -> None:
    "S7, S8, D4: five idle turns stay, six go; a fallback is for one turn; heads of requests are equal byte for byte."
    said = run(folder, *program_command("anthropic_loop.py")).splitlines()
    turns = {line.partition(":")[0]: line for line in said if line.startswith("Turn")}
    assert "no_such_tool not found" in said[0]
    assert "summarize_numbers" in turns["Turn 3"]
    assert "summarize_numbers" not in turns["Turn 4"]
    assert ["calculate" in turns[f"Turn {number}"] for number in (6, 7, 8)] == [True, True, False]
    assert said[-1] == "heads of requests: 1"


def test_a_switch_at_the_console_binds_a_loop_in_another_process(folder: Path) -> None:
    """P4, T6: the tool, its policy and its calls go and come back with it."""
    assert run(folder, *program_command("responses_loop.py")).splitlines() == [
        "True: offered True, policy True, result pushed: a fix",
        "False: offered False, policy False, result Error: Tool 'github_commit_push' was not found.",
        "True: offered True, policy True, result pushed: a fix",
    ]


def test_a_two_eras_serves_clients_of_both_eras(folder: Path) -> None:
    said = run(folder, sys.executable, "two_eras.py")
    assert said.count("can load data") == said.count("mean   4.000000") == said.count("  success") == 2
    assert said.count("will be removed on the next request") == 2


def test_the_examples_of_agents_are_short() -> None:
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    most = {"library.py": 1000, "responses_loop.py": 80}
    assert {name: lines for name, lines in lengths.items() if lines >= most.get(name, 60)} == {}


def test_the_flip_of_a_switch_binds_the_next_call(folder: Path) -> None:
    """SJ18, P4, T6: the panel of an operator, and a session that runs meanwhile."""
    lines = run(folder, *program_command("operator_switches.py")).splitlines()
    assert [line for line in lines if line.startswith("→")] == ["→ ok ", "→ not_found ", "→ ok "]
    assert (
        "[ ] Self-evolution: The toolkit 'self_evolution_toolkit' is switched off at run time for agent 'sea'." in lines
    )


def test_a_package_of_ones_own_brings_plugins_and_a_toolkit(folder: Path) -> None:
    """T3, T11: at the first try, with what its entry points name."""
    assert run(folder, *program_command("own_package.py")).splitlines() == [
        "polite: Be polite to many",
        "Toolkit 'polite' is loaded; call it from the next step on, not in the same batch.",
        "Hello, Ada.",
        "42",
    ]


def test_an_application_has_the_switches_of_an_agent_in_its_own_settings_page(folder: Path) -> None:
    """T6, P4: listed, thrown after a look at what that would change, and the audit trail has the application's name."""
    (folder / "served.yaml").write_text(SERVED)
    serve = pegboard_command("serve", "--config", "served.yaml", "--port", "0")
    env = {"PEGBOARD_TOKEN": "settings-settings-settings", "PORT": "0"}
    with (
        started(folder, *serve) as gateway,
        started(folder, sys.executable, "settings_page.py", "default", PEGBOARD_URL=gateway, **env) as page,
        httpx2.Client(base_url=page, timeout=60, follow_redirects=True) as browser,
    ):
        first = browser.get("/").text
        assert "<li>Time &amp; dates is on. Toolkit &#x27;times&#x27; is allowed." in first
        (change,) = map(unescape, re.findall(r"<a href='(/change\?name=\S*times&amp;value=false)'", first))
        assert "Lost: add_time, " in browser.get(change).text
        assert "Time &amp; dates is off." in browser.post(change).text
    said = run(folder, *pegboard_command("audit", "--config", "served.yaml", "--json"))
    assert [(line["subject"], line["by"]) for line in json.loads(said)] == [("times", "settings")]
