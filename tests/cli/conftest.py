"""A folder with a configuration, two plugins written in Python and a real store; and the command in it."""

from pathlib import Path

import pytest
from command_support import Ran, Run

from acceptance import accept_found
from pegboard.cli import main
from terminals import Terminal

NOTES = '''
"""Notes."""
import os


def add_note(text: str) -> str:
    """Add a note. It is kept."""
    return f"added {text}"


def list_notes() -> dict[str, list[str]]:
    """List every note."""
    return {"notes": ["one", "two"]}


def leak() -> str:
    """Say the secret."""
    return "the key is " + os.environ["CLI_TEST_KEY"]
'''
PADS = '''
"""Pads."""


def pad(text: str, width: int = 10) -> str:
    """Pad a text on the left."""
    return text.rjust(width)


def broken(reason: str) -> str:
    """Fail in any case."""
    raise RuntimeError(reason)
'''
CONFIG = """\
store: sqlite:///state/pegboard.db
plugins:
  notes: {python: notes, category: Memory}
  pads: {python: pads}
toolkits:
  writing:
    description: Write and pad texts
    tools: [pads]
agents:
  assistant:
    dialect: pegboard
    tools: [notes]
    allowed_toolkits: [writing]
    permissions: {broken: false}
  opener:
    discoverable: ["*"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which has nothing in it yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user-config"))
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def own_folders_apart(folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own folders out of the current one, so that something confined may write that (A7)."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path_factory.mktemp("own")))


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder, which lies in the current one."""
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    return home


@pytest.fixture
def project(folder: Path) -> Path:
    """Return the current folder with two agents in it, which its user has accepted."""
    (folder / "notes.py").write_text(NOTES)
    (folder / "pads.py").write_text(PADS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    accept_found(folder)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], terminal: Terminal) -> Run:
    def run(*arguments: str) -> Ran:
        accept_found()
        code = main(list(arguments))
        written = capsys.readouterr()
        assert "Traceback" not in written.out + written.err
        return Ran(code=code, out=written.out, err=written.err)

    return run
