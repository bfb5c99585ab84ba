"""A configuration to serve, and the path that calls take through the gateway."""

import json
from pathlib import Path

import pytest

from sdk_servers import sdk_command

from .clients import ADA, BOB, UPSTREAM

MODULE = '''
"""Notes of a user."""

from pegboard.marks import tool


@tool(read_only=True)
def note_list() -> list[str]:
    """List the notes."""
    return ["milk"]


def note_add(text: str) -> str:
    """Add a note."""
    print("to standard output")
    return f"added {text}"
'''
ECHO = '''
def echo(text: str) -> str:
    """Say it again."""
    return text
'''
CONFIG = """
store: sqlite:///state.db
servers:
  up: {{command: "{command}", args: {args}, description: Echo text and return media}}
plugins:
  talk: {{python: talk_tools}}
  notes: {{python: notes_tools, description: Keep notes}}
agents:
  default: {{tools: [talk], discoverable: ["*"]}}
  other: {{tools: [talk], discoverable: [notes], turn_gap: 150ms}}
"""
TOKENS = f"""
tokens:
  ada: {{token: {ADA}, agents: [default]}}
  bob: {{token: {BOB}, agents: ["*"]}}
"""


@pytest.fixture(autouse=True)
def path_of_calls(monkeypatch: pytest.MonkeyPatch, *, fast_path: bool) -> None:
    """Serve on the fast path, or through the SDK where a test marked `both_paths` runs the second time."""
    monkeypatch.setenv("PEGBOARD_FAST_PATH", "1" if fast_path else "0")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with two plugins, a server and two agents."""
    (tmp_path / "notes_tools.py").write_text(MODULE)
    (tmp_path / "talk_tools.py").write_text(ECHO)
    path = tmp_path / "pegboard.yaml"
    command, *args = sdk_command(UPSTREAM, "stdio")
    path.write_text(CONFIG.format(command=command, args=json.dumps(args)))
    return path


@pytest.fixture
def config_with_tokens(config: Path) -> Path:
    config.write_text(config.read_text() + TOKENS)
    return config
