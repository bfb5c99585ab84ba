"""A million calls in a store: ``python -m benchmarks requests [--calls N] [--days N] [--against TREE] [--postgres]``.

It fills a file through the store with calls of 90 days, of 20 agents, 400 tools and sessions of some twenty calls, as a
gateway leaves them: their records, and what came to the counts in each quarter of an hour. Then it prints what the file
takes (beside that of another TREE of sources, which this very program fills), how long the curve of the last 24 hours
and the bill of a month take, and how long a call takes at most while all those records are removed.
``--postgres`` fills a database too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pegboard.ports import AuditRecord

QUARTER = 900
AGENTS, TOOLS, TOOLS_OF_ONE, CALLS_OF_A_SESSION, PRINCIPALS = 20, 400, 10, 20, 40
OUTCOMES = ("ok",) * 95 + ("error",) * 5
BAR_CURVE, BAR_DELAY = 50, 20
ROUNDS = 5
_DAY = 86_400
HERE = Path(__file__).resolve().parent.parent
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class PastCall:
    """One call; ``took`` is in milliseconds."""

    at: float
    who: tuple[str, str, str]
    server: str
    tool: str
    outcome: str
    took: float


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks requests", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=90, help="over how many days they are spread")
    parser.add_argument("--against", metavar="TREE", type=Path, help="a checkout whose store is filled too")
    parser.add_argument("--postgres", action="store_true", help="a database too")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--fill", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.fill:
        asyncio.run(_filled(_sqlite(options.fill), options.calls, options.days))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = _of_file(Path(folder), options)
    if options.postgres:
        rows += _of_database(options.calls, options.days)
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    from benchmarks.__main__ import table

    table("requests", rows)
    return 0


def _of_file(folder: Path, options: argparse.Namespace) -> list[Row]:
    path = folder / "pegboard.db"
    many = f"{options.calls:,} calls in {options.days} days"
    rows: list[Row] = [{"what": f"disk of {many}", "found": _filled_by(HERE, path, options)}]
    rows += _parts(path)
    if options.against:
        found = _filled_by(options.against, folder / "other.db", options)
        rows.append({"what": f"the same with the sources in {options.against.name}", "found": found})
    rows += asyncio.run(_read(f"sqlite:///{path}"))
    return [*rows, *_while_removed(path)]


def _filled_by(tree: Path, path: Path, options: argparse.Namespace) -> str:
    """Have the store of some sources filled; return what it takes."""
    given = ["--fill", str(path), "--calls", str(options.calls), "--days", str(options.days)]
    way = os.pathsep.join((str(tree / "src"), str(tree)))
    program = [sys.executable, "-P", str(Path(__file__).resolve()), *given]
    subprocess.run(program, env={**os.environ, "PYTHONPATH": way}, check=True)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return f"{path.stat().st_size / 2**20:.1f} MiB"


def _of_database(calls: int, days: int) -> list[Row]:
    from pegboard.stores.sql import PostgresStore

    sys.path.insert(0, str(HERE / "tools"))
    from postgres_server import PostgresServer

    server = PostgresServer(durable=True)
    try:
        address = server.address()
        asyncio.run(_filled(PostgresStore(address), calls, days))
        rows = asyncio.run(_read(address))
    finally:
        server.stop()
    return [{"what": f"PostgreSQL: {row['what']}", "found": row["found"]} for row in rows]


def _sqlite(path: Path) -> Any:
    try:
        from pegboard.stores.sql import SqliteStore
    except ImportError:  # TREE is older
        from pegboard.stores.sqlite import SqliteStore  # pyrefly: ignore
    return SqliteStore(path)


# -- a past ------------------------------------------------------------------------------------------


async def _filled(store: Any, calls: int, days: int) -> None:
    """Write calls as a gateway does, and have removed what is over."""
    dice = random.Random(11)
    await store.open()
    now = int(time.time()) // QUARTER * QUARTER
    starts = range(now - days * _DAY, now, QUARTER)
    for at, start in enumerate(starts):
        quarter = list(_quarter(dice, start, calls * (at + 1) // len(starts) - calls * at // len(starts)))
        for one in quarter:
            _recorded(store, one)
        _counted(store, start, quarter)
        await store.record()  # writes what waits
        if hasattr(store, "remove_old") and (start + QUARTER) % _DAY == now % _DAY:  # no loop is free for it meanwhile
            await store.remove_old()
    await store.aclose()


def _quarter(dice: random.Random, start: int, calls: int) -> Iterator[PastCall]:
    sessions = [
        (
            f"person-{dice.randrange(PRINCIPALS)}@example.org",
            f"agent_{_rank(dice, AGENTS)}",
            f"{dice.getrandbits(64):016x}",
        )
        for _ in range(-(-calls // CALLS_OF_A_SESSION))
    ]
    for number in range(calls):
        tool, took = _rank(dice, TOOLS), dice.lognormvariate(3.5, 1.5)
        server = f"server_{tool // TOOLS_OF_ONE}"
        name, outcome = f"{server}__do_thing_{tool}", dice.choice(OUTCOMES)
        yield PastCall(start + QUARTER * number / calls, dice.choice(sessions), server, name, outcome, round(took, 3))


def _rank(dice: random.Random, count: int) -> int:
    """Return the number of one of so many, of which the first few come most often."""
    return min(int(dice.paretovariate(0.7)), count) - 1


def _recorded(store: Any, one: PastCall) -> None:
    from pegboard.ports import CallDetails

    at = datetime.fromtimestamp(one.at, UTC)
    error = "" if one.outcome == "ok" else "The server says that there is no such thing."
    record = AuditRecord(
        at, "call", *one.who, 3, one.tool, "allowed", error, one.took, one.outcome, f"{hash(one.at) & 2**64 - 1:016x}"
    )
    numbers = (round(one.took * 0.01, 3), None, round(one.took * 0.9, 3), 60, 800)
    text = "" if one.outcome == "ok" else json.dumps({"tool": f"{one.server}/{one.tool}", "error": error, "days": 7})
    if "numbers" in CallDetails._fields:
        from pegboard.ports import CallNumbers

        store.record_later(record, CallDetails(CallNumbers(*numbers), text))
    else:  # TREE is older
        details = CallDetails(f"{text[:-1]}, {json.dumps(numbers)}", one.at + 7 * _DAY) if text else None
        store.record_later(record, details)


def _counted(store: Any, start: int, quarter: list[PastCall]) -> None:
    """Count the calls of a quarter of an hour, and a request of a model before each."""
    of_tools = Counter((one.who, one.server, one.tool, one.outcome) for one in quarter)
    of_sessions = Counter(one.who for one in quarter)
    took: dict[object, list[float]] = {}
    for one in quarter:
        took.setdefault((one.who, one.server, one.tool, one.outcome), []).append(one.took)
    if hasattr(store, "count_later"):
        from pegboard.ports import CountRecord, Counts
        from pegboard.ports.counts import bucket_of

        for key, calls in of_tools.items():
            who, *names = key
            counts = Counts(calls=calls, arguments=20 * calls, results=250 * calls)
            store.count_later(CountRecord(start, *who, *names, counts, Counter(map(bucket_of, took[key]))))
        for who, calls in of_sessions.items():
            counts = Counts(requests=calls, tokens=1_800 * calls, saved=12_000 * calls, texts=300 * calls)
            store.count_later(CountRecord(start, *who, outcome="listed", counts=counts))
        return
    from pegboard.ports import BillCounts, BillRecord, UsageCounts, UsageRecord  # pyrefly: ignore - TREE is older

    for (who, *names), calls in of_tools.items():
        counts = UsageCounts(calls=calls, within_30=calls, arguments=20 * calls, results=250 * calls)
        store.usage_later(UsageRecord(start, who[1], *names, counts))
    day = datetime.fromtimestamp(start, UTC).date().isoformat()
    for (principal, agent, session), calls in of_sessions.items():
        listed = {"tokens": 1_800 * calls, "saved": 12_000 * calls, "texts": 300 * calls}
        store.usage_later(UsageRecord(start, agent, "", "", "listed", UsageCounts(calls=calls, **listed)))
        more = {"calls": calls, "arguments": 20 * calls, "results": 250 * calls}
        counts = BillCounts(requests=calls, **listed, **more)
        store.bill_later(BillRecord(day, principal, agent, session, counts))


def _parts(path: Path) -> Iterator[Row]:
    """Yield how many rows the large tables have."""
    with closing(sqlite3.connect(path)) as file:
        for table in ("request", "request_session", "request_names", "request_count"):
            ((rows,),) = file.execute(f"SELECT count(*) FROM {table}")
            yield {"what": f"rows of {table}", "found": f"{rows:,}"}


# -- what is read of it, and removed -----------------------------------------------------------------


async def _read(url: str) -> list[Row]:
    from pegboard import Pegboard
    from pegboard.operators.bill import BillQuery, BillReader
    from pegboard.operators.usage import UsageQuery, UsageReader

    async with Pegboard.open({**_config(), "store": url}) as board:
        month, services = datetime.now(UTC).date() - timedelta(days=30), board.services
        by_agent, by_session = BillQuery(by="agent", since=month), BillQuery(by="session", since=month)
        asked: dict[str, Callable[[], Awaitable[object]]] = {
            f"curve of 24 hours (bar: {BAR_CURVE} ms)": lambda: UsageReader(services).usage(UsageQuery(seconds=_DAY)),
            "bill of a month by agent": lambda: BillReader(services).bill(by_agent),
            "bill of a month by session": lambda: BillReader(services).bill(by_session),
        }
        return [{"what": what, "found": await _took(ask)} for what, ask in asked.items()]


async def _took(ask: Callable[[], Awaitable[object]]) -> str:
    took: list[float] = []
    worked: list[float] = []
    for _ in range(ROUNDS):
        began, processor = time.perf_counter(), time.process_time()
        await ask()
        took.append((time.perf_counter() - began) * 1000)
        worked.append((time.process_time() - processor) * 1000)
    return f"{statistics.median(took):.0f} ms, of the processor {statistics.median(worked):.0f} ms"


def _while_removed(path: Path) -> list[Row]:
    """Return how long calls take while the records of all calls are removed, and while none is."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE request SET at = 0, days = 1")
        file.commit()
        ((rows,),) = file.execute("SELECT count(*) FROM request")
        during, without = asyncio.run(_called(path, file))
    ways = {f"{rows:,} records are removed (bar: {BAR_DELAY} ms more)": during, "none is removed": without}
    return [
        {
            "what": f"longest of {len(took):,} calls while {what}",
            "found": f"{max(took):.1f} ms (p50 {statistics.median(took):.2f} ms)",
        }
        for what, took in ways.items()
    ]


async def _called(path: Path, file: sqlite3.Connection) -> tuple[list[float], list[float]]:
    from pegboard import Pegboard

    async with Pegboard.open({**_config(), "store": f"sqlite:///{path}"}) as board:
        session, during = await board.session(session_id="s"), list[float]()
        await _calls(session, 10)  # the first import what they need
        while True:
            during += await _calls(session, 50)
            ((left,),) = file.execute("SELECT count(*) FROM request WHERE at = 0")
            if not left:
                return during, await _calls(session, len(during))


async def _calls(session: Any, count: int) -> list[float]:
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await session.call("echo", {"text": "x"})
        took.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.002)
    return took


def _config() -> dict[str, object]:
    from benchmarks.spans import CONFIG

    return CONFIG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
