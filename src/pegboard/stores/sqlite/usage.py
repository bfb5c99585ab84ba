"""Counts of calls by time in the database: rows of three units, added to in batches, and sums over them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import UsageCounts, UsageRecord, UsageSums, UsageUnit
from pegboard.ports.usage import UNITS, Names, UsageName, folded
from pegboard.stores.rows.usage_names import usage_of
from pegboard.stores.rows.waiting_counts import WaitingUsage, of_unit
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

_TEXTS: Final = ("agent", "server", "tool", "outcome")
_KEY: Final = ("seconds", "start", *_TEXTS)
_COLUMNS: Final = (*_KEY, *UsageCounts._fields)
_PUT: Final = f"INSERT OR REPLACE INTO usage ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - constants
_ADD: Final = (
    f"INSERT INTO usage ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - constants
    f" ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in UsageCounts._fields)}"
)
_MINE: Final = " AND ".join(f"{name} = ?" for name in _KEY)
_SUMS: Final = ", ".join(f"sum({name})" for name in UsageCounts._fields)
_NUMBERS: Final = {int}
_PLAIN: Final = {int, str}


class UsageQueue(WaitingUsage):
    """The counts that are not written yet."""

    __slots__ = ()

    def insert(self, connection: sqlite3.Connection) -> None:
        """Add what waits to the rows of each unit, and keep them few, inside the caller's transaction."""
        newest = max(self.waiting)[0]
        for unit in UNITS:
            counted = of_unit(unit, self.waiting)
            rows = [
                (unit.seconds, start, *map(to_column, names), *counts) for (start, *names), counts in counted.items()
            ]
            connection.executemany(_ADD, rows)
            for start in {start for start, *_ in counted}:
                _fold(connection, unit, start)
            connection.execute(
                "DELETE FROM usage WHERE seconds = ? AND start <= ?", (unit.seconds, newest - unit.kept - unit.seconds)
            )


def _fold(connection: sqlite3.Connection, unit: UsageUnit, start: int) -> None:
    """Sum the smallest rows of a stretch of time where it has too many; a damaged one stays as it is."""
    stretch = unit.seconds, start
    query = "SELECT count(*) FROM usage WHERE seconds = ? AND start = ?"
    if connection.execute(query, stretch).fetchone()[0] <= unit.most:
        return
    records, _ = _records(connection, "seconds = ? AND start = ?", stretch)
    rows: dict[Names, UsageCounts] = {record[1:5]: record.counts for record in records}
    left = folded(rows, unit.most)
    gone = [(*stretch, *map(to_column, names)) for names in rows if names not in left]
    connection.executemany(f"DELETE FROM usage WHERE {_MINE}", gone)  # noqa: S608 - constants
    changed = [(*stretch, *map(to_column, names), *new) for names, new in left.items() if rows.get(names) != new]
    connection.executemany(_PUT, changed)


def select_usage(
    connection: sqlite3.Connection,
    unit: UsageUnit,
    since: int,
    until: int,
    by: Sequence[UsageName],
    agents: Collection[str] | None,
) -> UsageSums:
    """Return the sums of the rows of a time; rows that hold something else than counts are excluded, and counted."""
    where, values = "seconds = ? AND start >= ? AND start < ?", list[Any]((unit.seconds, since, until))
    if agents is not None:
        where += f" AND agent IN ({', '.join('?' * len(agents))})"
        values += map(to_column, agents)
    if (sums := _summed(connection, by, where, values)) is not None:
        return UsageSums(sums)
    records, damaged = _records(connection, where, values)
    found: dict[tuple[Any, ...], UsageCounts] = {}
    for record in records:
        named = record._asdict()
        key = tuple(named[name] for name in by)
        found[key] = found.get(key, UsageCounts()).plus(record.counts)
    return UsageSums([usage_of(by, key, counts) for key, counts in found.items()], damaged)


def _summed(
    connection: sqlite3.Connection, by: Sequence[UsageName], where: str, values: Sequence[Any]
) -> list[UsageRecord] | None:
    """Return the sums as the database makes them, or None where one of the rows is damaged."""
    import sqlite3  # nothing of this package loads it before a store is opened

    names = ", ".join(by)
    query = f"SELECT {names or 1}, {_SUMS} FROM usage WHERE {where}"  # noqa: S608 - constants
    try:
        rows = connection.execute(f"{query} GROUP BY {names}" if by else query, values).fetchall()
    except sqlite3.OperationalError as error:
        if "integer overflow" in str(error):
            return None
        raise
    width = max(len(by), 1)
    if not by and rows[0][width] is None:
        return []  # nothing is there to be summed
    found: list[UsageRecord] = []
    for row in rows:
        names, counts = row[: len(by)], row[width:]
        if set(map(type, counts)) != _NUMBERS:
            return None
        if not set(map(type, names)) <= _PLAIN:
            try:
                names = tuple(cell if type(cell) is int else from_column(cell) for cell in names)
            except (ValueError, AttributeError):
                return None
        found.append(usage_of(by, names, UsageCounts(*counts)))
    return found


def _records(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> tuple[list[UsageRecord], int]:
    """Return rows as records, and how many of them cannot be read."""
    columns = ", ".join(_COLUMNS[1:])
    rows = connection.execute(f"SELECT {columns} FROM usage WHERE {where}", values).fetchall()  # noqa: S608 - constants
    found = [record for row in rows if (record := _intact(row)) is not None]
    return found, len(rows) - len(found)


def _intact(row: tuple[Any, ...]) -> UsageRecord | None:
    """Return a row as a record, or None where a column holds what is never written."""
    (start, *texts), counts = row[: len(_KEY) - 1], row[len(_KEY) - 1 :]
    if any(type(number) is not int for number in (start, *counts)):
        return None
    try:
        agent, server, tool, outcome = map(from_column, texts)
    except (ValueError, AttributeError):
        return None
    return UsageRecord(start, agent, server, tool, outcome, UsageCounts(*counts))
