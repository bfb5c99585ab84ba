"""The bill in the database: one row for each day and session, added to in batches (F4)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.ports import BILL_DAYS, BillCounts, BillPage, BillRecord
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

_NAMES: Final = ("day", "principal", "agent", "session")
_COLUMNS: Final = (*_NAMES, *BillCounts._fields)
_ADD: Final = (
    f"INSERT INTO bill VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - constants
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in BillCounts._fields)}"
)
Key = tuple[str, str, str, str]


class BillQueue:
    """The part of the bill that is not written yet, one record for each day and session, however long it waits."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Key, BillCounts] = {}
        """Whether there is any is asked with every write."""

    def add(self, records: Iterable[BillRecord]) -> None:
        """Take records; the caller flushes."""
        for record in records:
            key = record.day, record.principal, record.agent, record.session
            self.waiting[key] = self.waiting.get(key, BillCounts()).plus(record.counts)

    def insert(self, connection: sqlite3.Connection) -> None:
        """Add what waits to the rows, and remove those that are too old, inside the caller's transaction."""
        connection.executemany(_ADD, [(*map(to_column, key), *counts) for key, counts in self.waiting.items()])
        newest = date.fromisoformat(max(self.waiting)[0])
        connection.execute("DELETE FROM bill WHERE day < ?", ((newest - timedelta(days=BILL_DAYS)).isoformat(),))

    def drop(self) -> None:
        """Forget what waits: it is committed, and nothing can have come since."""
        self.waiting = {}


def select_bill(
    connection: sqlite3.Connection,
    wanted: dict[str, str | None],
    since: str | None,
    until: str | None,
    after: Hashable,
    limit: int,
) -> BillPage:
    """Return the rows behind a key, in the order of their keys; one that holds something else is counted."""
    filters = {f"{name} = ?": to_column(value) for name, value in wanted.items() if value is not None}
    days = {"day >= ?": since, "day <= ?": until}
    filters |= {name: day for name, day in days.items() if day is not None}
    values: list[Any] = list(filters.values())
    if after is not None:
        filters[f"({', '.join(_NAMES)}) > (?, ?, ?, ?)"] = ""
        values += cast("tuple[Any, ...]", after)
    where = " AND ".join(filters) or "1"
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM bill WHERE {where}"  # noqa: S608 - constants
        f" ORDER BY {', '.join(_NAMES)} LIMIT ?",
        (*values, limit),
    ).fetchall()
    records = [record for row in rows if (record := _intact(row)) is not None]
    return BillPage(records, rows[-1][: len(_NAMES)] if len(rows) == limit else None, len(rows) - len(records))


def _intact(row: tuple[Any, ...]) -> BillRecord | None:
    """Return a row as a record, or None where a column holds what is never written."""
    (day, *names), counts = row[: len(_NAMES)], row[len(_NAMES) :]
    if type(day) is not str or any(type(count) is not int for count in counts):
        return None
    try:
        date.fromisoformat(day)
        principal, agent, session = map(from_column, names)
    except (ValueError, AttributeError):
        return None
    return BillRecord(day, principal, agent, session, BillCounts(*counts))
