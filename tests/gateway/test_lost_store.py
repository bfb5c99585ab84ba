"""Clients of either era while the store of the gateway is lost (S2, P4)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from losable_store import LosableStore
from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.handlers.turns import SessionTurns
from pegboard.ports import Adapters, Store
from pegboard.stores.grace import GraceStore
from pegboard.stores.sql import SqliteStore
from pegboard.testing import ManualClock

from .clients import ADA, BOB, MODERN, connected

pytestmark = pytest.mark.cover(1)


@dataclass
class Serving:
    url: str
    board: Pegboard
    double: LosableStore
    clock: list[float]

    async def settled(self) -> None:
        """Wait until what was begun beside requests (pins, manifests) has stored what it stores."""
        store, known = self.board.services.store, None
        while (now := await store.change_token()) != known:
            known = now
            await store.changed(now, 0.5)

    async def found(self) -> None:
        back = asyncio.Event()
        self.board.on("store_back", lambda _: back.set())
        self.double.find()
        await asyncio.wait_for(back.wait(), 20)


@asynccontextmanager
async def losing(config: Path) -> AsyncIterator[Serving]:
    """Serve over a file that can be lost, with a clock that a test sets forward."""
    clock = [0.0]
    double = LosableStore(SqliteStore(config.parent / "state.db"))

    def now() -> float:
        return asyncio.get_running_loop().time() + clock[0]  # calls say by this clock when they came

    store = cast("Store", GraceStore(cast("Store", double), grace=30, clock=now))
    async with Pegboard.open(config, adapters=Adapters(store=store)) as board, serving(board, port=0) as url:
        yield Serving(url, board, double, clock)


async def refused(calling: Awaitable[object]) -> str:
    """Return the code with which a call is refused."""
    with pytest.raises(MCPError) as caught:
        await calling
    assert "the server has gone away" in str(caught.value)
    return caught.value.error.data["code"]


@pytest.mark.both_paths
async def test_calls_go_on_for_the_grace_and_loads_answer_clearly(config_with_tokens: Path) -> None:
    """Two users: what each of them has loaded, and no more."""
    async with (
        losing(config_with_tokens) as running,
        connected(f"{running.url}?session=s", MODERN, token=ADA) as ada,
        connected(f"{running.url}?session=s", MODERN, token=BOB) as bob,
    ):
        await ada.load("notes")
        await bob.names()
        await running.settled()
        assert await ada.text("note_add", text="w") == "added w"  # what the load has changed is read
        assert await bob.text("echo", text="w") == "w"
        running.double.lose()
        assert await ada.text("note_add", text="x") == "added x"
        assert await ada.text("note_add", {"pegboard/turn": "another"}, text="y") == "added y"
        assert await bob.text("echo", text="z") == "z"
        assert "load_tools" in await ada.names()
        for calling in (
            ada.call("unload_tools", names=["notes"]),
            bob.call("load_tools", names=["notes"]),
            bob.call("note_add", text="x"),
            ada.call("note_add", {"pegboard/session": "never-read"}, text="x"),
        ):
            assert await refused(calling) == "store_unavailable"
        running.clock[0] += 31
        assert await refused(ada.call("note_add", text="x")) == "store_unavailable"
        async with httpx2.AsyncClient() as http:
            assert (await http.get(f"{running.url.removesuffix('/mcp')}/healthz")).json()["status"] == "ok"
        await running.found()
        assert await ada.text("note_add", {"pegboard/turn": "another"}, text="x") == "added x"
        assert (await bob.load("notes"))["status"] == "ok"
        assert await bob.text("note_add", text="x") == "added x"
        trail = await running.board.services.store.entries(kind="call", principal="ada")
        assert [one.subject for one in trail] == ["notes/note_add"] * 4


@pytest.mark.parametrize("labels", [(None, None), ("one", "two")])
async def test_a_turn_that_is_over_ends_once_that_can_be_stored(
    config: Path, labels: tuple[str | None, str | None]
) -> None:
    """G3: by a pause, or by its label; no request waits for it."""
    before, after = labels
    clock = ManualClock()
    async with losing(config) as running:
        session = await running.board.session(agent="other", session_id="s")
        turns = SessionTurns(running.board.services.store, clock)
        with await turns.begin(session, before):
            pass
        clock.advance(100)
        running.double.lose()
        for _ in range(2):
            with await turns.begin(session, after):
                assert (await session.snapshot()).state.turn == 1
        await running.found()
        for _ in range(2):
            with await turns.begin(session, after):
                assert (await session.snapshot()).state.turn == 2
