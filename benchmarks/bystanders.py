"""What callers wait for while others leave or say nothing: ``python -m benchmarks bystanders [--records N] [--json]``.

One `pegboard serve` with 1,024 files over a trail of 50,000 records. A client calls a tool every 20 ms, and opens a
page every tenth time, while eight exports of the trail are asked for and dropped after half a second, read to their
end, or while one address opens 2,000 connections that say nothing and 800 that send half of their headers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.consoles import site
from benchmarks.consoles.answers_timed import Row
from benchmarks.consoles.visitors import Visitor
from benchmarks.gateways.clients import CallError, Client, Http
from pegboard import Pegboard
from pegboard.ports import AuditRecord

CONFIG = """
store: sqlite:///state.db
plugins: {clock: {python: pegboard.quickstart.clock}}
agents: {default: {tools: [clock]}}
"""
PAUSE = 0.02
DROPPED = 0.5
"""Seconds after which a reader leaves."""
SILENT, HALF = 2_000, 800
FILES = 1_024
"""How many files a process may usually open."""
EXPORTS = 8


async def recorded(config: Path, count: int) -> None:
    """Fill the trail."""
    record = AuditRecord(
        at=datetime.now(UTC), kind="call", principal="local", agent="default", session="s", turn=1,
        subject="current_time", decision="allowed", reason="It is static.", duration=1.2, outcome="ok",
        arguments="0123456789abcdef", by="",
    )  # fmt: skip
    async with Pegboard.open(config) as board:
        for _ in range(count // 1_000):
            await board.services.store.record(*[record] * 1_000)


class Bystander:
    """A client and an operator who go on, and what they wait for, in milliseconds."""

    def __init__(self, client: Client, visitor: Visitor) -> None:
        self._client = client
        self._visitor = visitor
        self.calls: list[float] = []
        self.pages: list[float] = []
        self.again = 0

    async def go_on(self, until: asyncio.Event) -> None:
        """Call and look until something has happened."""
        while not until.is_set():
            await self._timed(self.calls, lambda: self._client.call("current_time", {}))
            if not len(self.calls) % 10:
                await self._timed(self.pages, lambda: self._visitor.get("/console/sessions"))
            await asyncio.sleep(PAUSE)

    async def _timed(self, into: list[float], work: Callable[[], Awaitable[object]]) -> None:
        """Time a request; one whose connection was closed between two requests is made again, as clients do."""
        began = time.perf_counter()
        try:
            await work()
        except CallError:
            self.again += 1
            await work()
        into.append(1000 * (time.perf_counter() - began))


async def connected(origin: str, sent: bytes) -> asyncio.StreamWriter:
    """Open a connection and send a part of a request."""
    parts = urlsplit(origin)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(sent)
    await writer.drain()
    return writer


async def exports(origin: str, cookie: str, *, whole: bool) -> None:
    """Ask for the trail eight times at once, and leave, or read all that comes."""

    async def export() -> None:
        parts = urlsplit(origin)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = f"GET /console/activity/export?format=csv HTTP/1.1\r\nhost: {parts.netloc}\r\ncookie: {cookie}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n".encode())
        if whole:
            await reader.read()
        else:
            await asyncio.sleep(DROPPED)
        writer.close()

    await asyncio.gather(*(export() for _ in range(EXPORTS)))
    await asyncio.sleep(0 if whole else 2)


async def silence(origin: str) -> None:
    """Open connections that say nothing, and others that say half; keep them for a while."""
    half = b"POST /mcp HTTP/1.1\r\nhost: 127"
    open_ones = [await connected(origin, b"" if number < SILENT else half) for number in range(SILENT + HALF)]
    await asyncio.sleep(2)
    for writer in open_ones:
        writer.close()


async def measured(folder: Path, records: int) -> list[Row]:
    """Return what callers waited for."""
    config = folder / "pegboard.yaml"
    config.write_text(CONFIG)
    await recorded(config, records)
    rows: list[Row] = []
    async with site.gateway(config) as gateway:
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        visitor = Visitor(gateway.origin)
        await visitor.sign_in(gateway.code)
        client = Client(Http(f"{gateway.origin}/mcp"))
        await client.connect()
        await client.call("current_time", {})
        meanwhile: dict[str, Callable[[], Awaitable[None]]] = {
            "nothing": lambda: asyncio.sleep(3),
            f"{EXPORTS} dropped exports": lambda: exports(gateway.origin, visitor.cookie, whole=False),
            f"{EXPORTS} exports": lambda: exports(gateway.origin, visitor.cookie, whole=True),
            f"{SILENT} silent, {HALF} half headers": lambda: silence(gateway.origin),
            "nothing again": lambda: asyncio.sleep(3),
        }
        for what, happens in meanwhile.items():
            rows.append(await _row(Bystander(client, visitor), what, happens))
        await client.close()
    return rows


async def _row(bystander: Bystander, what: str, happens: Callable[[], Awaitable[None]]) -> Row:
    over = asyncio.Event()
    going = asyncio.create_task(bystander.go_on(over))
    began = time.perf_counter()
    await happens()
    over.set()
    took = time.perf_counter() - began
    await going
    calls, pages = bystander.calls, bystander.pages
    return {
        "meanwhile": what,
        "s": round(took, 1),
        "calls": len(calls),
        "p50 ms": round(float(np.percentile(calls, 50)), 1),
        "p95 ms": round(float(np.percentile(calls, 95)), 1),
        "longest ms": round(max(calls), 1),
        "pages": len(pages),
        "longest page ms": round(max(pages, default=0), 1),
        "connected again": bystander.again,
    }


def main(arguments: Sequence[str]) -> int:
    """Measure and print a table, or one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks bystanders", description=__doc__)
    parser.add_argument("--records", type=int, default=50_000, help="of the trail")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as name:
        rows = asyncio.run(measured(Path(name), options.records))
    if options.json:
        print(json.dumps({"load average": [busy, os.getloadavg()[0]], "rows": rows}, indent=2))
        return 0
    from benchmarks.__main__ import table

    table("bystanders", rows)
    print(f"\nLoad of the machine: {busy:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} processors.")
    return 0
