"""Counts of calls by time in the database: rows of three units, added to in batches, and sums over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import UsageCounts, UsageSums, UsageUnit
from pegboard.ports.usage import UNITS, Names, UsageName, folded
from pegboard.stores.postgres.texts import from_column, key_of, to_column
from pegboard.stores.rows.usage_names import usage_of
from pegboard.stores.rows.waiting_counts import of_unit

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Database, Statement, Transaction
    from pegboard.stores.rows.waiting_counts import UsageKey

_TEXTS: Final = ("agent", "server", "tool", "outcome")
_COUNTS: Final = UsageCounts._fields
_COLUMNS: Final = ", ".join(("seconds", "start", "key", *_TEXTS, *_COUNTS))
_GIVEN: Final = (
    f"INSERT INTO {{s}}.usage AS mine ({_COLUMNS}) SELECT {_COLUMNS} FROM unnest(%s::int[], %s::bigint[], %s::bytea[]"  # noqa: S608
    f"{', %s::text[]' * len(_TEXTS)}{', %s::bigint[]' * len(_COUNTS)}) AS given ({_COLUMNS})"
    " ON CONFLICT (seconds, start, key) DO UPDATE SET "
)
_ADD: Final = _GIVEN + ", ".join(f"{name} = mine.{name} + excluded.{name}" for name in _COUNTS)
_PUT: Final = _GIVEN + ", ".join(f"{name} = excluded.{name}" for name in _COUNTS)
_OLD: Final = "DELETE FROM {s}.usage WHERE seconds = %s AND start <= %s"
_SUMS: Final = ", ".join(f"sum({name})::bigint" for name in _COUNTS)
FULL: Final = (
    "SELECT seconds, start FROM {s}.usage"
    " JOIN unnest(%s::int[], %s::bigint[], %s::bigint[]) AS looked (length, begin, most)"
    " ON seconds = length AND start = begin GROUP BY seconds, start, most HAVING count(*) > most"
)


def writing(waiting: Mapping[UsageKey, UsageCounts]) -> list[Statement]:
    """Return the statements that add to the rows of each unit; the last returns what has too many rows now."""
    newest = max(waiting)[0]
    rows = [
        (unit.seconds, start, key_of(*names), *map(to_column, names), *counts)
        for unit in UNITS
        for (start, *names), counts in of_unit(unit, dict(waiting)).items()
    ]
    stretches = sorted({(unit, start) for unit in UNITS for start, *_ in of_unit(unit, dict(waiting))})
    return [
        (_ADD, _columns(rows)),
        *((_OLD, (unit.seconds, newest - unit.kept - unit.seconds)) for unit in UNITS),
        (FULL, _columns([(unit.seconds, start, unit.most) for unit, start in stretches])),
    ]


def _columns(rows: Collection[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(map(list, zip(*sorted(rows), strict=True)))


async def fold(transaction: Transaction, seconds: int, start: int) -> None:
    """Sum the smallest rows of a stretch of time where it has too many."""
    await transaction.run(
        "SELECT 1 FROM {s}.usage WHERE seconds = %s AND start = %s ORDER BY key FOR UPDATE", (seconds, start)
    )
    names = ", ".join((*_TEXTS, *_COUNTS))
    query = f"SELECT {names} FROM {{s}}.usage WHERE seconds = %s AND start = %s"  # noqa: S608 - constants
    found = await transaction.run(query, (seconds, start))
    rows: dict[Names, UsageCounts] = {_names(row[:4]): UsageCounts(*row[4:]) for row in found}
    most = next(unit.most for unit in UNITS if unit.seconds == seconds)
    left = folded(rows, most)
    gone = [key_of(*names) for names in rows if names not in left]
    changed = [
        (seconds, start, key_of(*names), *map(to_column, names), *new)
        for names, new in left.items()
        if rows.get(names) != new
    ]
    if gone:
        await transaction.run(
            "DELETE FROM {s}.usage WHERE seconds = %s AND start = %s AND key = ANY(%s::bytea[])", (seconds, start, gone)
        )
    if changed:
        await transaction.run(_PUT, _columns(changed))


def _names(row: Sequence[str]) -> Names:
    agent, server, tool, outcome = map(from_column, row)
    return agent, server, tool, outcome


async def select_usage(
    database: Database,
    unit: UsageUnit,
    since: int,
    until: int,
    by: Sequence[UsageName],
    agents: Collection[str] | None,
) -> UsageSums:
    """Return the sums of the rows of a time."""
    where, values = "seconds = %s AND start >= %s AND start < %s", list[Any]((unit.seconds, since, until))
    if agents is not None:
        where += " AND agent = ANY(%s::text[])"
        values.append([to_column(agent) for agent in agents])
    names = ", ".join(by)
    query = f"SELECT {names}{', ' if by else ''}{_SUMS} FROM {{s}}.usage WHERE {where}"  # noqa: S608 - constants
    rows = await database.read(
        query + (f" GROUP BY {names} ORDER BY {names}" if by else " HAVING count(*) > 0"), values
    )
    return UsageSums(
        [
            usage_of(
                by,
                [from_column(cell) if isinstance(cell, str) else cell for cell in row[: len(by)]],
                UsageCounts(*row[len(by) :]),
            )
            for row in rows
        ]
    )
