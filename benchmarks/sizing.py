"""What a call costs at one, two and three replicas: ``python -m benchmarks sizing [--quick] [--json]``.

Three replicas serve at any time, on stores of their own, two on one store, or all three on one: so the machine is as
busy each time, and what differs is what replicas on one store cost each other. Every replica has as many clients as any
other, of the 2026-07-28 era, and each calls a tool that does nothing, at a pace that leaves the processors free. A call
has no transaction of its own: what is recorded and counted goes in batches, some thirty in a second.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gateways import processes
from benchmarks.gateways.clients import Client, Http
from benchmarks.replicas.cluster import BEACONS, Cluster, token
from benchmarks.replicas.soak import write_project
from pegboard.stores.sql.address import address_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from postgres_server import PostgresServer

TOGETHER = {1: (1, 1, 1), 2: (2, 1), 3: (3,)}
"""How many replicas have a store together, by the number that is measured."""
CLIENTS = 8
"""How many clients each replica has."""
PACE = 0.04
"""How often a client calls, in seconds."""
WARM = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What some seconds with so many replicas on a store came to.

    ``replica`` and ``database`` are milliseconds of processor time for a call, ``batches`` how many a replica has in a
    second, ``memory`` the MiB of one.
    """

    calls: int
    replica: float
    database: float
    batches: float
    memory: float


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sizing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of five seconds each, in place of three of ten")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(argv)
    rounds, seconds = (1, 5.0) if options.quick else (3, 10.0)
    os.environ["PEGBOARD_KEY"] = base64.b64encode(secrets.token_bytes(32)).decode()
    server = PostgresServer(durable=True)
    try:
        rows = _rows(_measured(server, rounds, seconds))
    finally:
        server.stop()
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table

    table("sizing", rows)
    return 0


def _measured(server: PostgresServer, rounds: int, seconds: float) -> dict[tuple[str, int], list[Measured]]:
    """Return what each round came to, by kind of store and number of replicas on it."""
    found: dict[tuple[str, int], list[Measured]] = {}
    for turn in range(rounds):
        for size in TOGETHER if turn % 2 else reversed(TOGETHER):
            for kind in ("SQLite", "PostgreSQL"):
                print(f"{kind}, {size} on a store …", file=sys.stderr)
                with tempfile.TemporaryDirectory(prefix="pegboard-sizing-") as name:
                    places = [Path(name) / f"{number}" for number in range(len(TOGETHER[size]))]
                    urls = [server.address() if kind == "PostgreSQL" else f"sqlite:///{one}.db" for one in places]
                    for place, url, count in zip(places, urls, TOGETHER[size], strict=True):
                        place.mkdir()
                        write_project(place, url, CLIENTS * count)
                    own = server if kind == "PostgreSQL" else None
                    one = asyncio.run(_served(places, urls, TOGETHER[size], seconds, own))
                found.setdefault((kind, size), []).append(one)
    return found


async def _served(
    places: Sequence[Path], urls: Sequence[str], sizes: Sequence[int], seconds: float, server: PostgresServer | None
) -> Measured:
    """Let replicas serve; return what those came to that are as many on a store as the first."""
    clusters = [Cluster(place) for place in places]
    try:
        for cluster, size in zip(clusters, sizes, strict=True):
            await cluster.start(size)
        measured = [number for number, size in enumerate(sizes) if size == sizes[0]]
        pids = [[one.process.pid for one in cluster.replicas if one.process is not None] for cluster in clusters]
        own = [pid for number in measured for pid in pids[number]]
        calls, over = [[0] * (CLIENTS * size) for size in sizes], asyncio.Event()

        async def so_far() -> tuple[float, ...]:
            """Return calls, those that are measured, seconds of their replicas and of the database, and batches."""
            mine = sum(sum(calls[number]) for number in measured)
            of_database = _spent(processes.tree(server.pid)) if server is not None else 0.0
            batches = [await _batches(server, urls[number]) for number in measured]
            return sum(map(sum, calls)), mine, _spent(own), of_database, sum(batches)

        async with asyncio.TaskGroup() as tasks:
            for cluster, done in zip(clusters, calls, strict=True):
                for number in range(len(done)):
                    port = cluster.replicas[number % len(cluster.replicas)].port
                    tasks.create_task(_call(port, number, done, over))
            await asyncio.sleep(WARM)
            before = await so_far()
            await asyncio.sleep(seconds)
            after = await so_far()
            memory = statistics.mean(processes.resident(pid) for pid in own)
            over.set()
        every, mine, spent, of_database, batches = (b - a for a, b in zip(before, after, strict=True))
        return Measured(
            calls=int(mine),
            replica=spent / mine * 1000,
            database=of_database / every * 1000,
            batches=batches / seconds / len(own),
            memory=memory,
        )
    finally:
        for cluster in clusters:
            await cluster.stop()


async def _call(port: int, number: int, calls: list[int], over: asyncio.Event) -> None:
    """Call a tool at a pace until it is over."""
    client = Client(
        Http(f"http://127.0.0.1:{port}/mcp?session=s{number}", {"authorization": f"Bearer {token(number)}"})
    )
    await client.connect()
    due = time.monotonic() + PACE * number / CLIENTS
    while not over.is_set():
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due += PACE
        await client.request("tools/call", {"name": f"{BEACONS[0]}_do", "arguments": {"text": "x"}})
        calls[number] += 1
    await client.close()


def _spent(pids: Sequence[int]) -> float:
    """Return the seconds that some processes have computed, those of their children that have ended included."""
    ticks = 0
    for pid in pids:
        cells = (processes.PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, cells[11:15]))
    return ticks / TICKS


async def _batches(server: PostgresServer | None, url: str) -> int:
    """Return how many batches the replicas of a store in a database have written."""
    if server is None:
        return 0
    import psycopg

    query = f"SELECT coalesce(sum(number), 0)::bigint FROM {address_of(url).quoted}.batch"
    async with await psycopg.AsyncConnection.connect(server.conninfo, autocommit=True) as connection:
        row = await (await connection.execute(query.encode())).fetchone()
    assert row is not None
    return row[0]


def _rows(found: dict[tuple[str, int], list[Measured]]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for (kind, size), rounds in sorted(found.items(), key=lambda item: (item[0][0] == "PostgreSQL", item[0][1])):
        alone = found[kind, 1]
        shared = kind == "PostgreSQL"
        rows.append(
            {
                "store": kind,
                "replicas on a store": size,
                "calls": sum(one.calls for one in rounds),
                "ms of a replica, a call": _beside(rounds, alone, lambda one: one.replica, "{:.2f}"),
                "ms of the database": _beside(rounds, alone, lambda one: one.database, "{:.2f}") if shared else "",
                "its batches a second": _beside(rounds, alone, lambda one: one.batches, "{:.1f}") if shared else "",
                "MiB of a replica": round(statistics.median(one.memory for one in rounds)),
            }
        )
    return rows


def _beside(
    rounds: Sequence[Measured], alone: Sequence[Measured], of: Callable[[Measured], float], form: str, /
) -> str:
    """Return the median of the rounds, and how much more that is than with one replica."""
    here, there = (statistics.median(map(of, some)) for some in (rounds, alone))
    more: Any = f" ({(here / there - 1) * 100:+.0f}%)" if rounds is not alone else ""
    return form.format(here) + more


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
