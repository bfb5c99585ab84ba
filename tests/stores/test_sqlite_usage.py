"""Counts by time in a file: several processes, a locked file, damaged rows, files and processes of before."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from test_usage_contract import EVERY, ONE, RECORD

from pegboard.errors import StoreBusyError
from pegboard.ports import UsageCounts, UsageRecord, UsageSums
from pegboard.ports.usage import HOUR
from pegboard.stores.sql import SqliteStore

WRITER = """
import asyncio, sys
from pathlib import Path
from pegboard.ports import UsageCounts, UsageRecord
from pegboard.stores.sql import SqliteStore

async def write():
    store = SqliteStore(Path(sys.argv[1]))
    await store.open()
    for number in range(100):
        store.usage_later(UsageRecord(1784980800, "a", "s", f"t{number % 3}", "ok", UsageCounts(calls=1, within_1=1)))
        await store.record()
    await store.aclose()

asyncio.run(write())
"""


def write_three_times(path: Path) -> None:
    """Write in three processes at once."""
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]


async def hours(store: SqliteStore, **wanted: object) -> UsageSums:
    return await store.usage(HOUR, **{"since": 0, "until": 2**40, "by": EVERY, **wanted})  # type: ignore[arg-type]


async def test_what_several_processes_count_adds_up(path: Path) -> None:
    """F4: nothing is lost, and nothing is counted twice."""
    write_three_times(path)
    store = SqliteStore(path)
    await store.open()
    (record,) = (await hours(store, by=("outcome",))).records
    await store.aclose()
    assert record.counts == UsageCounts(calls=300, within_1=300)


async def test_where_the_file_is_locked_counts_wait(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    """F4: nothing is raised where something is counted, and once the file is free all of it is added once."""
    impatient = SqliteStore(store.path, patience=0.05)
    await impatient.open()
    impatient.usage_later(RECORD)
    with pytest.raises(StoreBusyError):
        await hours(impatient)
    impatient.usage_later(RECORD)
    blocker.execute("ROLLBACK")
    assert (await hours(impatient)).records == [RECORD._replace(counts=ONE.plus(ONE))]
    await impatient.aclose()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE usage SET tokens = 'many' WHERE tool = 'bad'",
        "UPDATE usage SET within_30 = 1.5 WHERE tool = 'bad'",
        "UPDATE usage SET calls = 9223372036854775807, tokens = 'x' WHERE tool = 'bad'",
    ],
)
async def test_a_damaged_row_is_counted_and_stops_nothing(store: SqliteStore, damage: str) -> None:
    """F4: what can be read is summed as ever, and what is counted later as well."""
    bad = RECORD._replace(tool="bad")
    store.usage_later(RECORD, bad)
    await hours(store)
    with closing(sqlite3.connect(store.path)) as file:
        file.executescript(damage)
        file.commit()
    assert await hours(store) == UsageSums([RECORD], 1)
    assert await hours(store, by=("outcome",)) == UsageSums([UsageRecord(0, "", "", "", "ok", ONE)], 1)
    store.usage_later(RECORD, *(RECORD._replace(tool=f"tool-{number}") for number in range(300)))
    found = await hours(store)
    assert sum(one.counts.calls for one in found.records) == 302 * ONE.calls
    assert found.damaged == 1


@pytest.mark.parametrize("name", ["agent", "server", "tool"])
async def test_a_damaged_name_is_excluded_where_names_are_asked_for(store: SqliteStore, name: str) -> None:
    """F4: its counts are what they are."""
    store.usage_later(RECORD, RECORD._replace(tool="bad"))
    await hours(store)
    with closing(sqlite3.connect(store.path)) as file:
        file.execute(f"UPDATE usage SET {name} = x'ff' WHERE tool = 'bad'")
        file.commit()
    assert await hours(store) == UsageSums([RECORD], 1)
    assert (await hours(store, by=("outcome",))).records == [UsageRecord(0, "", "", "", "ok", ONE.plus(ONE))]


async def test_a_sum_that_no_number_holds_stops_nothing(store: SqliteStore) -> None:
    """F4: it is only a row that somebody damaged."""
    store.usage_later(RECORD, RECORD._replace(tool="bad"))
    await hours(store)
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("UPDATE usage SET calls = 9223372036854775807 WHERE tool = 'bad'")
        file.commit()
    (record,) = (await hours(store, by=("outcome",))).records
    assert record.counts.calls == 2**63 - 1 + ONE.calls
