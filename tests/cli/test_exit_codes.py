"""The exit codes of every command: one table in the code, the same in the documents, and what commands really give."""

import re
import sys
from pathlib import Path
from typing import get_args

import pytest
from command_support import Run, put

from pegboard.cli import person
from pegboard.cli.exit_codes import MEANINGS, OF_CALLS, OF_ERRORS
from pegboard.core.state.call_plans import CallStatus

DOCS = Path(__file__).resolve().parents[2] / "docs"
SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
TOOLS = '''
"""Files."""
from pegboard import tool


def read(name: str) -> str:
    """Read one."""
    raise OSError(f"there is no {name}")


@tool(requires_confirmation=True)
def delete(name: str) -> str:
    """Delete one."""
    return name
'''
CONFIG = f"""
store: sqlite:///state.db
servers:
  plain: {{command: {sys.executable}, args: [{SERVER}]}}
  gone: {{command: no-such-command-anywhere}}
plugins:
  files: {{python: files}}
  more: {{python: more}}
toolkits: {{broken: {{description: Cannot run., tools: [gone]}}}}
agents:
  assistant:
    tools: [files]
    allowed_toolkits: [broken]
    dialect: pegboard
    discoverable: ["*"]
    permissions: {{more: false}}
"""


def test_the_document_has_the_table_of_the_code() -> None:
    text = (DOCS / "command.md").read_text("utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|(.*?)\|(.*?)\|$", text, re.MULTILINE)
    assert {int(code): meaning for code, meaning, _, _ in rows} == MEANINGS
    statuses = {status: int(code) for code, _, found, _ in rows for status in re.findall(r"`(\w+)`", found)}
    errors = {name: int(code) for code, _, _, found in rows for name in re.findall(r"`(\w+)`", found)}
    assert statuses == OF_CALLS
    assert errors == {name: code for name, code in OF_ERRORS.items() if name not in statuses}
    assert all(OF_ERRORS[name] == code for name, code in statuses.items() if name in OF_ERRORS)


def test_every_status_of_a_call_has_an_exit_code_and_every_error_of_the_table_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "errors.md").read_text("utf-8"), re.MULTILINE))
    assert set(OF_CALLS) == set(get_args(CallStatus))
    assert set(OF_ERRORS) <= documented


@pytest.fixture
def here(folder: Path) -> Path:
    """Return a folder with a configuration that has something of each kind."""
    put("files.py", TOOLS)
    put("more.py", "def other() -> str:\n    return ''\n")
    put("bad.yaml", "agents: {a: {nonsense: 1}}\n")
    put("pegboard.yaml", CONFIG)
    return folder


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tools", 0),
        ("check", 0),
        ("call read {}", 2),
        ('call read {"name":"x"}', 1),
        ("call read [", 2),
        ("check --config bad.yaml", 1),
        ("check --config nowhere.yaml", 1),
        ("surface --nonsense", 2),
        ("surface --agent nobody", 3),
        ("call nothing", 3),
        ("call other", 3),
        ("explain nothing", 3),
        ("session load nothing", 3),
        ("session load read nothing", 3),
        ("session unload files", 3),
        ("session delete --session never", 3),
        ("loadouts nothing", 3),
        ("permissions set nothing false", 3),
        ("approvals refuse nothing", 3),
        ("pins accept plain/nothing", 3),
        ("remove nothing --config pegboard.yaml", 3),
        ("init", 3),
        ("init --uninstall cursor", 3),
        ('call delete {"name":"x"}', 4),
        ("permissions set more true", 4),
        ("session load gone", 6),
        ("session load toolkit:broken", 6),
        ("console --no-browser", 6),
        ("doctor gone", 6),
        ("measure gone.json", 6),
    ],
)
def test_a_command_exits_with_the_code_of_what_became_of_it(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int
) -> None:
    """A5, P6: scripts and agents tell refused, a person's and unavailable apart without reading texts."""
    monkeypatch.setattr(person, "TERMINAL", "/dev/nowhere")
    put("gone.json", '{"mcpServers": {"gone": {"command": "no-such-command-anywhere"}}}')
    ran = run(*line.split(" "))
    assert ran.code == code, (ran.out, ran.err)
