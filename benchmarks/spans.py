"""What the span of a call costs: none configured, and an SDK of OpenTelemetry that exports nothing, in turns."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from pegboard import Pegboard, Session

CALLS = 2000
ROUNDS = 9
API = "opentelemetry.trace"
CONFIG = {
    "store": "memory:",
    "plugins": {"echo": {"python": "benchmarks.spans:echo"}},
    "agents": {"assistant": {"tools": ["echo"]}},
}


async def echo(text: str) -> str:
    """Return the text, in no other thread."""
    return text


def measure() -> list[dict[str, object]]:
    return asyncio.run(_measured())


async def _measured() -> list[dict[str, object]]:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    without: list[float] = []
    within: list[float] = []
    async with Pegboard.open(CONFIG) as board:
        session = await board.session(agent="assistant", session_id="s")
        await _calls(session)
        for _ in range(ROUNDS):
            with _no_api():
                without.append(await _calls(session))
            within.append(await _calls(session))
    plain, traced = statistics.median(without), statistics.median(within)
    look = _looked()
    return [
        {"what": "a call, in a process that traces nothing", "us": round(plain, 1)},
        {"what": "a call, with an SDK that exports nothing", "us": round(traced, 1)},
        {"what": "its span (bar: 100)", "us": round(traced - plain, 1)},
        {"what": "the look whether there is a provider, where none is", "us": round(look, 3)},
    ]


async def _calls(session: Session) -> float:
    """Return how long a call takes, in microseconds."""
    started = time.perf_counter()
    for _ in range(CALLS):
        await session.call("echo", {"text": "hello"})
    return (time.perf_counter() - started) / CALLS * 1e6


def _looked() -> float:
    from pegboard.support.tracing import Tracing

    tracing = Tracing()
    with _no_api():
        started = time.perf_counter()
        for _ in range(100_000):
            tracing.tracer()
        return (time.perf_counter() - started) / 100_000 * 1e6


@contextmanager
def _no_api() -> Generator[None]:
    """Let it look as if no one had imported the API of OpenTelemetry, so that no provider can be configured."""
    api = sys.modules.pop(API)
    try:
        yield
    finally:
        sys.modules[API] = api
