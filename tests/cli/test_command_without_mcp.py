"""Run the command and the library in an installation without extras: nothing that only MCP needs is there."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pegboard.mcp_extra import PACKAGES

CONFIGURATION = """
servers:
  git: {command: mcp-server-git}
plugins:
  home: {python: home_tools, approve: {bake_bread: always}}
toolkits:
  work: {description: Work with repositories, tools: [git]}
agents:
  default: {discoverable: [home], allowed_toolkits: [work]}
"""
TOOLS = '''
def put_appointment(day: str) -> str:
    """Enter an appointment into the diary."""
    return f"noted for {day}"

def bake_bread(flour: str) -> str:
    """Make a loaf in the oven."""
    return f"baked of {flour}"
'''
LIBRARY = """
import asyncio
from pegboard import Pegboard

async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        session = await board.session(session_id="one")
        print((await session.search("enter an appointment")).results[0].name)
        await session.load("home")
        print(*(await session.surface()).names)
        print((await session.call("put_appointment", {"day": "Monday"})).result.content[0]["text"])
        waits = await session.call("bake_bread", {"flour": "rye"})
        await board.approvals.allow(waits.approval.id, by="grace")
        print((await session.resume(waits.approval.id)).result.content[0]["text"])
        print((await session.load("work")).message)
        print((await session.call("git__git_log", {})).status)

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    (tmp_path / "home_tools.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(CONFIGURATION)
    return tmp_path


@pytest.fixture(scope="module")
def line(plain_python: Path) -> str:
    """Return the line that adds the extra to that installation."""
    program = "from pegboard.support.installed import install_line; print(install_line(extra='mcp'))"
    return ran(Path.home(), plain_python, "-c", program)[1].strip()


def ran(folder: Path, python: Path, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [python, *arguments], cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=90
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def test_the_wheel_alone_brings_nothing_that_only_mcp_needs(folder: Path, plain_python: Path) -> None:
    program = f"from importlib.util import find_spec; print([name for name in {PACKAGES} if find_spec(name)])"
    assert ran(folder, plain_python, "-c", program)[1] == "[]\n"


def test_without_mcp_the_library_works_and_servers_are_unavailable_with_the_reason(
    folder: Path, plain_python: Path, line: str
) -> None:
    """P6: sessions, surfaces, calls, searches and approvals of Python plugins; one line in the log for the servers."""
    status, said, logged = ran(folder, plain_python, "-c", LIBRARY)
    found, names, *lines = said.splitlines()
    assert (status, logged.count(line), logged.count("\n")) == (0, 1, 1)
    assert (found, {"put_appointment", "bake_bread", "load_tools"} - set(names.split())) == ("put_appointment", set())
    appointment, bread, toolkit, tool = lines
    assert (appointment, bread, tool) == ("noted for Monday", "baked of rye", "tool_unavailable")
    assert toolkit.startswith("Toolkit 'work' is not available now: git: ")
    assert toolkit.endswith(f"the extra mcp is missing: mcp is not installed. Run `{line}`.")


@pytest.mark.parametrize("command", [["serve", "--stdio"], ["init", "--install", "cursor"]])
def test_without_mcp_what_needs_it_says_what_to_install_in_one_line(
    folder: Path, plain_python: Path, command: list[str], line: str
) -> None:
    status, said, error = ran(folder, plain_python, "-m", "pegboard", *command)
    what = "pegboard " + " ".join(word for word in command if word not in ("--stdio", "cursor"))
    assert (status, said) == (6, "")
    assert error == f"pegboard: `{what}` needs the extra mcp: mcp is not installed. Run `{line}`.\n"


def test_without_mcp_check_warns_where_the_servers_stand(folder: Path, plain_python: Path, line: str) -> None:
    status, said, _ = ran(folder, plain_python, "-m", "pegboard", "check", "--config", "pegboard.yaml", "--json")
    (problem,) = json.loads(said)["problems"]
    assert (status, problem["code"], problem["severity"]) == (0, "mcp_missing", "warning")
    assert (problem["line"], problem["hint"]) == (3, f"Run `{line}`.")


def test_an_mcp_of_a_framework_that_does_not_fit_counts_as_missing(folder: Path, plain_python: Path, line: str) -> None:
    """Strands and CrewAI bring mcp in versions of their own."""
    for name in PACKAGES:
        (folder / "other" / name).mkdir(parents=True)
        (folder / "other" / name / "__init__.py").touch()
    (folder / "other" / "mcp-1.30.0.dist-info").mkdir()
    env = {"PYTHONPATH": str(folder / "other")}
    status, _, error = ran(folder, plain_python, "-m", "pegboard", "serve", env=env)
    reason = "mcp 1.30.0 is installed, not 2.3 or newer below 3"
    assert (status, error) == (6, f"pegboard: `pegboard serve` needs the extra mcp: {reason}. Run `{line}`.\n")
    assert "noted for Monday\n" in ran(folder, plain_python, "-c", LIBRARY, env=env)[1]
