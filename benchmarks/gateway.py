"""Gateways side by side, in front of the same real servers: ``python -m benchmarks gateway``.

Everything is installed under ``.bench/`` and listens on 127.0.0.1. Times depend on the machine and what
else it does: all gateways run at once and are timed round after round, call by call beside a direct
connection, so compare what is *added*.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.gateways import upstreams
from benchmarks.gateways.adapter import Adapter
from benchmarks.gateways.clients import CallError
from benchmarks.gateways.contextforge import ContextForge
from benchmarks.gateways.direct import Direct
from benchmarks.gateways.fastmcp_proxy import FastMcpProxy
from benchmarks.gateways.installing import InstallError
from benchmarks.gateways.lazy_mcp import LazyMcp
from benchmarks.gateways.mcp_compressor import McpCompressor
from benchmarks.gateways.measuring import QUICK, Scale, Trial
from benchmarks.gateways.ours import Pegboard
from benchmarks.gateways.pass_through import PassThrough
from benchmarks.gateways.pmcp import Pmcp
from benchmarks.gateways.racing import KILLED, OWN, race

GATEWAYS: tuple[Callable[[], Adapter], ...] = (
    Direct, Pegboard, PassThrough, McpCompressor, LazyMcp, Pmcp, FastMcpProxy,
    lambda: FastMcpProxy("auto"), ContextForge,
)  # fmt: skip
SERVERS: dict[int, Callable[[Path], list[upstreams.Server]]] = {
    1: upstreams.tiny, 5: upstreams.five, 13: upstreams.thirteen,
}  # fmt: skip
SERVERS_HELP = "1: a tiny one, to measure gateways and little else; 13: lists and starts only"
TABLES = {
    "What a model gets": (
        "era", "listed", "list tokens", "instruction tokens", "reachable", "first start s", "first call s",
        "later start s",
    ),
    "Calls": (
        "call p50 ms", "call p95 ms", "direct p50 ms", "added p50 ms", "added p95 ms", "calls/s 1", "calls/s 8",
        "calls/s 32", "of direct 1", "of direct 8", "of direct 32", "RSS MiB",
    ),
    "Faults": (KILLED, OWN, "hanging: list s", "hanging: call s", "left behind", "failed", "note"),
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the trials that are asked for and print tables, or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks gateway", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--only", default="", help="names of gateways, as far as they are unique: pegboard,lazy")
    parser.add_argument("--transport", choices=["stdio", "http"], help="only over this one")
    parser.add_argument("--calls", action="store_true", help="only calls and kills, nothing of starts and lists")
    parser.add_argument("--quick", action="store_true", help="fewer calls and starts")
    parser.add_argument("--servers", type=int, choices=list(SERVERS), default=5, help=SERVERS_HELP)
    options = parser.parse_args(arguments)
    wanted = [name.strip() for name in options.only.split(",") if name.strip()]
    chosen = [made for make in GATEWAYS if _wanted((made := make()).name, wanted)]
    if not chosen:
        parser.error(f"no gateway is called that; there are {', '.join(make().name for make in GATEWAYS)}")
    # SIGTERM ends it as Ctrl-C does: every child is stopped on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows: list[dict[str, Any]] = []
    code = 0
    scale = replace(QUICK if options.quick else Scale(), alone=not options.calls)
    try:
        asyncio.run(_all(rows, chosen, options.transport, options.servers, scale))
    except KeyboardInterrupt:
        code = 130  # what was measured until then is printed
    if options.json:
        print(json.dumps({"servers": options.servers, "rows": rows}, indent=2, ensure_ascii=False))
    else:
        for title, heads in TABLES.items():
            _table(title, heads, rows)
    return code


def _wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(name.startswith(start) for start in wanted)


async def _all(
    rows: list[dict[str, Any]], chosen: Sequence[Adapter], transport: str | None, count: int, scale: Scale
) -> None:
    """Add a row for each gateway and way in, as they are measured."""
    folder = Path(tempfile.mkdtemp(prefix="pegboard-bench-"))
    try:
        servers = SERVERS[count](folder)
        trials = [
            Trial(adapter, way, servers, folder, scale)
            for adapter in chosen
            for way in adapter.transports
            if transport in (None, way)
        ]
        for trial in trials:
            print(f"{trial.adapter.name} over {trial.transport}", file=sys.stderr)
            rows.append(await _row(trial, folder))
        if count < 13:
            for way in ("stdio", "http"):
                racing = [trial for trial in trials if trial.transport == way]
                await _race(rows, [trial for trial in racing if not trial.adapter.apart], scale)
                for trial in racing:
                    if trial.adapter.apart:
                        await _race(rows, [trial], scale)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _race(rows: list[dict[str, Any]], trials: Sequence[Trial], scale: Scale) -> None:
    """Add to the rows what the calls of these came to, all at once."""
    able = {row["gateway"] for row in rows if "cannot be installed" not in row.get("failed", "")}
    racing = [trial for trial in trials if trial.title in able]
    if not racing:
        return
    print(f"calls: {'; '.join(trial.title for trial in racing)}", file=sys.stderr)
    raced: dict[str, dict[str, Any]] = {trial.title: {} for trial in racing}
    try:
        await race(raced, racing, scale)
    except (CallError, TimeoutError, OSError) as error:
        print(f"  it cannot be run: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        for title, found in raced.items():
            row = next(row for row in rows if row["gateway"] == title)
            failed = f"{row.get('failed', '')} {found.pop('failed', '')}".strip()
            row |= found
            if failed:
                row["failed"] = failed
            print(f"  {title}: {json.dumps(found, ensure_ascii=False)}", file=sys.stderr)


async def _row(trial: Trial, folder: Path) -> dict[str, Any]:
    """Return all that was measured of a gateway; what failed is a text in its place."""
    row: dict[str, Any] = {"gateway": trial.title, "note": trial.adapter.note}
    try:
        trial.adapter.install()
    except InstallError as error:
        return {**row, "failed": f"cannot be installed: {error}"}
    direct = isinstance(trial.adapter, Direct)
    setup = trial.setup("first")
    if not trial.scale.alone or (direct and trial.transport == "http"):  # those are the servers of stdio
        return row
    parts: list[tuple[str, Callable[[], Awaitable[dict[str, Any]]]]] = [
        ("first start", lambda: trial.straight(setup) if direct else trial.first(setup)),
        ("later starts", lambda: trial.later(setup)),
    ]
    if len(trial.servers) < 13 and not direct:
        hung = trial.setup("hanging", upstreams.hanging(folder))
        parts.append(("hanging", lambda: trial.hanging(hung)))
    for name, part in parts:
        print(f"  {name} …", file=sys.stderr)
        try:
            async with asyncio.timeout(trial.scale.longest):
                found = await part()
            print(f"    {json.dumps(found, ensure_ascii=False)}", file=sys.stderr)
            row |= found
        except TimeoutError:
            row["failed"] = f"{row.get('failed', '')} {name}: no answer in time;".strip()
        except (CallError, OSError, KeyError, ValueError, TypeError, IndexError) as error:
            row["failed"] = f"{row.get('failed', '')} {name}: {type(error).__name__}: {error};".strip()[:400]
    return row


def _table(title: str, heads: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    used = [head for head in heads if any(row.get(head) not in (None, "") for row in rows)]
    if not used:
        return
    print(f"\n## {title}\n")
    print("| gateway | " + " | ".join(used) + " |")
    print("|---" * (len(used) + 1) + "|")
    for row in rows:
        cells = (str(row.get(head, "")).replace("|", "\\|").replace("\n", " ") for head in used)
        print(f"| {row['gateway']} | " + " | ".join(cells) + " |")
