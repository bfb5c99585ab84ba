"""What an operator waits for while typing: every keystroke of real requests, over 20,000 tools; the first one of all.

``python -m benchmarks keystrokes [--tools N] [--queries N] [--json]``. The tools are those of ``PEGBOARD_DATA``, on as
many servers as it takes; an agent may use all of them, half, or one server's. The loop is watched by a task that
wakes up every millisecond: what it waits for beyond that is what no one else is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.growing import opened, servers
from benchmarks.scale import requests, resident
from pegboard.operators.subjects import OperatorSubjects, make_subjects
from pegboard.testing import FakeSource

Row = dict[str, object]
TOOLS_OF_A_SERVER = 14
LETTERS = 40
"""So many letters of a request are typed."""


class Watch:
    """The longest time for which the loop answered no one, in milliseconds."""

    longest = 0.0


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch the loop while the context lasts."""
    watch = Watch()

    async def wake() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            watch.longest = max(watch.longest, 1000 * (time.perf_counter() - began) - 1)

    task = asyncio.get_running_loop().create_task(wake())
    try:
        yield watch
    finally:
        task.cancel()


async def measured(tools: int, texts: list[str]) -> list[Row]:
    plugins = servers(tools // TOOLS_OF_A_SERVER + 1, TOOLS_OF_A_SERVER)
    names = list(plugins)
    agents = {
        "everything": {"discoverable": ["*"]},
        "half": {"discoverable": ["s1*"]},
        "one server": {"discoverable": names[:1]},
    }
    async with opened(FakeSource(plugins), names, **agents) as board:
        await board.ready()
        before = resident()
        subjects = make_subjects(board.services)
        rows = [await _first(subjects, "one server", "the whole catalog"), await _first(subjects, "half", "half")]
        rows.append(await _first(subjects, "everything", "everything"))
        rows[0]["MiB of all indexes"] = round(resident() - before)
        rows += [await _typed(subjects, agent, texts) for agent in agents]
        return rows


async def _first(subjects: OperatorSubjects, agent: str, what: str) -> Row:
    with watched() as watch:
        began = time.perf_counter()
        found = await subjects.search.for_agent(agent, "send a message")
        answered = time.perf_counter() - began
        while found.indexing:
            found = await subjects.search.for_agent(agent, "send a message")
        stands = time.perf_counter() - began
        await asyncio.sleep(0.01)
    return {
        "what": f"first search, {what}",
        "tools": found.tools,
        "answer s": round(answered, 3),
        "index stands after s": round(stands, 2),
        "loop longest ms": round(watch.longest, 1),
    }


async def _typed(subjects: OperatorSubjects, agent: str, texts: list[str]) -> Row:
    times: list[float] = []
    processor: list[float] = []
    with watched() as watch:
        for text in texts:
            for end in range(1, min(len(text), LETTERS) + 1):
                began, worked = time.perf_counter(), time.thread_time()
                await subjects.search.for_agent(agent, text[:end])
                times.append(1000 * (time.perf_counter() - began))
                processor.append(1000 * (time.thread_time() - worked))
                await asyncio.sleep(0)
    return {
        "what": f"keystrokes, {agent}",
        "count": len(times),
        **{f"ms p{p}": round(float(np.percentile(times, p)), 1) for p in (50, 95, 99)},
        **{f"CPU p{p}": round(float(np.percentile(processor, p)), 1) for p in (50, 95)},
        "loop longest ms": round(watch.longest, 1),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks keystrokes", description=__doc__)
    parser.add_argument("--tools", type=int, default=20_000, metavar="N", help="so many tools")
    parser.add_argument("--queries", type=int, default=30, metavar="N", help="so many requests are typed")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    texts = [query.text for query in requests(options.queries)]
    rows = asyncio.run(measured(options.tools, texts))
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table

    for _, group in itertools.groupby(rows, key=lambda row: tuple(row)):
        table("keystrokes", list(group))
    return 0
