"""What 0.1.0 stored is there in this version: a folder of its users, with what its commands printed of it."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.cli import main
from pegboard.errors import StoreSchemaError

FIXTURE = Path(__file__).parent.parent / "fixtures" / "v0_1_0"
PRINTED = json.loads((FIXTURE / "printed.json").read_text())
META = {
    "search_tools", "load_tools", "unload_tools", "list_toolkits", "invokeother_tool", "capability_list",
    "discover_tools", "activate_tool", "list_tool_categories", "list_toolbelts",
}  # fmt: skip

Print = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder: that of a user who comes from 0.1.0, whose servers do not run."""
    folder = tmp_path / "project"
    shutil.copytree(FIXTURE, folder, ignore=shutil.ignore_patterns("__pycache__", "server.py"))
    (folder / ".pegboard").mkdir()
    (folder / "pegboard.db").rename(store_in(folder))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user-config"))
    return folder


@pytest.fixture
def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Print:
    """Return what runs the command and gives the document that it prints."""

    def printed(*words: str, code: int = 0) -> Any:
        ended = main([*words, "--json"])
        written = capsys.readouterr()
        assert "Traceback" not in written.out + written.err
        assert ended == code, written
        return json.loads(written.out)

    return printed


def store_in(folder: Path) -> Path:
    return folder / ".pegboard" / "pegboard.db"


def options(of: dict[str, Any]) -> list[str]:
    """Return the options that name a session, and the configuration that it belongs to."""
    config = ["--config", ".mcp.json"] if of["agent"] == "default" else []
    return ["--agent", of["agent"], "--session", of["session"], "--principal", of["principal"], *config]


def as_before(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return what 0.1.0 knew of a record; later versions may add to it."""
    return {key: now.get(key) for key in before}


# Sessions


def test_the_command_lists_every_session_as_before(printed: Print) -> None:
    """S2: the subagent's too, in the order of their last change."""
    before = PRINTED["listed"]
    now = printed("session", "list")
    assert [as_before(*pair) for pair in zip(now, before, strict=True)] == before


@pytest.mark.parametrize("before", PRINTED["sessions"], ids=lambda of: f"{of['agent']}/{of['session']}")
def test_the_command_shows_what_was_loaded_in_a_session(printed: Print, before: dict[str, Any]) -> None:
    """S2, S5: leases, turn, label and loadout; the tools of servers that do not run come from stored manifests."""
    now = printed("session", "show", *options(before))
    unchanged = ("principal", "agent", "session", "turn", "label", "loadout", "leases")
    assert {key: now[key] for key in unchanged} == {key: before[key] for key in unchanged}
    wanted = [name for name in before["loaded"] if name not in META]
    assert [name for name in now["loaded"] if name in wanted] == wanted  # more has joined by a category since (L9)


async def test_leases_end_when_they_would_have_ended(folder: Path) -> None:
    """S7: of one turn at its end, the idle one after five idle turns; until unloaded stays."""
    async with Pegboard.open() as board:
        session = await board.session(agent="assistant", session_id="thread-42", principal="ada")
        before = (await session.surface()).names
        removed = {turn: (await session.end_turn()).removed for turn in range(2, 9)}
        after = (await session.surface()).names
    assert {turn: names for turn, names in removed.items() if names} == {2: ("roll", "roll_many"), 7: ("up__look",)}
    assert [name for name in before if name not in after] == ["up__look", "roll", "roll_many"]
    assert "pad_left" in after


async def test_what_was_unloaded_out_of_a_toolkit_stays_unloaded_until_it_is_loaded_again(folder: Path) -> None:
    """S10: the toolkit's lease stands without it, and takes it back."""
    async with Pegboard.open() as board:
        session = await board.session(agent="assistant", session_id="thread-42", principal="ada")
        assert "pad_right" not in (await session.surface()).names
        loaded = await session.load("writing")
        assert (loaded.items[0].status, [tool.wire for tool in loaded.added]) == ("loaded", ["pad_right"])
        assert (await session.call("pad_right", {"text": "ox"})).status == "ok"


async def test_a_fallback_ends_with_its_turn(folder: Path) -> None:
    """S8: what it loaded goes, what else was loaded stays for as many idle turns as were left."""
    async with Pegboard.open() as board:
        session = await board.session(agent="helper", session_id="room", principal="bob")
        await session.surface()
        assert set((await session.end_turn()).removed) == {"up__look", "up__wipe", "roll", "roll_many"}
        assert set((await session.end_turn()).removed) == {"list_notes", "add_note", "leak_notes"}
        assert {"pad_left", "pad_right"} <= set((await session.surface()).names)


async def test_turn_label_loadout_and_failures_of_a_session_count_on(folder: Path) -> None:
    """G3, L7, X3: an equal label ends no turn, the loadout narrows, a third equal failure is not executed."""
    async with Pegboard.open() as board:
        session = await board.session(agent="assistant", session_id="thread-43", principal="ada")
        failed = await session.call("load_tools", {"names": ["nonsense"]})
        assert "not executed" in failed.result.content[0]["text"]
        assert (await session.mark_turn("second")).turn == 2
        assert (await session.load("dice")).items[0].status == "not_found"
        await session.use_loadout(None)
        assert (await session.load("dice")).items[0].status == "loaded"


async def test_sessions_of_an_mcp_clients_file_keep_what_was_loaded(folder: Path) -> None:
    """S2, G8: nothing answers at the server's address."""
    async with Pegboard.open(folder / ".mcp.json") as board:
        session = await board.session(session_id="default")
        surface = await session.surface()
        assert {"docs__echo", "docs__add"} <= set(surface.names)
        assert (await session.unload("docs")).items[0].status == "unloaded"


# Switches, claims and the audit trail


def test_the_command_shows_the_switches_as_before(printed: Print) -> None:
    """P2: one that was unset is not there."""
    assert printed("permissions", "show") == PRINTED["permissions"]


async def test_switches_bind_as_before_and_can_be_unset(folder: Path) -> None:
    """P2, P4: a stored one replaces the file's."""
    async with Pegboard.open() as board:
        session = await board.session(agent="assistant", session_id="thread-42", principal="ada")
        assert (await session.call("roll_many", {"count": 2})).status == "ok"
        assert (await session.call("add_note", {"text": "milk"})).status == "not_found"
        await board.permissions.set("assistant", "roll_many", None)
        await board.permissions.set("assistant", "add_note", None)
        assert (await session.call("roll_many", {"count": 2})).status == "not_found"
        assert (await session.call("add_note", {"text": "milk"})).status == "ok"


def test_the_command_lists_the_tools_of_servers_that_do_not_run(printed: Print) -> None:
    """G8: their manifests were kept under the same fingerprints."""
    names = [(tool["plugin"], tool["name"], tool["available"]) for tool in PRINTED["tools"]]
    plugins = {plugin for plugin, _, _ in names}  # more has joined by a category since (L9)
    now = [tool for tool in printed("tools") if tool["plugin"] in plugins]
    assert [(tool["plugin"], tool["name"], tool["available"]) for tool in now] == names


@pytest.mark.usefixtures("terminal")
def test_a_tool_that_claimed_later_to_be_read_only_still_waits_for_accept(printed: Print) -> None:
    """G6: what was seen first counts."""
    problems = printed("check")["problems"]
    assert [(p["code"], p["path"]) for p in problems if p["code"] != "unconfined"] == [
        ("read_only_later", "servers.up")
    ]
    assert printed("check", "--accept")["accepted"] == [{"plugin": "up", "name": "up__wipe"}]
    assert {p["code"] for p in printed("check")["problems"]} <= {"unconfined"}


def test_the_audit_trail_is_kept_and_goes_on_with_the_same_key(printed: Print) -> None:
    """X4: equal arguments have the digest that they had."""
    before = PRINTED["audit"]
    now = [record for record in printed("audit", "--limit", "1000") if record["kind"] != "pin"]
    assert [as_before(*pair) for pair in zip(now, before, strict=True)] == before

    on = {"agent": "assistant", "session": "thread-42", "principal": "ada"}
    assert printed("call", "pad_left", '{"text": "ox"}', *options(on))["status"] == "ok"
    newest = printed("audit")[0]
    called = next(record for record in before if record["subject"] == newest["subject"])
    assert newest["arguments"] == called["arguments"] != ""


# A newer store


@pytest.fixture
def newer(folder: Path) -> Path:
    """Return the store after a newer version has opened it."""
    path = store_in(folder)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1002")
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def beside(path: Path) -> dict[str, bytes]:
    """Return the content of every file in the folder of this one."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


async def test_a_newer_store_is_refused_by_the_library_and_left_alone(newer: Path) -> None:
    """S2: the error names the file and both versions."""
    before = beside(newer)
    with pytest.raises(StoreSchemaError) as caught:
        async with Pegboard.open():
            pass
    assert caught.value.code == "store_schema"
    assert caught.value.message.startswith(f"{newer} has schema version 1002; this Pegboard understands versions up to")
    assert "newer Pegboard" in caught.value.hint
    assert list(before) == ["pegboard.db"]
    assert beside(newer) == before


def test_a_newer_store_is_refused_by_the_command_and_left_alone(printed: Print, newer: Path) -> None:
    """S2: in one document, for reading and for writing."""
    before = beside(newer)
    for words in (["session", "list"], ["permissions", "set", "dice", "false", "--agent", "assistant"]):
        error = printed(*words, code=1)["error"]
        assert error["code"] == "store_schema"
        assert "schema version 1002" in error["message"]
    assert list(before) == ["pegboard.db"]
    assert beside(newer) == before
