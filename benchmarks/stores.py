"""A file and a database side by side: ``python -m benchmarks stores [--quick] [--json]``.

Both are on the disk of this machine, and so is the server, which makes each transaction durable: a file does not (S2).
It prints what it takes to read and to write a session, how many statements a call adds, and how long a start and the
first list take in a store with 10,000 sessions and 1,000,000 records of the trail beside one with ten of each, and
what 1,000 agents take: a start and the first list of one of them, then the first list of each.
``--quick`` has a tenth of both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.spans import CONFIG
from pegboard import Pegboard
from pegboard.board.board import Board
from pegboard.ports import AuditRecord, SessionKey, Store
from pegboard.stores.sql import PostgresStore, SqliteStore
from pegboard.stores.sql.postgres_database import PostgresDatabase

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from postgres_server import PostgresServer

TEXT = json.dumps({"turn": 7, "loaded": [{"tool": f"tool_{number}", "since": number} for number in range(60)]})
ROUNDS, CALLS, STARTS, AGENTS = 500, 200, 25, 1_000
FEW = 10
BAR = 3.0
"""Milliseconds that reading or writing a session may take."""
AT_ONCE = 10_000


@dataclass
class Place:
    """A kind of store at a place."""

    kind: str
    url: str
    make: Callable[[], Store]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks stores", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sessions and records")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(argv)
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = asyncio.run(_measured(server, Path(folder), 10 if options.quick else 1))
    finally:
        server.stop()
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table

    table("stores", rows)
    return 0


async def _measured(server: PostgresServer, folder: Path, part: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"store": "", "what": "make 8 KiB durable on this disk, p50", "found": f"{_durable(folder):.2f} ms"}
    ]
    sessions, records = 10_000 // part, 1_000_000 // part
    for few, many in (_files(folder), _databases(server)):
        async with _opened(few) as store:
            load, save = await _load_and_save(store)
        statements = await _statements(few)
        for place, count in ((few, FEW), (many, sessions)):
            await _fill(place, count, FEW if place is few else records)
        small, large = await _starts(few, many)
        rows += [
            {"store": few.kind, "what": f"read a session, p50 (bar: {BAR:g} ms)", "found": f"{load:.2f} ms"},
            {"store": few.kind, "what": f"write a session, p50 (bar: {BAR:g} ms)", "found": f"{save:.2f} ms"},
            {"store": few.kind, "what": "statements that a call adds (bar: 0)", "found": statements},
            {"store": few.kind, "what": f"start and list, {FEW} sessions and records", "found": f"{small:.1f} ms"},
            {
                "store": few.kind,
                "what": f"the same with {sessions:,} sessions, {records:,} records (bar: +10%)",
                "found": f"{large:.1f} ms ({(large / small - 1) * 100:+.0f}%)",
            },
            *await _agents(many),
        ]
    return rows


def _durable(folder: Path) -> float:
    """Return what the disk takes for what every transaction of a database waits for, in milliseconds."""
    took: list[float] = []
    with (folder / "durable").open("wb") as file:
        for _ in range(100):
            started = time.perf_counter()
            file.write(bytes(8192))
            file.flush()
            os.fsync(file.fileno())
            took.append((time.perf_counter() - started) * 1e3)
    return statistics.median(took)


def _files(folder: Path) -> tuple[Place, Place]:
    paths = [folder / name for name in ("few.db", "many.db")]
    few, many = (Place("SQLite", f"sqlite:///{path}", lambda path=path: SqliteStore(path)) for path in paths)
    return few, many


def _databases(server: PostgresServer) -> tuple[Place, Place]:
    urls = [server.address(), server.address()]
    few, many = (Place("PostgreSQL", url, lambda url=url: PostgresStore(url, audit_keep=10**9)) for url in urls)
    return few, many


@asynccontextmanager
async def _opened(place: Place) -> AsyncGenerator[Store]:
    store = place.make()
    await store.open()
    yield store
    await store.aclose()


async def _load_and_save(store: Store) -> tuple[float, float]:
    """Return the medians of reading a session that was not read before, and of writing it, in milliseconds."""
    keys = [SessionKey(principal="local", agent="assistant", session=f"session {number}") for number in range(ROUNDS)]
    versions = [await store.save(key, TEXT, expected=0) or 0 for key in keys]
    if isinstance(store, PostgresStore):
        store._forget("s", None)
    loads = [await _took(lambda key=key: store.load(key)) for key in keys]
    saves = [
        await _took(lambda key=key, version=version: store.save(key, TEXT + " ", expected=version))
        for key, version in zip(keys, versions, strict=True)
    ]
    return statistics.median(loads), statistics.median(saves)


async def _took(work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1e3


async def _statements(place: Place) -> str:
    """Return how many statements calls send, those of the batches of records apart, which are so many in a second."""
    async with Pegboard.open({**CONFIG, "store": place.url}) as board:
        session = await board.session(agent="assistant", session_id="s")
        for _ in range(3):
            await session.call("echo", {"text": "x"})
        await asyncio.sleep(0.5)
        with _counted(board) as counted:
            for _ in range(CALLS):
                await session.call("echo", {"text": "x"})
            await asyncio.sleep(0.2)
        batches = counted.pop("batch", 0)
        return f"{sum(counted.values()) / CALLS:.2f} ({batches} batches for {CALLS} calls)"


@contextmanager
def _counted(board: Board) -> Generator[Counter[str]]:
    """Count what is sent to the store while this lasts."""
    counted: Counter[str] = Counter()

    def note(statement: str) -> None:
        begins = statement.lstrip()
        if begins.startswith("BEGIN"):
            counted["batch"] += 1
        elif begins.startswith("SELECT") and "main.counter" not in begins:  # what is read every 3 s
            counted["read"] += 1

    original = PostgresDatabase.send

    async def send(self: PostgresDatabase, connection: Any, statements: Any, **how: Any) -> Any:
        note(statements[0][0])
        return await original(self, connection, statements, **how)

    store: Any = board.services.store
    with patch.object(PostgresDatabase, "send", send):
        connection = getattr(store._db, "_open", None)
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(note)
        yield counted
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(None)


async def _fill(place: Place, sessions: int, records: int) -> None:
    """Put sessions and records into a store, which has its tables then."""
    async with _opened(place) as store:
        for number in range(sessions):
            key = SessionKey(principal="local", agent="assistant", session=f"of before {number}")
            await store.save(key, TEXT, expected=0)
        at = datetime(2026, 7, 28, 9, 30, tzinfo=UTC)
        for first in range(0, records, AT_ONCE):
            names = (f"session {number % sessions}" for number in range(first, min(first + AT_ONCE, records)))
            called = (AuditRecord(at, "call", "local", "assistant", name, 1, "echo", "allowed") for name in names)
            await store.record(*called)
        if isinstance(store, PostgresStore):
            await store._db.rows("ANALYZE main.request")


async def _agents(place: Place) -> list[dict[str, object]]:
    """Return what a start, the first list and that of each agent take where there are many."""
    agents = {f"agent {number}": {"tools": ["echo"]} for number in range(AGENTS)}
    started = time.perf_counter()
    async with Pegboard.open({**CONFIG, "store": place.url, "agents": agents}) as board:
        took: list[float] = []
        for name in agents:
            session = await board.session(agent=name, session_id="new")
            took.append(await _took(session.surface))
            if len(took) == 1:
                first = (time.perf_counter() - started) * 1e3
    return [
        {"store": place.kind, "what": f"start and list with {AGENTS:,} agents", "found": f"{first:.1f} ms"},
        {"store": place.kind, "what": "the first list of each, p50", "found": f"{statistics.median(took):.2f} ms"},
    ]


async def _starts(few: Place, many: Place) -> tuple[float, float]:
    """Return the medians of opening each of them and listing the tools of a session, in turns, in milliseconds."""
    took: dict[str, list[float]] = {few.url: [], many.url: []}
    for turn in range(STARTS):
        for place in (few, many) if turn % 2 else (many, few):
            started = time.perf_counter()
            async with Pegboard.open({**CONFIG, "store": place.url}) as board:
                session = await board.session(agent="assistant", session_id="new")
                await session.surface()
                took[place.url].append((time.perf_counter() - started) * 1e3)
    return statistics.median(took[few.url]), statistics.median(took[many.url])
