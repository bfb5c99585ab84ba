"""What operators wait for, and what that costs callers: ``python -m benchmarks console [--quick] [--json]``.

20,000 tools, 50 agents and 1,000 sessions behind one `pegboard serve`, over HTTP and in a real browser. A time depends
on what else the machine does; ``CPU`` is what the gateway's process worked for an answer, which does not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.consoles import answers_timed, browsing, crowds, edits_timed, site
from benchmarks.consoles.answers_timed import Row
from benchmarks.consoles.visitors import Visitor
from benchmarks.retrieving.sets import folder

PARTS = ("answers", "changes", "calls", "edits")


async def measured(where: Path, size: site.Size, *, rounds: int, parts: Sequence[str]) -> dict[str, list[Row]]:
    """Return the rows of each table."""
    found: dict[str, list[Row]] = {}
    if "edits" in parts:
        note("edits …")
        found["an edit's proposal"] = await edits_timed.measured(where, size.tools, 3)
    if list(parts) == ["edits"]:
        return found
    async with site.catalog(site.written(where, size)) as port:
        config = site.configured(where, port)
        note(f"{size.sessions:,} sessions over {size.tools:,} tools …")
        found["the store after the calls of the days before"] = [await site.worked(config, size)]
        async with site.gateway(config, "--no-console") as without:
            await crowds.listed(without)
            note("without a console …")
            before = without.memory()
            started_without = without.start
        async with site.gateway(config) as gateway:
            note(f"with a console: {gateway.origin}")
            visitor = Visitor(gateway.origin)
            opened = await visitor.sign_in(gateway.code)
            await crowds.listed(gateway)
            memory: Row = {"without MiB": round(before), "with, opened MiB": round(gateway.memory())}
            first: Row = {
                "start s": round(gateway.start, 2),
                "start without s": round(started_without, 2),
                "first opening ms": round(1000 * opened),
            }
            if "answers" in parts:
                found |= await answers_timed.measured(gateway, visitor, rounds)
            if "changes" in parts:
                found["a change at the open page"] = await browsing.measured(gateway, visitor, config, rounds)
            if "calls" in parts:
                found["calls beside 20 open pages"] = await crowds.measured(gateway, visitor, rounds)
            memory["after all MiB"] = round(gateway.memory())
            found["the console's start and memory"] = [{**first, **memory}]
            await visitor.close()
    return found


def note(text: str) -> None:
    """Say on the error stream what is measured now."""
    print(text, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Measure and print tables, or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks console", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sessions and rounds")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    size = site.Size(sessions=100, calls=300, past=100_000) if options.quick else site.Size()
    parts = [part.strip() for part in options.only.split(",")]
    if parts != ["edits"]:
        folder()
    # SIGTERM ends it as Ctrl-C does: every child is stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as name:
        found = asyncio.run(measured(Path(name), size, rounds=10 if options.quick else 40, parts=parts))
    if options.json:
        print(json.dumps({"load average": [busy, os.getloadavg()[0]], "tables": found}, indent=2))
        return 0
    from benchmarks.__main__ import table

    for title, rows in found.items():
        table(title, rows)
    print(f"\nLoad of the machine: {busy:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} processors.")
    return 0
