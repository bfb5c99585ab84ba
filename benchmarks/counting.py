"""What counting costs: processor time of a call and its texts, with and without it in turns; room in the store."""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.spans import CONFIG
from pegboard import Pegboard, Session
from pegboard.board.observability.call_texts import CallTexts
from pegboard.board.observability.tally import Tally
from pegboard.ports import CountRecord, Counts, SessionKey
from pegboard.ports.counts import DAY, bucket_of
from pegboard.stores.sql import SqliteStore

CALLS = 2_000
ROUNDS = 25
MANY, DAYS, TOOLS, TOOLS_OF_ONE, AGENTS = 1_000_000, 90, 20_000, 20, 50


def measure() -> list[dict[str, object]]:
    return asyncio.run(_measured())


async def _measured() -> list[dict[str, object]]:
    counted: list[float] = []
    without: list[float] = []
    async with Pegboard.open(CONFIG) as board:
        session = await board.session(agent="assistant", session_id="s")
        await _calls(session)
        for turn in range(2 * ROUNDS):
            if turn % 2:
                counted.append(await _calls(session))
            else:
                with _no_counting():
                    without.append(await _calls(session))
        alone = _alone(board)
        flushed = await _flushed(board, session)
    room = await _room()
    more = statistics.median(after - before for before, after in zip(without, counted, strict=True))
    many = f"{MANY:,} calls in {DAYS} days, of {TOOLS:,} tools and {AGENTS} agents, a few most"
    return [
        {"what": "a call that is not counted by time", "took": f"{statistics.median(without):.1f} µs"},
        {"what": "a call that is", "took": f"{statistics.median(counted):.1f} µs"},
        {"what": "what that adds, each beside the one before (bar: 5)", "took": f"{more:.2f} µs"},
        {"what": "one count by itself", "took": f"{alone:.2f} µs"},
        {"what": f"putting {CALLS:,} calls of one tool into the store, for each", "took": f"{flushed:.3f} µs"},
        {"what": f"a store with the counts of {many}", "took": f"{room:.1f} MiB"},
    ]


async def _calls(session: Session) -> float:
    """Return how long the processor works for a call, in microseconds."""
    started = time.process_time()
    for _ in range(CALLS):
        await session.call("echo", {"text": "x"})
    return (time.process_time() - started) / CALLS * 1e6


@contextmanager
def _no_counting() -> Generator[None]:
    with (
        patch.object(Tally, "add_calls", lambda *_: None),
        patch.object(CallTexts, "add", lambda *_, **__: None),
    ):
        yield


def _alone(board: Pegboard) -> float:
    """Return what one count takes, in microseconds: the least of many, since nothing makes it quicker than it is."""
    recorder, tally = board.services.recorder, Tally()
    key = SessionKey(principal="local", agent="assistant", session="s")
    record = recorder.entry(key, 1, "call", "echo", "allowed", duration=1.5, outcome="ok")
    least = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        tally.add_calls([record] * CALLS)
        least = min(least, (time.process_time() - started) / CALLS * 1e6)
    return least


async def _flushed(board: Pegboard, session: Session) -> float:
    await board.services.billing.flush()
    await _calls(session)
    started = time.process_time()
    await board.services.billing.flush()
    return (time.process_time() - started) / CALLS * 1e6


async def _room() -> float:
    """Return how many MiB a store has in which nothing is but the counts of many calls, put there once a day."""
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pegboard.db"
        store = SqliteStore(path)
        await store.open()
        try:
            for day in range(DAYS):
                starts = (day * DAY.seconds + chance.randrange(DAY.seconds) for _ in range(MANY // DAYS))
                store.count_later(*(_called(chance, start) for start in starts))
                await store.sums(DAY, since=0, until=1, by=())  # it writes what waits
        finally:
            await store.aclose()
        return path.stat().st_size / 2**20


def _called(chance: random.Random, start: int) -> CountRecord:
    def one_of(count: int) -> int:
        return min(int(chance.paretovariate(0.7)), count) - 1

    tool = one_of(TOOLS)
    counts = Counts(calls=1, arguments=50, results=500)
    outcome = "ok" if chance.random() < 0.95 else "error"
    names = "ada", f"agent_{one_of(AGENTS)}", f"day {start // DAY.seconds}", f"server_{tool // TOOLS_OF_ONE}"
    return CountRecord(start, *names, f"tool_{tool}", outcome, counts, {bucket_of(chance.lognormvariate(3.5, 1.5)): 1})
