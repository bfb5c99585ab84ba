"""A file whose counts have no tokens of arguments and results yet: it opens, and they begin where they are."""

import sqlite3
from contextlib import closing
from pathlib import Path

from test_usage_contract import NOON, RECORD

from pegboard.ports import BillCounts, BillRecord
from pegboard.ports.usage import HOUR
from pegboard.stores.sqlite import SqliteStore
from pegboard.stores.sqlite.schema import ADDED_COLUMNS

BILLED = BillRecord("2026-07-28", "ada", "assistant", "s", BillCounts(requests=3, tokens=900, saved=-5, calls=2))


async def test_a_file_of_before_opens_and_its_counts_begin_where_they_are(path: Path) -> None:
    """F4, S2: nothing of it is lost, and what comes adds up."""
    store = SqliteStore(path)
    await store.open()
    store.usage_later(RECORD)
    store.bill_later(BILLED)
    await store.aclose()
    with closing(sqlite3.connect(path)) as file:
        for table, column, _ in ADDED_COLUMNS:
            if table in ("bill", "usage"):
                file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        file.commit()
    again = SqliteStore(path)
    await again.open()
    more = BILLED._replace(counts=BillCounts(tokens=1, arguments=7, results=8, cached=9))
    (before,) = (await again.bill()).records
    assert before == BILLED
    again.bill_later(more)
    again.usage_later(RECORD._replace(counts=RECORD.counts._replace(results=100)))
    assert (await again.bill_sums(by=())).records[0].counts == BILLED.counts.plus(more.counts)
    (record,) = (await again.usage(HOUR, since=NOON, until=NOON + 1, by=("outcome",))).records
    assert record.counts.results == 100
    assert record.counts.calls == 2 * RECORD.counts.calls
    await again.aclose()
