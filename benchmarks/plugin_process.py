"""What a plugin that is confined costs: a call here and in its process in turns, and the start of the process (A7).

The machine's other work shows in medians more than in the lower percentiles: both are printed, each beside what the
same call takes in this process in the same run.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from pegboard.core.model.specs import Confinement, PythonSpec
from pegboard.core.model.tools import Tool
from pegboard.ports import CallContext, Source
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource
from pegboard.sources.python import PythonSource

ROUNDS, CALLS = 20, 100
"""In turns so many calls here and so many there, and how often."""
STARTS = 5
MODULE = '''
class Notes:
    def __init__(self):
        self.kept = []

    def small(self) -> str:
        """Return a line."""
        return "done"

    def record(self) -> dict[str, int]:
        """Return a record."""
        return {f"field {number}": number for number in range(30)}

    def large(self) -> str:
        """Return 100 kB."""
        return "x" * 100_000

    async def awaited(self) -> str:
        """Return a line without a thread."""
        return "done"
'''
Row = dict[str, object]


def measure() -> list[Row]:
    """Return one row for each kind of call, and one for the start."""
    return asyncio.run(_measured())


async def _measured() -> list[Row]:
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "notes_of_benchmark.py").write_text(MODULE)
        spec = PythonSpec(name="notes", target="notes_of_benchmark:Notes", folder=made)
        here, there = PythonSource(), _apart()
        try:
            confined = replace(spec, confine=Confinement(folder=made))
            rows = [
                await _of_call(name, spec, confined, here, there) for name in ("small", "record", "large", "awaited")
            ]
        finally:
            await here.aclose()
            await there.aclose()
        return [
            *rows,
            await _of_start("the first description, its process started", spec),
            await _of_start("the same, confined", confined),
        ]


def _apart() -> PluginProcessSource:
    return PluginProcessSource(McpSource(asks=False, idle_after=None), env=os.environ, apart=lambda _: True)


async def _of_call(name: str, spec: PythonSpec, confined: PythonSpec, here: Source, there: Source) -> Row:
    tool, context = Tool(plugin=spec.name, name=name), CallContext(principal="alice", scope="user:alice")
    times: dict[int, list[float]] = {0: [], 1: []}
    for turn in range(ROUNDS):
        for which, (source, one) in enumerate(((here, spec), (there, confined))):
            taken = [await _timed(lambda s=source, o=one: s.call(o, {}, tool, {}, context)) for _ in range(CALLS)]
            times[which] += taken if turn else []  # the first turn starts and imports
    own, other = times[0], times[1]
    return {
        "": f"a call of `{name}`",
        "here, ms (median; 10%)": f"{_ms(own)}; {_ms(own, 0.1)}",
        "in a process of its own": f"{_ms(other)}; {_ms(other, 0.1)}",
        "more": f"{_ms(other, 0.5, own)}; {_ms(other, 0.1, own)}",
    }


async def _of_start(title: str, spec: PythonSpec) -> Row:
    """Return how long the first description takes where it starts a process, and where it imports here."""
    taken: list[float] = []
    for _ in range(STARTS):
        source = _apart()
        taken.append(await _timed(lambda s=source: s.describe(spec, {})))
        await source.aclose()
    local = PythonSource()
    own = [await _timed(lambda: local.describe(spec, {}))]
    await local.aclose()
    return {
        "": title,
        "here, ms (median; 10%)": _ms(own),
        "in a process of its own": _ms(taken),
        "more": _ms(taken, 0.5, own),
    }


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


def _ms(times: list[float], part: float = 0.5, less: list[float] | None = None) -> str:
    def at(values: list[float]) -> float:
        return statistics.median(values) if part == 0.5 else sorted(values)[int(len(values) * part)]

    return f"{(at(times) - (at(less) if less else 0.0)) * 1000:.2f}"
