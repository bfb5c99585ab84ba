"""The gateway on a database that several processes share, with real clients (G14, S2)."""

import asyncio
import re
import signal
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.board.observability.bill import EVERY
from pegboard.ports import CountFilter, Store
from pegboard.ports.counts import SESSION_DAY, STEP
from postgres_server import PostgresServer

from .clients import HANDSHAKE, connected
from .replica_helpers import mortal, served


@pytest.fixture
def shared(config: Path, postgres: PostgresServer) -> Path:
    """Return a configuration whose store is in a database."""
    text, count = re.subn(r"(?m)^store: .*$", f"store: {postgres.address()}", config.read_text("utf-8"))
    config.write_text(text if count else f"store: {postgres.address()}\n{text}", "utf-8")
    return config


async def test_a_call_is_counted_at_once_and_stays_so_though_its_replica_is_killed(shared: Path) -> None:
    """G14, S2, F4: what it took in tokens is what waits for the bill of some seconds later."""
    async with mortal(shared) as killed, served(shared) as other:
        store = other.board.services.store
        async with connected(f"{killed.url}?session=kept", HANDSHAKE) as pegboard:
            await pegboard.load("notes")
            await counted_soon(store, "loads")
            assert await pegboard.text("note_add", text="one") == "added one"
            await counted_soon(store, "calls")
            await killed.end(signal.SIGKILL)
        (billed,) = (await store.sums(SESSION_DAY, since=0, until=2**40, by=(), of=CountFilter(session="kept"))).records
        assert (billed.counts.calls, billed.counts.loads) == (1, 1)
        counted = await store.sums(STEP, since=0, until=2**40, by=("tool",))
        assert [(one.tool, one.counts.calls) for one in counted.records if one.tool] == [("notes/note_add", 1)]


async def counted_soon(store: Store, name: str) -> None:
    """Wait until something is on the bill, which is sooner than what is counted in tokens."""
    async with asyncio.timeout(EVERY - 1):
        while True:
            sums = await store.sums(SESSION_DAY, since=0, until=2**40, by=())
            if sum(getattr(one.counts, name) for one in sums.records):
                return
            await store.changed(await store.change_token(), 0.05)


def test_code_without_an_event_loop_works_on_a_database(shared: Path) -> None:
    """S2: everything blocks, and the store is of the loop that runs beside."""
    with Pegboard.open_sync(shared) as board:
        board.session(session_id="one").load("notes")
    with Pegboard.open_sync(shared) as board:
        assert "note_add" in [one.tool.wire for one in board.session(session_id="one").surface().tools]
