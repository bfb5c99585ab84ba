"""The bill in a file: several processes, kill -9, a locked file."""

import sqlite3
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from bill_writer import ONE

from pegboard.errors import StoreBusyError
from pegboard.ports import BillCounts
from pegboard.stores.sql import SqliteStore

WRITER = Path(__file__).with_name("bill_writer.py")


def writer(path: Path, most: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), str(path), str(most)], stdout=subprocess.PIPE, text=True)


async def calls_of(path: Path) -> tuple[int, int]:
    store = SqliteStore(path)
    await store.open()
    page = await store.bill()
    await store.aclose()
    assert page.damaged == 0
    return sum(record.counts.calls for record in page.records), sum(record.counts.tokens for record in page.records)


async def test_what_several_processes_count_adds_up(path: Path) -> None:
    """F4: nothing is lost, and nothing is counted twice."""
    with writer(path, 100) as one, writer(path, 100) as two, writer(path, 100) as three:
        for process in (one, two, three):
            process.communicate()
            assert process.returncode == 0
    assert await calls_of(path) == (300, 300_000)


async def test_a_killed_process_loses_only_what_waited_and_counts_nothing_twice(path: Path) -> None:
    """F4: after kill -9 the bill has no more than was handed over, and what was read back before is in it."""
    handed = kept = 0
    for lines in (30, 55, 80):
        with writer(path, 0) as process:
            assert process.stdout is not None
            list(islice(process.stdout, lines))
            process.kill()
            rest = process.stdout.read().splitlines()
            last = int(rest[-1]) if rest else lines
        calls, tokens = await calls_of(path)
        assert tokens == 1000 * calls
        assert kept + (lines - 1) // 7 * 7 <= calls <= handed + last
        handed, kept = handed + last, calls


async def test_where_the_file_is_locked_the_bill_waits(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    """F4: nothing is raised where something is counted, and once the file is free all of it is added once."""
    impatient = SqliteStore(store.path, patience=0.05)
    await impatient.open()
    impatient.bill_later(ONE)
    with pytest.raises(StoreBusyError):
        await impatient.bill()
    impatient.bill_later(ONE)
    blocker.execute("ROLLBACK")
    (record,) = (await impatient.bill()).records
    await impatient.aclose()
    assert record == ONE._replace(counts=BillCounts(calls=2, tokens=2000))
    assert (await store.bill()).records == [record]


async def test_a_file_that_has_everything_is_opened_without_a_write(
    store: SqliteStore, blocker: sqlite3.Connection
) -> None:
    """S2: also while another process writes; nothing is added to it again."""
    assert blocker.in_transaction
    again = SqliteStore(store.path, patience=0.0)
    await again.open()
    await again.aclose()


async def test_sums_are_read_beside_the_loop_also_of_a_file_that_is_gone(store: SqliteStore) -> None:
    """F4, S2: nothing waits for them; what is wrong with the file is said as of any read."""
    store.bill_later(ONE)
    before = await store.bill_sums(by=("day",))
    assert before.records
    store.path.unlink()
    assert await store.bill_sums(by=("day",)) == before
    assert not store.path.exists()
