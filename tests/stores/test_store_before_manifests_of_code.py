"""What was stored before plugins of this process had manifests is there, and counts as before (G8, X1)."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from pegboard import Pegboard
from pegboard.cli import main

FIXTURE = Path(__file__).parent.parent / "fixtures" / "at_4303325"
PRINTED = json.loads((FIXTURE / "printed.json").read_text())

Print = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder: that of a user, whose server does not run."""
    folder = tmp_path / "project"
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__", "server.py"))
    (folder / ".pegboard").mkdir()
    store = folder / ".pegboard" / "pegboard.db"
    (folder / "pegboard.db").rename(store)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE approvals SET expires_at = 1e11 WHERE expires_at IS NOT NULL")
    monkeypatch.chdir(folder)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return folder


@pytest.fixture
def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Print:
    """Return what runs the command and gives the document that it prints."""

    def printed(*words: str) -> Any:
        ended = main([*words, "--json"])
        written = capsys.readouterr()
        assert "Traceback" not in written.out + written.err
        assert ended == 0, written
        return json.loads(written.out)

    return printed


@pytest.mark.parametrize("before", PRINTED["sessions"], ids=lambda of: f"{of['agent']}/{of['session']}")
def test_leases_are_as_they_were(printed: Print, before: dict[str, Any]) -> None:
    """S2, S3: those of a module, of a server and of a toolkit of Agno, of whose tools nothing was stored."""
    where = ("--agent", before["agent"], "--session", before["session"], "--principal", before["principal"])
    now = printed("session", "show", *where)
    assert now["leases"] == before["leases"]
    assert [name for name in now["loaded"] if name in before["loaded"]] == before["loaded"]


def test_switches_and_approvals_are_as_they_were(printed: Print) -> None:
    """P2, A3: what waits, was allowed once or always, and was refused."""
    assert printed("permissions", "show") == PRINTED["permissions"]
    unchanged = ("id", "tool", "status", "lasts", "arguments", "by", "principal", "agent", "session")
    now = [{key: one[key] for key in unchanged} for one in printed("approvals", "list", "--all")]
    assert now == [{key: one[key] for key in unchanged} for one in PRINTED["approvals"]]


async def test_switches_and_approvals_bind_as_before(folder: Path) -> None:
    """P4, A2: one that was given once runs one call, one for always runs on, a refused one runs none."""
    async with Pegboard.open() as board:
        ada = await board.session(agent="assistant", session_id="thread", principal="ada")
        assert (await ada.call("roll_many", {"count": 2})).status == "ok"
        assert (await ada.call("add_note", {"text": "milk"})).status == "ok"
        assert (await ada.call("add_note", {"text": "milk"})).status == "needs_approval"
        assert (await ada.call("add_note", {"text": "tea"})).status == "refused"
        assert (await ada.call("multiply", {"a": 6, "b": 7})).status == "ok"
        bob = await board.session(agent="helper", session_id="room", principal="bob")
        assert (await bob.call("add_note", {"text": "salt"})).status == "ok"
        assert (await bob.call("add_note", {"text": "salt"})).status == "ok"
        assert (await bob.call("up__look", {"page": "a"})).status == "not_found"


def test_the_tools_of_the_server_are_known_as_before_and_those_of_others_from_now_on(printed: Print) -> None:
    """G8, X1: under the fingerprint that they had; what is code is asked, and kept."""
    assert printed("tools") != []
    loaded = printed("session", "load", "sums", "--agent", "assistant", "--session", "new")
    assert loaded["status"] == "ok"
    now = {tool["name"]: tool for tool in printed("tools")}
    known = [tool for tool in PRINTED["tools"] if tool["tokens"]]
    assert [now[tool["name"]] for tool in known] == known
    assert now["multiply"]["available"]


def test_the_audit_trail_is_kept(printed: Print) -> None:
    """X4: every record of before, as it was."""
    assert printed("audit", "--limit", "1000")[-len(PRINTED["audit"]) :] == PRINTED["audit"]


async def test_the_first_start_names_what_is_not_shared_any_more_and_how_to_share_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G9: once, and with a line that can be written as it is."""
    said: list[list[str]] = []
    for _ in range(2):
        caplog.clear()
        async with Pegboard.open(folder / "pegboard.yaml"):
            said.append([message for message in caplog.messages if "objects" in message])
    (message,), again = said
    assert again == []
    line = message.partition("`")[2].rpartition("`")[0]
    shared = yaml.safe_load(line)["plugins"]
    assert set(shared) == {"calculator"}
    assert all(value == {"instance": "all"} for value in shared.values())
