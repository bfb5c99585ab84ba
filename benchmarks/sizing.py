"""What a call costs at one, two and three replicas: ``python -m benchmarks sizing [--quick] [--json]``.

Each number of replicas serves for some seconds, on a file and on a database, in turns. Every replica has as many
clients as any other, of the 2026-07-28 era, and each calls a tool that does nothing, at a pace that leaves the
processors free. So what is printed for a call is what replicas cost each other. A call has no transaction of its own:
what is recorded and counted goes in batches, some thirty in a second, and what else a replica asks hangs on the time.
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
from pegboard.stores.postgres.address import address_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from postgres_server import PostgresServer

SIZES = (1, 2, 3)
CLIENTS = 8
"""How many clients each replica has."""
PACE = 0.04
"""How often a client calls, in seconds."""
WARM = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What some seconds with so many replicas came to.

    ``replica`` and ``database`` are milliseconds of processor time for a call, ``batches`` and ``others`` how many
    transactions a replica has in a second, ``memory`` the MiB of one.
    """

    calls: int
    replica: float
    database: float
    batches: float
    others: float
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
    """Return what each round came to, by kind of store and number of replicas."""
    found: dict[tuple[str, int], list[Measured]] = {}
    for turn in range(rounds):
        for size in SIZES if turn % 2 else reversed(SIZES):
            for kind in ("SQLite", "PostgreSQL"):
                print(f"{kind}, {size} replicas …", file=sys.stderr)
                with tempfile.TemporaryDirectory(prefix="pegboard-sizing-") as name:
                    folder = Path(name)
                    url = server.address() if kind == "PostgreSQL" else f"sqlite:///{folder / 'store.db'}"
                    write_project(folder, url, CLIENTS * size)
                    database = Watched(server, url) if kind == "PostgreSQL" else None
                    one = asyncio.run(_served(folder, size, seconds, database))
                found.setdefault((kind, size), []).append(one)
    return found


@dataclass(frozen=True, slots=True)
class Watched:
    """A store in a database, and its server."""

    server: PostgresServer
    url: str

    async def transactions(self) -> tuple[int, int]:
        """Return how many there were, and how many of them were batches."""
        import psycopg

        schema = address_of(self.url).quoted
        query = (
            "SELECT (SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database),"
            f" (SELECT coalesce(sum(number), 0)::bigint FROM {schema}.flushes)"
        )
        async with await psycopg.AsyncConnection.connect(self.server.conninfo, autocommit=True) as connection:
            row = await (await connection.execute(query.encode())).fetchone()
        assert row is not None
        return row


async def _served(folder: Path, size: int, seconds: float, database: Watched | None) -> Measured:
    cluster = Cluster(folder)
    try:
        await cluster.start(size)
        pids = [one.process.pid for one in cluster.replicas if one.process is not None]
        over, calls = asyncio.Event(), [0] * (CLIENTS * size)
        async with asyncio.TaskGroup() as tasks:
            for number in range(CLIENTS * size):
                tasks.create_task(_call(cluster.replicas[number % size].port, number, calls, over))
            await asyncio.sleep(WARM)
            before = await _so_far(pids, database, calls)
            await asyncio.sleep(seconds)
            after = await _so_far(pids, database, calls)
            memory = statistics.mean(processes.resident(pid) for pid in pids)
            over.set()
        done, own, of_database, transactions, batches = (b - a for a, b in zip(before, after, strict=True))
        return Measured(
            calls=int(done),
            replica=own / done * 1000,
            database=of_database / done * 1000,
            batches=batches / seconds / size,
            others=(transactions - batches) / seconds / size,
            memory=memory,
        )
    finally:
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


async def _so_far(pids: Sequence[int], database: Watched | None, calls: Sequence[int]) -> tuple[float, ...]:
    """Return calls, seconds of the replicas and of the database, transactions, and how many of them were batches."""
    if database is None:
        return sum(calls), _spent(pids), 0.0, 0, 0
    return (
        sum(calls),
        _spent(pids),
        _spent(processes.tree(database.server.pid)),
        *await database.transactions(),
    )


def _rows(found: dict[tuple[str, int], list[Measured]]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for (kind, size), rounds in sorted(found.items(), key=lambda item: (item[0][0] == "PostgreSQL", item[0][1])):
        alone = found[kind, SIZES[0]]
        shared = kind == "PostgreSQL"
        rows.append(
            {
                "store": kind,
                "replicas": size,
                "calls": sum(one.calls for one in rounds),
                "ms of a replica, a call": _beside(rounds, alone, lambda one: one.replica, "{:.2f}"),
                "ms of the database": _beside(rounds, alone, lambda one: one.database, "{:.2f}") if shared else "",
                "batches a second": _beside(rounds, alone, lambda one: one.batches, "{:.1f}") if shared else "",
                "others a second": _beside(rounds, alone, lambda one: one.others, "{:.1f}") if shared else "",
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
