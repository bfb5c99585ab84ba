"""The command line itself: help, usage, exit codes, and how it starts and ends."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from command_support import ERROR, Run, misfits

from pegboard.cli.command_line import GROUPS, SUMMARIES, app
from pegboard.ports import AuditKind

COMMANDS = [
    "load", "unload",
    "init", "check", "doctor", "serve", "console", "tools", "search", "surface", "explain", "loadouts", "call", "audit",
    "bill", "stats", "eval", "schema", "secret set", "secret list", "secret delete",
    "session load", "session unload", "session fallback", "session end-turn", "session show", "session list",
    "session forget", "session delete", "permissions show", "permissions set",
]  # fmt: skip
PEGBOARD = [sys.executable, "-m", "pegboard"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(run: Run, command: str) -> None:
    ran = run(*command.split(), "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: pegboard {command}")
    assert f"Example: pegboard {command}" in ran.out


def test_the_command_alone_lists_every_command_under_what_it_is_for(run: Run) -> None:
    ran = run()
    assert ran.code == 0
    for heading, commands in GROUPS.items():
        listed = ran.out.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split(None, 1) for line in listed] == [list(row) for row in commands.items()]
    assert {command.split()[0] for command in COMMANDS} <= SUMMARIES.keys()


def helps() -> Iterator[tuple[str, Any]]:
    """Yield every command and every group with its name."""
    group: Any = typer.main.get_command(app)
    for name in SUMMARIES:
        command = group.get_command(None, name)
        yield name, command
        yield from ((f"{name} {part}", one) for part, one in getattr(command, "commands", {}).items())


@pytest.mark.parametrize("columns", [40, 80])
def test_help_fits_a_narrow_terminal_and_names_values_by_what_they_are(
    run: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """No type of Python, no bracket twice, nothing cut, no colour; an example is one line, so that it can be copied."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for name, command in helps():
        text = run(*name.split(), "--help").out
        assert not re.search(r"<[a-z]|\[\[|\w\.\.\.(?!\S)|\x1b", text.replace("}...", "").replace("]...", "")), text
        assert max(len(line) for line in text.splitlines() if "Example: " not in line) <= columns, text
        assert (command.help or "").endswith("."), name
        assert "\n" not in (command.help or ""), name
        assert f"Example: pegboard {name}" in text


def test_a_command_is_listed_with_the_first_line_of_its_own_help() -> None:
    group: Any = typer.main.get_command(app)
    assert {name: group.get_command(None, name).help.partition("\n")[0] for name in SUMMARIES} == SUMMARIES


def test_the_version_is_that_of_the_package_with_the_commit_of_the_checkout(run: Run) -> None:
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    shown = rf"pegboard {re.escape(version('pegboard-slim'))} \({commit}(-dirty)?\)\n"
    assert re.fullmatch(shown, run("--version").out)


def test_help_and_version_import_neither_mcp_nor_pydantic() -> None:
    code = "import sys; from pegboard.cli import main; main([sys.argv[1]]); print(*sys.modules, file=sys.stderr)"
    for option in ("--help", "--version"):
        ran = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True, check=True)
        loaded = {name.partition(".")[0] for name in ran.stderr.split()}
        assert loaded.isdisjoint({"mcp", "pydantic", "rich", "sqlite3", "uvicorn", "yaml"})


def test_the_kinds_of_audit_records_are_those_that_are_written(run: Run) -> None:
    """X4: help lists them, and another one is refused."""
    assert ", ".join(get_args(AuditKind)) in " ".join(run("audit", "--help").out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["surfac"], "Did you mean 'surface'?"),
        (["surface", "--jsno"], "Did you mean --json?"),
        (["session"], "Missing command"),
        (["session", "lod"], "Did you mean 'load'"),
        (["explain"], "Missing argument 'TOOL'"),
        (["session", "load"], "Missing argument 'NAME'"),
        (["session", "delete"], "Missing option '--session'"),
        (["permissions", "set", "notes", "maybe"], "'maybe' is not one of"),
        (["session", "load", "notes", "--keep", "forever"], "'forever' is not one of"),
        (["serve", "--port", "many"], "Invalid value for '--port'"),
        (["audit", "--limit", "0"], "greater than or equal to 1"),
        (["audit", "--kind", "loads"], "'loads' is not one of 'load', 'unload', 'evict'"),
    ],
)
def test_a_command_that_cannot_be_understood_says_so_in_one_line_and_exits_2(
    run: Run, arguments: list[str], message: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert "--help'" in ran.err


def test_a_usage_error_is_one_json_document_where_json_is_asked_for(run: Run) -> None:
    ran = run("surface", "--jsno", "--json")
    assert (ran.code, ran.err) == (2, "")
    assert misfits(ran.json, ERROR) == []
    assert ran.json["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "command",
    [
        ["surface"], ["search", "x"], ["explain", "x"], ["call", "x"], ["session", "show"], ["session", "load", "x"],
        ["session", "delete", "--session", "s"], ["permissions", "set", "x", "true"],
    ],
)  # fmt: skip
def test_without_a_default_agent_one_must_be_named(run: Run, project: Path, command: list[str]) -> None:
    ran = run(*command)
    assert (ran.code, ran.out) == (2, "")
    assert "--agent: assistant, opener" in ran.err


def test_an_unknown_agent_is_refused_with_the_nearest_one(run: Run, project: Path) -> None:
    ran = run("surface", "--agent", "asistant", "--json")
    assert (ran.code, ran.err) == (3, "")
    assert misfits(ran.json, ERROR) == []
    assert ran.json["error"]["code"] == "unknown_agent"
    assert "assistant" in ran.json["error"]["hint"]
    for command in (["surface"], ["tools"], ["permissions", "show"]):
        assert "There is no agent 'zzz'. There are: assistant, " in run(*command, "--agent", "zzz").err


def test_an_empty_session_is_refused(run: Run, project: Path) -> None:
    assert run("surface", "--agent", "assistant", "--session", " ").code == 2


@pytest.mark.parametrize("option", ["--session", "--principal"])
def test_g1_a_session_and_a_principal_have_the_limits_of_the_gateway(run: Run, project: Path, option: str) -> None:
    """G1: no one stores under a name that a client could not give."""
    arguments = ("session", "show", "--agent", "assistant", option)
    assert run(*arguments, "x" * 512).code == 0
    for text, message in (("x" * 513, "has 513 characters; at most 512"), ("x\udc80", "is not valid Unicode")):
        ran = run(*arguments, text, "--json")
        assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
        assert f"{option} {message}" in ran.json["error"]["message"]


def test_a_configuration_that_is_missing_is_named(run: Run, folder: Path) -> None:
    ran = run("tools", "--config", "nowhere.yaml")
    assert ran.code == 1
    assert "nowhere.yaml" in ran.err
    assert "does not exist" in ran.err


def test_a_broken_configuration_is_told_with_every_problem_and_its_place(run: Run, folder: Path) -> None:
    (folder / "pegboard.yaml").write_text("agents:\n  a: {allowed_toolkits: [devop]}\n  b: {nonsense: 1}\n")
    told = run("surface", "--agent", "a")
    assert told.code == 1
    assert "pegboard.yaml:2:26" in told.err
    assert "pegboard.yaml:3:7" in told.err
    error = run("surface", "--agent", "a", "--json").json["error"]
    assert (error["code"], error["file"], error["line"], error["column"]) == ("config_invalid", "pegboard.yaml", 2, 26)
    assert len(error["problems"]) == 2


def test_a_store_that_cannot_be_written_is_told_without_a_traceback(run: Run, project: Path) -> None:
    (project / "state").write_text("a file where the folder should be")
    ran = run("surface", "--agent", "assistant")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("pegboard: ")
    assert "state" in ran.err


def test_x5_what_came_from_the_environment_is_masked_in_errors_and_not_in_what_a_tool_returns(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLI_TEST_KEY", "hunter22hunter22")
    config = project / "pegboard.yaml"
    config.write_text(config.read_text() + 'tokens: {ada: {token: "${CLI_TEST_KEY}", agents: [assistant]}}\n')
    answered = run("call", "leak", "--agent", "assistant", "--json")
    assert answered.json["content"] == [{"type": "text", "text": "the key is hunter22hunter22"}]
    refused = run("explain", "hunter22hunter22", "--agent", "assistant")
    assert "hunter22" not in answered.err + refused.out + refused.err


def test_without_a_terminal_tables_have_no_colour_and_keep_whole_lines(run: Run, project: Path) -> None:
    ran = run("permissions", "show", "--agent", "assistant")
    assert "\x1b" not in ran.out
    assert [line for line in ran.out.splitlines() if line.endswith("It is a static tool of agent 'assistant'.")]
    assert [line for line in ran.out.splitlines() if line != line.rstrip()] == []


def test_a_narrow_screen_cuts_descriptions_and_not_names(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "76")
    lines = run("tools").out.splitlines()
    assert max(map(len, lines)) <= 76
    assert [line for line in lines if line.startswith("add_note ") and line.endswith("…")]


def test_a_reader_that_leaves_early_is_no_error(project: Path) -> None:
    process = subprocess.Popen([*PEGBOARD, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=30)


def test_output_in_an_encoding_without_the_characters_is_still_printed(project: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    (project / "notes.py").write_text('def greet() -> str:\n    """Say grüß dich."""\n    return "Grüße"\n')
    ran = subprocess.run(
        [*PEGBOARD, "call", "greet", "--help", "--agent", "assistant"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "Say gr\\xfc\\xdf dich." in ran.stdout


def test_ctrl_c_ends_a_call_with_130_and_without_a_traceback(project: Path) -> None:
    (project / "notes.py").write_text(
        "import asyncio, pathlib\n\n"
        "async def rest() -> str:\n    pathlib.Path('begun').touch()\n    await asyncio.sleep(60)\n    return ''\n"
    )
    process = subprocess.Popen(
        [*PEGBOARD, "call", "rest", "--agent", "assistant"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not (project / "begun").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_schema_prints_the_json_schema_of_a_configuration(run: Run) -> None:
    printed = run("schema").json
    assert {"servers", "plugins", "toolkits", "loadouts", "agents"} <= set(printed["properties"])
