"""When a turn ends for clients that the gateway does not see the messages of."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.board import Session
from pegboard.gateway.handlers.turns import SessionTurns
from pegboard.testing import ManualClock

from .clients import ADA, ERAS, Connected, connected, edit, gateway, until


async def is_out(pegboard: Connected, meta: dict[str, Any] | None = None) -> bool:
    return not (await pegboard.call("note_add", meta, text="x")).is_error


@pytest.mark.parametrize("era", ERAS)
async def test_a_new_turn_label_ends_the_turn(config: Path, era: str) -> None:
    """G3: the first label is only noted, the same one changes nothing, another one ends the turn."""
    async with gateway(config) as running, connected(running.url, era) as pegboard:
        one, two = {"pegboard/turn": "one"}, {"pegboard/turn": "two"}
        await pegboard.load("notes", keep="turn")
        assert await is_out(pegboard, one)
        assert await is_out(pegboard, one)
        assert not await is_out(pegboard, two)


async def test_the_turn_ends_on_request(config_with_tokens: Path) -> None:
    """G3, G2: under the same token, for the named agent and session."""
    async with (
        gateway(config_with_tokens) as running,
        connected(f"{running.url}?session=a/b", ERAS[0], token=ADA) as pegboard,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {ADA}"}) as http,
    ):
        await pegboard.load("notes", keep="turn")
        assert await is_out(pegboard)
        url = f"{running.base}/sessions/a%2Fb/end-turn"
        assert (await http.post(url, headers={"Authorization": "Bearer wrong"})).status_code == 401
        assert (await http.post(url, params={"agent": "other"})).status_code == 404
        assert (await http.get(url)).status_code == 405
        assert await is_out(pegboard)
        ended = (await http.post(url, params={"agent": "default"})).json()
        assert (ended["status"], ended["turn"], ended["session"]) == ("ok", 2, "a/b")
        assert not await is_out(pegboard)


async def test_the_turn_ends_after_a_pause(config: Path) -> None:
    """G3: `turn_gap` without a call, noticed at the next request."""
    async with gateway(config) as running, connected(f"{running.url}/other", ERAS[1]) as pegboard:
        await pegboard.load("notes", keep="turn")

        async def gone() -> bool:
            return "note_add" not in await pegboard.names()

        await until(gone)


async def test_a_call_in_flight_keeps_the_turn(config: Path) -> None:
    """G3: the pause begins when the last call has ended."""
    clock = ManualClock()
    async with Pegboard.open(config) as board:
        session = await board.session(agent="other", session_id="s")
        turns = SessionTurns(board.services.store, clock)
        with turns.activity(session):
            clock.advance(100)
            await turns.begin(session, None)
            assert (await session.snapshot()).state.turn == 1
        await turns.begin(session, None)
        assert (await session.snapshot()).state.turn == 1
        clock.advance(0.2)
        await turns.begin(session, None)
        await turns.begin(session, None)
        assert (await session.snapshot()).state.turn == 2


@pytest.mark.parametrize(("turn_gap", "over"), [("1ms", True), ("1h", False)])
async def test_a_turn_ends_over_a_restart_as_without_one(tmp_path: Path, turn_gap: str, over: bool) -> None:
    """S6, S8, G3: what came for one turn does not reach into tomorrow, and a quick restart ends nothing."""
    config: dict[str, Any] = {
        "store": f"sqlite:///{tmp_path / 'state.db'}",
        "plugins": {"clock": {"python": "pegboard.quickstart.clock"}},
        "agents": {"default": {"discoverable": ["clock"], "turn_gap": turn_gap}},
    }
    turns_and_leases: list[tuple[int, bool]] = []
    for _ in range(2):
        async with Pegboard.open(config) as board:
            bob = await board.session(session_id="default", principal="bob")
            ada = await board.session(session_id="default", principal="ada")
            turns = SessionTurns(board.services.store)
            await turns.begin(bob, None)
            await turns.begin(ada, None)
            state = (await ada.snapshot()).state
            turns_and_leases.append((state.turn, bool(state.leases)))
            assert (await bob.snapshot()).version == 0
            if not state.leases:
                await ada.fallback()
                with turns.activity(ada):
                    assert (await ada.call("current_time", {})).status == "ok"
    assert turns_and_leases == [(1, False), (2, False) if over else (1, True)]


async def used(turns: SessionTurns, session: Session) -> None:
    """Make a call in a session, by way of one process."""
    with turns.activity(session):
        assert (await session.call("echo", {"text": "x"})).status == "ok"


async def test_a_pause_counts_from_the_last_call_by_way_of_any_replica(config: Path) -> None:
    """G3, G14: and ends one turn, wherever the next requests come to."""
    edit(config, "turn_gap: 150ms", "turn_gap: 1h")
    clock = ManualClock()
    async with Pegboard.open(config) as here, Pegboard.open(config) as there:
        sessions = [await board.session(agent="other", session_id="s") for board in (here, there)]
        first, second = (SessionTurns(board.services.store, clock) for board in (here, there))
        for board, turns, session in ((here, first, sessions[0]), (there, second, sessions[1])):
            await used(turns, session)
            await board.services.store.entries()  # which writes what waits
        clock.advance(7200)
        await first.begin(sessions[0], None)
        assert (await sessions[0].snapshot()).state.turn == 1
        await used(first, sessions[0])
        clock.advance(7200)
        await asyncio.gather(*(first.begin(sessions[0], None) for _ in range(3)))
        assert (await sessions[0].snapshot()).state.turn == 2
        await second.begin(sessions[1], None)
        assert (await sessions[1].snapshot()).state.turn == 2
