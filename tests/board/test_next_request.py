"""When a load can be used in the library: with the next turn, the next step, and never in the same batch of calls."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import CallAnswer, Host, Pegboard, Session, UsageError, turn_of_messages

CONFIG = """
store: sqlite:///pegboard.db
plugins: {notes: {python: note_tools}, sums: {python: sum_tools}}
toolkits: {paper: {description: Notes., tools: [notes]}, maths: {tools: [sums]}}
agents:
  seed: {allowed_toolkits: [paper, maths], dialect: toolkits}
  runs: {allowed_toolkits: [paper, maths], dialect: toolkits, unloaded_call: run}
  step: {allowed_toolkits: [paper, maths], dialect: pegboard}
  brave: {allowed_toolkits: [paper, maths], dialect: pegboard, unloaded_call: run}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "note_tools.py").write_text('def note() -> str:\n    """Note."""\n    return "noted"\n')
    (tmp_path / "sum_tools.py").write_text('def add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n')
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as opened:
        yield opened


async def names(session: Session) -> tuple[str, ...]:
    return tuple(name for name in (await session.surface()).names if name in ("note", "add"))


async def load(session: Session, toolkit: str) -> dict[str, Any]:
    return json.loads((await session.call("load_tools", {"toolkit": toolkit})).result.content[0]["text"])


@pytest.mark.parametrize("agent", ["seed", "runs"])
async def test_the_conversation_of_seed_000_needs_the_next_message(board: Pegboard, agent: str) -> None:
    """D2, MR43, MR44: loaded, listed as loaded, and neither on the surface nor callable before `end_turn`."""
    session = await board.session(agent=agent, session_id="thread-42")
    payload = await load(session, "paper")
    assert (payload["status"], payload["takes_effect"]) == ("loaded", "next_request")
    assert (await load(session, "paper"))["status"] == "already_loaded"
    assert payload["loaded_toolkits"] == ["paper"]
    assert await names(session) == ()
    called = await session.call("note", {})
    assert (called.status, called.is_error) == ("next_request", True)
    told = await session.explain("note")
    assert (told.permitted, told.loaded, told.visible, told.callable) == (True, True, False, False)

    await session.end_turn()
    assert await names(session) == ("note",)
    assert (await session.call("note", {})).status == "ok"
    told = await session.explain("note")
    assert (told.permitted, told.loaded, told.visible, told.callable) == (True, True, True, True)


@pytest.mark.parametrize("agent", ["seed", "runs"])
async def test_a_call_of_what_is_not_loaded_loads_it_for_the_next_turn(board: Pegboard, agent: str) -> None:
    """D2, X1: `unloaded_call: run` does not make a tool run before its request."""
    session = await board.session(agent=agent, session_id="s")
    first, second = await session.call("note", {}), await session.call("note", {})
    assert first.status in ("not_loaded", "next_request")
    assert second.status == "next_request"
    assert "next request" in first.message
    await session.end_turn()
    assert (await session.call("note", {})).result.content[0]["text"] == "noted"


async def test_a_pending_load_survives_the_object_and_is_as_pending_for_every_other(board: Pegboard) -> None:
    """D2, S2: from when on it counts is part of what is stored; another request unit loads at once."""
    await load(await board.session(agent="seed", session_id="s"), "paper")
    assert await names(await board.session(agent="seed", session_id="s")) == ()
    operator = await board.session(agent="seed", session_id="s", host=Host(request="call"))
    assert await names(operator) == ()
    assert (await operator.load("maths")).status == "ok"
    assert await names(operator) == ("add",)


async def test_what_was_unloaded_is_not_loaded_again_by_a_call_of_the_same_turn(board: Pegboard) -> None:
    """D2, X1: it binds at once (D3), for every object that stands for the session; the next turn may load it."""
    for agent in ("step", "brave"):
        session = await board.session(agent=agent, session_id="s")
        await session.load("paper")
        await session.unload("paper")
        other = await board.session(agent=agent, session_id="s")
        refused = await other.call("note", {})
        assert (refused.status, await names(other)) == ("not_loaded", ())
        assert "was unloaded in this turn" in refused.message
        await session.end_turn()
        await session.call("note", {})
        assert await names(session) == ("note",)


async def test_an_unloaded_tool_leaves_with_the_next_request_as_the_message_says(board: Pegboard) -> None:
    """D2, MR44: until then it keeps its place on the surface, no call of it runs, and no one else loses it."""
    session = await board.session(agent="seed", session_id="s")
    other = await board.session(agent="seed", session_id="s", principal="bob")
    for one in (session, other):
        await load(one, "paper")
        await load(one, "maths")
        await one.end_turn()
    before = (await session.surface()).names
    payload = json.loads((await session.call("unload_tools", {"toolkit": "paper"})).result.content[0]["text"])
    assert payload["message"] == "Toolkit 'paper' will be removed on the next request in this session."
    assert (payload["status"], payload["loaded_toolkits"]) == ("unloaded", ["maths"])
    assert (await session.surface()).names == before
    again = await board.session(agent="seed", session_id="s")
    assert (await again.surface()).names == before
    called = await again.call("note", {})
    assert (called.status, called.is_error) == ("not_loaded", True)
    told = await again.explain("note")
    assert (told.permitted, told.loaded, told.visible, told.callable) == (True, False, True, False)
    await board.permissions.set("seed", "maths", value=False)
    assert await names(again) == ("note",)
    await board.permissions.set("seed", "maths", value=None)
    await session.end_turn()
    assert await names(session) == ("add",)
    assert await names(other) == ("note", "add")


async def test_what_was_unloaded_and_loaded_again_goes_on(board: Pegboard) -> None:
    """D2: it stays in sight, and can be called from the next request on."""
    session = await board.session(agent="seed", session_id="s")
    await load(session, "paper")
    await session.end_turn()
    await session.unload("paper")
    await load(session, "paper")
    assert await names(session) == ("note",)
    assert (await session.call("note", {})).status == "next_request"
    await session.end_turn()
    assert (await session.call("note", {})).status == "ok"


async def ran(session: Session, first: Any, name: str, arguments: dict[str, Any]) -> tuple[CallAnswer, CallAnswer]:
    """Return the answer to a call in one parallel batch with something else, and to the same call after it."""
    _, answer = await asyncio.gather(first, session.call(name, arguments))
    return answer, await session.call(name, arguments)


async def test_a_call_in_one_batch_with_the_load_does_not_run_on_it(board: Pegboard) -> None:
    """D2: it started before the load's answer was returned; the answer says so, with the schema."""
    session = await board.session(agent="step", session_id="s")
    inside, after = await ran(session, session.call("load_tools", {"names": ["paper"]}), "note", {})
    assert (inside.status, after.status) == ("not_loaded", "ok")
    assert json.loads(inside.result.content[1]["text"])["name"] == "note"
    denials = [entry for entry in await board.services.store.entries() if entry.kind == "deny"]
    assert [(entry.subject, entry.outcome) for entry in denials] == [("notes/note", "same_batch")]

    inside, after = await ran(session, session.load("maths"), "add", {"a": 1, "b": 2})
    assert (inside.status, after.status) == ("not_loaded", "ok")


async def test_two_calls_in_one_batch_do_not_run_on_each_others_load(board: Pegboard) -> None:
    """D2, X1: both are answered with the schema; where calls of what is not loaded run, both run."""
    session = await board.session(agent="step", session_id="s")
    inside, after = await ran(session, session.call("note", {}), "note", {})
    assert (inside.status, after.status) == ("not_loaded", "ok")
    brave = await board.session(agent="brave", session_id="s")
    both = await asyncio.gather(brave.call("note", {}), brave.call("note", {}))
    assert [answer.status for answer in both] == ["ok", "ok"]


async def test_what_was_loaded_before_runs_while_another_load_is_in_flight(board: Pegboard) -> None:
    """D2: only what the load brought waits for its answer."""
    session = await board.session(agent="step", session_id="s")
    await session.load("paper")
    outcome, answer = await asyncio.gather(session.load("paper", "maths"), session.call("note", {}))
    assert (outcome.status, answer.status) == ("ok", "ok")


async def test_a_call_that_came_before_the_answer_is_of_the_same_batch_however_late_it_starts(board: Pegboard) -> None:
    """D2: a gateway knows when a call came."""
    session = await board.session(agent="step", session_id="s")
    before = asyncio.get_running_loop().time()
    await session.load("paper")
    assert (await session.call("note", {}, arrived=before)).status == "not_loaded"
    assert (await session.call("note", {})).status == "ok"


async def test_a_host_that_derives_its_turns_hands_their_number_in(board: Pegboard) -> None:
    """S6, S7: `end_turn(turn=…)`; the same number twice ends nothing, and what is no number is refused."""
    session = await board.session(agent="step", session_id="s")
    ended: list[Any] = []
    board.on("turn_ended", ended.append)
    await session.load("paper", keep="turn")
    for messages in (1, 2, 2):
        assert (await session.end_turn(turn=turn_of_messages(messages))).turn == 1
    assert await names(session) == ("note",)
    outcome = await session.end_turn(turn=turn_of_messages(5))
    assert (outcome.turn, [item.status for item in outcome.items]) == (3, ["unloaded"])
    assert [record["turn"] for record in ended] == [1]
    for wrong in ("3", 2.0, True, 10**12):
        with pytest.raises(UsageError, match="The turn is"):
            await session.end_turn(turn=wrong)  # type: ignore
