"""Counts of calls by time in the database: rows of three units, added to in batches, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.ports import UsageCounts, UsageRecord, UsageSums, UsageUnit
from pegboard.ports.usage import UNITS, Names, UsageName, folded, start_of
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
Key = tuple[int, str, str, str, str]


class UsageQueue:
    """The counts that are not written yet, one for each step and names, however long they wait."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[Key, UsageCounts] = {}
        """Whether there is any is asked with every write."""

    def add(self, records: Iterable[UsageRecord]) -> None:
        """Take records; the caller flushes."""
        for start, agent, server, tool, outcome, counts in records:
            key = start_of(UNITS[0], start), agent, server, tool, outcome
            self.waiting[key] = self.waiting.get(key, UsageCounts()).plus(counts)

    def insert(self, connection: sqlite3.Connection) -> None:
        """Add what waits to the rows of each unit, and keep them few, inside the caller's transaction."""
        newest = max(self.waiting)[0]
        for unit in UNITS:
            of_unit: dict[Key, UsageCounts] = {}
            for (start, *names), counts in self.waiting.items():
                key = cast("Key", (start_of(unit, start), *names))
                of_unit[key] = of_unit.get(key, UsageCounts()).plus(counts)
            rows = [
                (unit.seconds, start, *map(to_column, names), *counts) for (start, *names), counts in of_unit.items()
            ]
            connection.executemany(_ADD, rows)
            for start in {start for start, *_ in of_unit}:
                _fold(connection, unit, start)
            connection.execute(
                "DELETE FROM usage WHERE seconds = ? AND start <= ?", (unit.seconds, newest - unit.kept - unit.seconds)
            )

    def drop(self) -> None:
        """Forget what waits: it is committed, and nothing can have come since."""
        self.waiting = {}


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
    return UsageSums([_record(by, key, counts) for key, counts in found.items()], damaged)


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
        found.append(_record(by, names, UsageCounts(*counts)))
    return found


def _record(by: Sequence[UsageName], names: Sequence[Any], counts: UsageCounts) -> UsageRecord:
    start, agent, server, tool, outcome = _in_order(tuple(by))((*names, 0, ""))
    return UsageRecord(start, agent, server, tool, outcome, counts)


@cache
def _in_order(by: tuple[UsageName, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what puts names into the order of a record; behind them are the start and text of what has none."""
    places = [by.index(name) if name in by else len(by) + (name != "start") for name in _KEY[1:]]
    return itemgetter(*places)


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
