"""What counting costs: processor time of a call and its texts, with and without it in turns."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch

from benchmarks.spans import CONFIG
from pegboard import Pegboard, Session
from pegboard.board.observability.call_texts import CallTexts
from pegboard.board.observability.metrics import Tally

CALLS = 2_000
ROUNDS = 25


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
        alone = _alone()
        flushed = await _flushed(board, session)
    more = statistics.median(after - before for before, after in zip(without, counted, strict=True))
    return [
        {"what": "a call that is not counted by time", "took": f"{statistics.median(without):.1f} µs"},
        {"what": "a call that is", "took": f"{statistics.median(counted):.1f} µs"},
        {"what": "what that adds, each beside the one before (bar: 5)", "took": f"{more:.2f} µs"},
        {"what": "one count by itself", "took": f"{alone:.2f} µs"},
        {"what": f"putting {CALLS:,} calls of one tool into the store, for each", "took": f"{flushed:.3f} µs"},
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


def _alone() -> float:
    """Return what one count takes, in microseconds: the least of many, since nothing makes it quicker than it is."""
    tally, key = Tally(), ("local", "assistant", "s")
    least = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        tally.add_calls(key, "echo", "ok", [1.5] * CALLS)
        least = min(least, (time.process_time() - started) / CALLS * 1e6)
    return least


async def _flushed(board: Pegboard, session: Session) -> float:
    await board.services.billing.flush()
    await _calls(session)
    started = time.process_time()
    await board.services.billing.flush()
    return (time.process_time() - started) / CALLS * 1e6
