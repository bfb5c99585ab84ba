"""The bill in the database: one row for each day and session, added to in batches (F4)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.ports import BILL_DAYS, BillCounts, BillName, BillPage, BillRecord, BillSums
from pegboard.ports.tokens import MOST_GREATEST, greatest_of, summed
from pegboard.stores.rows.waiting_counts import WaitingBill
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

_NAMES: Final = ("day", "principal", "agent", "session")
_COLUMNS: Final = (*_NAMES, *BillCounts._fields)
_ADD: Final = (
    f"INSERT INTO bill ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - constants
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in BillCounts._fields)}"
)
_SUMS: Final = ", ".join(f"sum({name})" for name in BillCounts._fields)
_WRONG_DAY: Final = "sum(day NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]')"


class BillQueue(WaitingBill):
    """The part of the bill that is not written yet."""

    __slots__ = ()

    def insert(self, connection: sqlite3.Connection) -> None:
        """Add what waits to the rows, and remove those that are too old, inside the caller's transaction."""
        connection.executemany(_ADD, [(*map(to_column, key), *counts) for key, counts in self.waiting.items()])
        newest = date.fromisoformat(max(self.waiting)[0])
        connection.execute("DELETE FROM bill WHERE day < ?", ((newest - timedelta(days=BILL_DAYS)).isoformat(),))


def select_sums(
    connection: sqlite3.Connection,
    by: Sequence[BillName],
    wanted: dict[str, str | None],
    since: str | None,
    until: str | None,
    agents: Collection[str] | None,
    greatest: int | None = None,
) -> BillSums:
    """Return sums; where a row of them holds something else than counts, those that can be read are summed here."""
    where, values = _filters(wanted, since, until)
    if agents is not None:
        where += f" AND agent IN ({', '.join('?' * len(agents))})"
        values += map(to_column, agents)
    if (sums := _summed(connection, by, where, values, greatest)) is not None:
        return sums
    rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM bill WHERE {where}", values).fetchall()  # noqa: S608 - constants
    records = [record for row in rows if (record := _intact(row)) is not None]
    return greatest_of(summed(by, records), greatest, len(rows) - len(records))


def _summed(
    connection: sqlite3.Connection, by: Sequence[BillName], where: str, values: Sequence[Any], greatest: int | None
) -> BillSums | None:
    """Return the sums as the database makes them, or None where one of the rows is damaged.

    A sum is no whole number where one of its rows is none.
    """
    import sqlite3  # nothing of this package loads it before a store is opened

    names, more = ", ".join(by), 0
    try:
        if greatest is not None and by:
            keys, count, sound = _greatest(connection, names, where, values, min(greatest, MOST_GREATEST))
            if not sound:
                return None
            more = count - len(keys)
            one = f"({', '.join('?' * len(by))})"
            where += f" AND ({names}) IN (VALUES {', '.join([one] * len(keys))})" if keys else " AND 0"
            values = [*values, *(name for key in keys for name in key)]
        query = f"SELECT {names or 1}, {_SUMS}, {_WRONG_DAY} FROM bill WHERE {where}"  # noqa: S608 - constants
        rows = connection.execute(query + (f" GROUP BY {names}" if by else ""), values).fetchall()
    except sqlite3.OperationalError as error:
        if "integer overflow" in str(error):
            return None
        raise
    width = max(len(by), 1)
    found: list[BillRecord] = []
    for row in rows:
        if row[width] is None:  # nothing is there to be summed
            continue
        record = _intact((*_in_place(by, row[:width]), *row[width:-1])) if not row[-1] else None
        if record is None:
            return None
        found.append(record if "day" in by else record._replace(day=""))
    if greatest is not None:
        return greatest_of(found, greatest)._replace(more=more)
    return BillSums(found)


def _greatest(
    connection: sqlite3.Connection, names: str, where: str, values: Sequence[Any], most: int
) -> tuple[list[tuple[Any, ...]], int, bool]:
    """Return the names of the greatest sums, how many sums there are, and whether all of them can be compared.

    All that is asked of a row is its day and its tokens.
    """
    rows = connection.execute(
        f"WITH sums AS MATERIALIZED (SELECT {names}, sum(tokens + arguments + results) AS whole,"  # noqa: S608 - constants
        f" {_WRONG_DAY} AS wrong FROM bill WHERE {where} GROUP BY {names})"
        f" SELECT {names}, (SELECT count(*) FROM sums),"
        " (SELECT max(wrong OR typeof(whole) != 'integer') FROM sums)"
        f" FROM sums ORDER BY whole DESC, {names} LIMIT ?",
        (*values, max(most, 1)),
    ).fetchall()
    if not rows:
        return [], 0, True
    return [row[:-2] for row in rows[:most]], rows[0][-2], not rows[0][-1]


def _in_place(by: Sequence[BillName], names: Sequence[Any]) -> tuple[Any, ...]:
    """Return names in the order of a record's; a day that there is none of is any day."""
    given = dict(zip(by, names, strict=False))
    return tuple(given.get(name, "2000-01-01" if name == "day" else "") for name in _NAMES)


def _filters(wanted: dict[str, str | None], since: str | None, until: str | None) -> tuple[str, list[Any]]:
    filters = {f"{name} = ?": to_column(value) for name, value in wanted.items() if value is not None}
    days = {"day >= ?": since, "day <= ?": until}
    filters |= {name: day for name, day in days.items() if day is not None}
    return " AND ".join(filters) or "1", list(filters.values())


def select_bill(
    connection: sqlite3.Connection,
    wanted: dict[str, str | None],
    since: str | None,
    until: str | None,
    after: Hashable,
    limit: int,
) -> BillPage:
    """Return the rows behind a key, in the order of their keys; one that holds something else is counted."""
    where, values = _filters(wanted, since, until)
    if after is not None:
        where += f" AND ({', '.join(_NAMES)}) > (?, ?, ?, ?)"
        values += cast("tuple[Any, ...]", after)
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
