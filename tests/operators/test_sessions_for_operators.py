"""What operators see of sessions, whoever holds them, and how they delete one."""

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.operators.sessions import SessionOverview, describe_session, list_sessions, remove_session
from pegboard.operators.subjects import OperatorSubjects, make_subjects
from pegboard.ports import SessionKey
from sdk_servers import pegboard_command

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
NOTES = '''
def add_note(text: str) -> str:
    """Add a note."""
    return text


def drop_note(name: str) -> str:
    """Drop a note."""
    return name
'''


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "notes.py").write_text(NOTES)
    path = tmp_path / "pegboard.yaml"
    plain = {"command": sys.executable, "args": [str(SERVER), "--log", str(tmp_path / "server.log")]}
    ada = {"tools": ["clock"], "discoverable": ["notes", "clock"], "dialect": "pegboard"}
    document = {
        "store": "sqlite:///state.db",
        "servers": {"plain": plain},
        "plugins": {
            "notes": {"python": "notes", "approve": {"drop_note": "always"}},
            "clock": {"python": "pegboard.quickstart.clock"},
        },
        "toolkits": {"paper": {"tools": ["notes"]}},
        "agents": {"ada": {**ada, "allowed_toolkits": ["paper"]}, "eve": {**ada, "discoverable": ["*"]}},
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
async def board(config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config) as board:
        yield board


@pytest.fixture
def subjects(board: Pegboard) -> OperatorSubjects:
    return make_subjects(board.services)


async def run(config: Path, *arguments: str) -> str:
    """Return what the command prints, in a process of its own."""
    command = pegboard_command(*arguments, "--config", str(config))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def described(
    board: Pegboard, subjects: OperatorSubjects, principal: str, agent: str, session: str
) -> SessionOverview | None:
    key = SessionKey(principal=principal, agent=agent, session=session)
    return await describe_session(board.services, subjects.counting, key)


async def test_sessions_of_every_process_are_listed_with_what_they_cost(
    config: Path, board: Pegboard, subjects: OperatorSubjects
) -> None:
    """S1, F4: stored ones, whoever stored them, and those that only this process showed; the same tokens as there."""
    loading = ("session", "load", "paper", "--agent", "ada", "--principal", "bob", "--session", "elsewhere")
    await run(config, *loading)
    here = await board.session(agent="ada", session_id="here", principal="eve")
    shown = await here.surface()
    page = await list_sessions(board.services, subjects.counting)
    assert [(row.session, row.principal, row.stored) for row in page.rows] == [
        ("here", "eve", False),
        ("elsewhere", "bob", True),
    ]
    newest, other = page.rows
    assert (newest.turn, newest.leases, newest.tokens, newest.saved) == (1, (), shown.tokens.total, shown.tokens.saved)
    assert (other.leases, other.problem) == (("paper until it is unloaded",), "")
    copy = await (await board.session(agent="ada", session_id="elsewhere", principal="bob")).surface()
    assert (other.tokens, other.saved, other.unknown) == (copy.tokens.total, copy.tokens.saved, ())
    assert (await list_sessions(board.services, subjects.counting, principal="bob")).rows == (other,)
    assert (await list_sessions(board.services, subjects.counting, agent="eve")).total == 0
    assert [row.session for row in (await list_sessions(board.services, subjects.counting, query="ELSE bo")).rows] == [
        "elsewhere"
    ]
    assert (
        (await list_sessions(board.services, subjects.counting, offset=1, limit=1)).rows,
        (await list_sessions(board.services, subjects.counting, limit=1)).total,
    ) == (
        (other,),
        2,
    )


async def test_a_session_without_an_id_is_not_listed(board: Pegboard, subjects: OperatorSubjects) -> None:
    """S4: there is nothing to come back to."""
    await (await board.session(agent="ada")).surface()
    assert (await list_sessions(board.services, subjects.counting)).total == 0


async def test_a_session_of_which_nothing_is_stored_is_listed_for_an_hour_after_its_last_request(
    board: Pegboard, subjects: OperatorSubjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1, S4: its client may be gone; one that has stored something stays."""
    kept, passing = [await board.session(agent="ada", session_id=name, principal="bob") for name in ("kept", "passing")]
    await kept.load("paper")
    await passing.surface()
    now = time.time()
    listed = []
    for later in (3599.0, 3601.0):
        monkeypatch.setattr(time, "time", lambda at=now + later: at)
        page, preview = (
            await list_sessions(board.services, subjects.counting),
            await subjects.previews.of_switch("ada", "notes", False),
        )
        listed.append(([row.session for row in page.rows], len(preview.sessions) + preview.unchanged))
    assert listed == [(["passing", "kept"], 2), (["kept"], 1)]


async def test_what_is_unknown_of_a_plugin_is_reported_and_not_counted(
    config: Path, board: Pegboard, subjects: OperatorSubjects
) -> None:
    """F4, G8: looking at a session starts no server; what it may use of it counts in no figure."""
    await (await board.session(agent="ada", session_id="s")).load("paper")
    key = SessionKey(principal="local", agent="ada", session="s")
    stored = await board.services.store.load(key)
    assert stored is not None
    await board.services.store.save(SessionKey(principal="x", agent="eve", session="t"), stored.text, expected=0)
    page, seen = (
        await list_sessions(board.services, subjects.counting, agent="eve"),
        await described(board, subjects, "x", "eve", "t"),
    )
    assert seen is not None
    assert ([(row.saved, row.unknown) for row in page.rows], seen.saved, seen.unknown) == (
        [(None, ("plain",))],
        None,
        ("plain",),
    )
    assert not (config.parent / "server.log").exists(), "the server was not started"


async def test_a_damaged_state_and_an_agent_that_is_gone_are_rows_that_say_so(
    config: Path, board: Pegboard, subjects: OperatorSubjects
) -> None:
    """S3: no exception; the others are listed as ever, and the damaged one can be deleted."""
    for name in ("whole", "broken"):
        await (await board.session(agent="ada", session_id=name)).load("notes")
    gone = SessionKey(principal="local", agent="gone", session="old")
    await board.services.store.save(gone, '{"turn": 2, "leases": []}', expected=0)
    with closing(sqlite3.connect(config.parent / "state.db")) as connection, connection:
        connection.execute("UPDATE session SET text = '{' WHERE session = 'broken'")
    found = {row.session: row for row in (await list_sessions(board.services, subjects.counting)).rows}
    assert (found["broken"].turn, found["broken"].tokens) == (None, None)
    assert found["broken"].problem.startswith("Its stored state is damaged: delete it")
    assert (found["old"].turn, found["old"].problem) == (2, "There is no agent 'gone'.")
    assert (found["whole"].problem, found["whole"].tokens is not None) == ("", True)
    broken, old = (
        await described(board, subjects, "local", "ada", "broken"),
        await described(board, subjects, "local", "gone", "old"),
    )
    assert broken is not None
    assert old is not None
    assert (broken.problem, old.problem) == (found["broken"].problem, found["old"].problem)
    preview = await subjects.previews.of_switch("ada", "notes", False)
    assert ([one.session for one in preview.sessions], preview.unreadable) == (["whole"], 1)
    assert await remove_session(board.services, SessionKey(principal="local", agent="ada", session="broken"), by="eve")
    assert await described(board, subjects, "local", "ada", "missing") is None


async def test_one_session_shows_what_is_loaded_and_because_of_what(
    board: Pegboard, subjects: OperatorSubjects
) -> None:
    """F5, S5, X4, A3: the words of explain, the lease, the newest calls, and what waits for a person."""
    session = await board.session(agent="ada", session_id="s", principal="eve")
    await session.load("paper")
    await session.call("add_note", {"text": "milk"})
    waiting = await session.call("drop_note", {"name": "milk"})
    assert waiting.approval is not None
    before = await board.services.store.sessions()
    seen = await described(board, subjects, "eve", "ada", "s")
    assert seen is not None
    surface = await session.surface()
    assert tuple(one.name for one in seen.loaded) == surface.names
    found = {one.name: one for one in seen.loaded}
    explained = await session.explain("add_note")
    assert found["add_note"].because == (explained.reasons[-1].text,)
    assert (found["add_note"].lease, found["add_note"].until) == ("toolkit:paper", "unload")
    assert found["load_tools"].because == ("It is loaded because tools can be loaded.",)
    assert (seen.tokens, seen.tool_tokens, seen.saved) == (
        surface.tokens.total,
        surface.tokens.tools,
        surface.tokens.saved,
    )
    assert sum(one.tokens for one in seen.loaded) == seen.tool_tokens
    assert [(lease.subject, lease.because) for lease in seen.leases] == [("toolkit:paper", "loaded")]
    assert (seen.approvals, seen.hints) == ((waiting.approval.id,), len(surface.hints))
    called = [(call.tool, call.decision) for call in seen.calls]
    assert ("notes/add_note", "allowed") in called
    assert all(call.duration is None or call.duration >= 0 for call in seen.calls)
    assert await board.services.store.sessions() == before, "nothing is stored"


async def test_a_session_is_deleted_for_good_and_the_audit_says_by_whom(
    config: Path, board: Pegboard, subjects: OperatorSubjects
) -> None:
    """X4: state, waiting approvals and what this process had; the command does the same."""
    session = await board.session(agent="ada", session_id="s", principal="eve")
    await session.load("paper")
    await session.call("drop_note", {"name": "milk"})
    assert await remove_session(board.services, session.key, by="grace")
    assert await described(board, subjects, "eve", "ada", "s") is None, "its calls are on the audit trail only"
    assert (await list_sessions(board.services, subjects.counting)).total == 0
    (record,) = await board.services.store.entries(kind="unload")
    assert (record.by, record.principal, record.session, record.reason) == (
        "grace",
        "eve",
        "s",
        "The session was deleted.",
    )
    assert not await remove_session(board.services, session.key, by="grace")
    assert "add_note" not in (await session.surface()).names, "the next use begins anew"
    await session.load("notes")
    await run(config, "session", "delete", "--session", "s", "--principal", "eve", "--agent", "ada")
    newest = (await board.services.store.entries(kind="unload"))[0]
    assert (newest.reason, newest.by != "") == ("The session was deleted.", True)


async def test_the_deletion_of_a_session_that_only_had_a_surface_is_recorded_and_an_event(
    board: Pegboard, subjects: OperatorSubjects
) -> None:
    """X4: nothing is stored of it, and this process alone knew it."""
    session = await board.session(agent="ada", session_id="s", principal="eve")
    await session.surface()
    events: list[object] = []
    board.on("unloaded", events.append)
    assert await remove_session(board.services, session.key, by="grace")
    assert (await list_sessions(board.services, subjects.counting)).total == 0
    (record,) = await board.services.store.entries(kind="unload")
    assert (record.by, record.session, record.reason) == ("grace", "s", "The session was deleted.")
    assert len(events) == 1
    assert not await remove_session(board.services, session.key, by="grace")
    assert len(await board.services.store.entries(kind="unload")) == len(events) == 1


async def test_a_call_that_stored_nothing_elsewhere_shows_its_session_also_where_its_name_is_used_anew(
    config: Path, board: Pegboard, subjects: OperatorSubjects
) -> None:
    """X4: calls before a deletion are not those of the session that begins again."""
    call = ("call", "current_time", "--agent", "ada", "--principal", "bob", "--session", "elsewhere")
    await run(config, *call)
    key = SessionKey(principal="bob", agent="ada", session="elsewhere")
    seen = await described(board, subjects, "bob", "ada", "elsewhere")
    assert seen is not None
    assert (seen.stored, len(seen.calls)) == (False, 1)
    await (await board.session(agent="ada", session_id="elsewhere", principal="bob")).surface()
    assert await remove_session(board.services, key, by="grace")
    assert await described(board, subjects, "bob", "ada", "elsewhere") is None
    await run(config, *call)
    seen = await described(board, subjects, "bob", "ada", "elsewhere")
    assert seen is not None
    assert len(seen.calls) == 1


async def test_a_session_may_be_deleted_while_it_is_used(board: Pegboard, subjects: OperatorSubjects) -> None:
    """S2: whoever acts on it acts on a new one; no one gets an error."""
    session = await board.session(agent="ada", session_id="s")

    async def used(times: int) -> None:
        for _ in range(times):
            assert (await session.load("paper")).status == "ok"
            assert (await session.end_turn()).status == "ok"
            await session.surface()

    async def deleted(times: int) -> None:
        for _ in range(times):
            await remove_session(board.services, session.key, by="eve")
            await described(board, subjects, "local", "ada", "s")
            await list_sessions(board.services, subjects.counting)

    await asyncio.gather(used(10), used(10), deleted(10), deleted(10))
    assert (await session.load("paper")).status == "ok"


async def test_after_a_restart_plugins_in_this_process_are_known_and_no_server_is_started(config: Path) -> None:
    """F4, P9: what a stored session has loaded is listed and counted at once."""
    async with Pegboard.open(config) as before:
        session = await before.session(agent="ada", session_id="thread")
        await session.load("notes")
        tokens = (await session.surface()).tokens.total
    async with Pegboard.open(config) as after:
        subjects = make_subjects(after.services)
        (row,) = (await list_sessions(after.services, subjects.counting)).rows
        seen = await described(after, subjects, "local", "ada", "thread")
        assert seen is not None
        assert (seen.unknown, row.unknown) == ((), ())
        assert (seen.tokens, row.tokens) == (tokens, tokens)
    assert not config.with_name("server.log").exists()
