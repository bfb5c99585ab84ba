"""Which engine finds the tools that requests need: every set of the data with queries, every engine, one run.

``python -m benchmarks retrieval [--sets NAME …] [--engines TEXT …] [--sample N] [--nothing] [--json]``
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.retrieving.engines import ENGINES, Engine, excluded
from benchmarks.retrieving.measures import MEASURES, Result, interval, measured
from benchmarks.retrieving.nothing_fits import judged, rankers
from benchmarks.retrieving.sets import DEVELOPMENT, QuerySet, named, read

LARGE = 3_000
"""Of a catalog with more tools a slow engine is asked only the first ``FEW`` queries of the sample's order."""
FEW = 300
WARM = 20
LEARNT = (
    "The shipped table has learnt the development requests: rows of Pegboard with it say nothing about other catalogs. "
    "What users get are rows of 'set excluded': --tables FOLDER, see docs/retrieval.md."
)

Row = dict[str, object]


@dataclass(slots=True)
class Table:
    """The results by engine and set."""

    results: dict[str, dict[str, Result]] = field(default_factory=dict)

    def rows(self) -> list[Row]:
        found: list[Row] = []
        for engine, by_set in self.results.items():
            found += [self._row(engine, name, [result]) for name, result in by_set.items()]
            development = [by_set[name] for name in DEVELOPMENT if name in by_set]
            if len(development) > 1:
                found.append(self._row(engine, f"mean of {len(development)}", development))
        return found

    def _row(self, engine: str, name: str, results: list[Result]) -> Row:
        row: Row = {"engine": engine, "set": name, "queries": sum(len(result.values) for result in results)}
        for number, measure in enumerate(MEASURES):
            low, high = interval(results, number)
            mean = np.mean([result.mean(number) for result in results])
            row[measure] = f"{mean:.1f} ({low:.1f}–{high:.1f})"
        halves = [np.mean([result.half(1, half) for result in results]) for half in (0, 1)]
        seconds = np.concatenate([result.seconds for result in results])
        return {
            **row,
            "R@5 halves": f"{halves[0]:.1f} / {halves[1]:.1f}",
            "ms p50": round(1000 * float(np.percentile(seconds, 50)), 3),
            "ms p95": round(1000 * float(np.percentile(seconds, 95)), 3),
            "build s": round(sum(result.build for result in results), 2),
            "MiB": max((round(result.memory, 1) for result in results if result.memory is not None), default="–"),
        }


def run(make: Callable[[], Engine], given: QuerySet, *, memory: bool = True) -> Result:
    """Return what an engine does on a set; its memory is measured in a build of its own."""
    engine = make()
    start = time.perf_counter()
    engine.build(given.among)
    build = time.perf_counter() - start
    queries = given.queries
    if engine.slow and len(given.among.tools) > LARGE:
        queries = queries[:: len(queries) // FEW + 1]
    for query in queries[:WARM]:
        engine.search(query)
    called = getattr(engine, "called", None)
    values: list[tuple[float, ...]] = []
    seconds: list[float] = []
    for query in queries:
        start = time.perf_counter()
        found = engine.search(query)
        seconds.append(time.perf_counter() - start)
        if called is not None:
            called(query)
        values.append(measured(query, found))
    close = getattr(engine, "close", None)
    if close is not None:
        close()
    return Result(
        values=np.array(values),
        halves=np.array([query.half for query in queries]),
        seconds=np.array(seconds),
        build=build,
        memory=_memory(make, given) if memory and not engine.slow else None,
    )


def _memory(make: Callable[[], Engine], given: QuerySet) -> float:
    """Return the MiB that an engine keeps for a catalog."""
    engine = make()
    tracemalloc.start()
    engine.build(given.among)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 2**20


def _untaught(engine: str) -> bool:
    return "lexical" in engine or "set excluded" in engine


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks retrieval", description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[], metavar="NAME", help="only these sets; all by default")
    parser.add_argument("--engines", nargs="*", default=[], metavar="TEXT", help="only engines whose names have these")
    parser.add_argument("--sample", type=int, metavar="N", help="so many queries of each set; all by default")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory unmeasured: half the builds")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="tables trained without a set: `make table`")
    parser.add_argument("--nothing", action="store_true", help="measure whether it is known when nothing fits instead")
    options = parser.parse_args(arguments)
    if options.nothing:
        return _shown("nothing fits", _nothing(options), as_json=options.json)

    def chosen(name: str) -> dict[str, Callable[[], Engine]]:
        known = ENGINES | (excluded(options.tables, name) if options.tables else {})
        wanted = [text.lower() for text in options.engines]
        return {e: make for e, make in known.items() if not wanted or any(text in e.lower() for text in wanted)}

    if not chosen("any"):
        parser.error(f"no engine has {options.engines[0]!r} in its name: there are {', '.join(ENGINES)}")
    table = Table()
    for name in named(options.sets):
        given = read(name, options.sample)
        for engine, make in chosen(name).items():
            print(f"running {engine} on {name} …", file=sys.stderr)
            result = run(make, given, memory=not options.no_memory)
            table.results.setdefault(engine, {})[name] = result
    if any("Pegboard" in engine and not _untaught(engine) for engine in table.results):
        print(LEARNT, file=sys.stderr)
    return _shown("retrieval", table.rows(), as_json=options.json)


def _nothing(options: argparse.Namespace) -> list[Row]:
    """Return what our rankers know of whether anything fits, a row for each set."""
    rows: list[Row] = []
    for name in named(options.sets):
        given = read(name, options.sample)
        for engine, make in rankers(options.tables, name).items():
            print(f"asking {engine} whether anything fits on {name} …", file=sys.stderr)
            rows.append({"engine": engine, "set": name, "queries": len(given.queries), **judged(make(), given).row()})
    return sorted(rows, key=lambda row: [one["engine"] for one in rows].index(row["engine"]))


def _shown(title: str, rows: list[Row], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table as printed

    printed(title, rows)
    return 0
