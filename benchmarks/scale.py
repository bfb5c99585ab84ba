"""What the ranker costs from 200 to 100,000 tools: build, one plugin changed, a search, memory; bm25s in the same run.

``python -m benchmarks scale [--tools N …] [--queries N] [--json]``. Catalogs are those of the development sets and
the two that have no queries, in plugins of other names where there are more; the requests are the sets' own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.retrieving.engines import Bm25s, Engine, Ours
from benchmarks.retrieving.sets import Query, folder, pooled, read
from pegboard.core.surface.searchable import Searchable

SIZES = (200, 1_000, 3_000, 10_000, 40_000, 100_000)
CATALOGS = ("bfcl_v4", "seal_tools", "aws_ops", "google_ops", "mcp_extra")
ASKED = ("bfcl_v4", "seal_tools", "aws_ops")
CHANGED = 50
CHANGES = 5

Row = dict[str, object]


def requests(count: int) -> list[Query]:
    """Return so many requests, a third from each of three sets."""
    found = [read(name, count // len(ASKED) + 1).queries for name in ASKED]
    return [query for three in zip(*found, strict=False) for query in three][:count]


def row(size: int, queries: list[Query]) -> Row:
    among = pooled(size, CATALOGS)
    before = resident()
    ours = Ours()
    build = seconds(lambda: ours.build(among))
    memory = resident() - before
    changes = [seconds(lambda number=number: _change(ours, number)) for number in range(CHANGES)]
    ours.build(among)
    found: Row = {
        "tools": size,
        "build s": round(build, 2),
        "plugin of 50 changed, ms": round(1000 * sorted(changes)[CHANGES // 2], 1),
        "MiB": round(memory),
        **_times("", ours, queries),
    }
    other = Bm25s(stemmed=True, parameters=True)
    found["bm25s build s"] = round(seconds(lambda: other.build(among)), 2)
    return {**found, **_times("bm25s ", other, queries)}


def _change(ours: Ours, number: int) -> None:
    """Give one plugin new tools, and index what is new."""
    tools = list(ours.among.tools)
    start = (number * len(tools)) // CHANGES // 2
    for place in range(start, min(start + CHANGED, len(tools))):
        tools[place] = replace(tools[place], description=f"{tools[place].description} Change {number}.")
    changed = Searchable(tools=tuple(tools), plugins=ours.among.plugins)
    asyncio.run(ours.ranker.prepare(changed))


def _times(prefix: str, engine: Engine, queries: list[Query]) -> Row:
    """Return the percentiles of one search, by the clock and by the processor time of its thread."""
    for query in queries[:50]:
        engine.search(query)
    clock: list[float] = []
    processor: list[float] = []
    for query in queries:
        start, worked = time.perf_counter(), time.thread_time()
        engine.search(query)
        clock.append(time.perf_counter() - start)
        processor.append(time.thread_time() - worked)
    return {
        f"{prefix}ms p50": round(1000 * float(np.percentile(clock, 50)), 3),
        f"{prefix}ms p95": round(1000 * float(np.percentile(clock, 95)), 3),
        f"{prefix}CPU p50": round(1000 * float(np.percentile(processor, 50)), 3),
        f"{prefix}CPU p95": round(1000 * float(np.percentile(processor, 95)), 3),
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident() -> float:
    """Return the MiB that this process has in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__)
    parser.add_argument("--tools", nargs="*", type=int, default=list(SIZES), metavar="N", help="sizes of the catalog")
    parser.add_argument("--queries", type=int, default=600, metavar="N", help="so many requests")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    folder()
    rows = [_apart(size, options.queries) if len(options.tools) > 1 else _here(size, options) for size in options.tools]
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table

    table("scale", rows)
    return 0


def _here(size: int, options: argparse.Namespace) -> Row:
    print(f"measuring {size} tools …", file=sys.stderr)
    return row(size, requests(options.queries))


def _apart(size: int, queries: int) -> Row:
    """Return the row of one size, measured in a process of its own: memory that was freed stays with a process."""
    command = [sys.executable, "-m", "benchmarks", "scale", "--json", "--tools", str(size), "--queries", str(queries)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)[0]
