"""`search: {transformer: true}` through the command and the library, with and without the packages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard

TEXT = """\
search:
  transformer: {on}
plugins:
  home: {{python: home_tools}}
"""
TOOLS = '''
def put_appointment(day: str) -> str:
    """Enter an appointment into the diary."""
    return ""

def bake_bread(flour: str) -> str:
    """Make a loaf in the oven."""
    return ""
'''
INSTALL = "pip install 'pegboard[transformer]'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "home_tools.py").write_text(TOOLS)
    write(tmp_path, on="true")
    return tmp_path


def write(folder: Path, *, on: str) -> None:
    (folder / "pegboard.yaml").write_text(TEXT.format(on=on))


def ran(folder: Path, *arguments: str, python: Path | str = sys.executable) -> tuple[int, Any, str]:
    command = [str(python), "-m", "pegboard", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def score(folder: Path) -> float:
    _, document, _ = ran(folder, "search", "schedule a meeting")
    return next(result["score"] for result in document["results"] if result["name"] == "put_appointment")


def test_a_search_of_the_command_goes_by_the_transformer(folder: Path) -> None:
    write(folder, on="false")
    assert ran(folder, "search", "schedule a meeting")[2] == ""
    without = score(folder) if ran(folder, "search", "schedule a meeting")[1]["results"] else 0
    assert not list(folder.rglob("vectors-1.db"))
    write(folder, on="true")
    assert score(folder) > without
    assert list(folder.rglob("vectors-1.db"))
    assert score(folder) > without


def test_check_accepts_it_where_the_packages_are_installed(folder: Path) -> None:
    assert ran(folder, "check")[1] == {"ok": True, "problems": []}


def test_without_the_packages_check_says_where_and_what_to_install(folder: Path, plain_python: Path) -> None:
    status, document, _ = ran(folder, "check", python=plain_python)
    (problem,) = document["problems"]
    assert (status, problem["code"], problem["severity"]) == (1, "transformer_missing", "error")
    assert (problem["line"], problem["path"]) == (2, "search.transformer")
    assert problem["hint"] == f"Run {INSTALL}."


def test_without_the_packages_a_search_warns_once_and_goes_on(folder: Path, plain_python: Path) -> None:
    status, document, said = ran(folder, "search", "enter an appointment", "loaf", python=plain_python)
    assert [result["name"] for result in document["results"]] == ["put_appointment", "bake_bread"]
    assert (status, said.count(INSTALL), said.count("\n")) == (0, 1, 1)


async def test_the_library_takes_the_switch_up_with_an_edit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, on="false")
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        session = await board.session(session_id="one")
        await session.search("schedule a meeting")
        assert "onnxruntime" not in sys.modules or board.transformer_reading is None
        write(folder, on="true")
        assert await board.reload() == []
        await session.search("schedule a meeting")
        read = board.transformer_reading
        assert read is None or read[1] >= 2


IMPORTED = """
import asyncio, sys
from pegboard import Pegboard
async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        session = await board.session(session_id="one")
        if len(sys.argv) > 1:
            await session.search("schedule a meeting")
            while board.transformer_reading:
                await asyncio.sleep(0)
    print("onnxruntime" in sys.modules)
asyncio.run(main())
"""


@pytest.mark.parametrize(("on", "arguments", "imported"), [
    ("true", [], "False"), ("false", ["search"], "False"), ("true", ["search"], "True"),
])  # fmt: skip
def test_its_packages_are_imported_by_a_search_and_only_where_it_is_on(
    folder: Path, on: str, arguments: list[str], imported: str
) -> None:
    write(folder, on=on)
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], cwd=folder, capture_output=True, text=True, timeout=90, check=True
    )
    assert (done.stdout, done.stderr) == (f"{imported}\n", "")
