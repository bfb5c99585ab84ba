"""The bill in the database: one row for each day and session, added to in batches (F4)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.ports import BILL_DAYS, BillCounts, BillName, BillPage, BillRecord, BillSums
from pegboard.ports.tokens import MOST_GREATEST
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Database, Statement
    from pegboard.stores.rows.waiting_counts import BillKey

_NAMES: Final[tuple[BillName, ...]] = ("day", "principal", "agent", "session")
_COUNTS: Final = BillCounts._fields
_COLUMNS: Final = ", ".join(("key", *_NAMES, *_COUNTS))
_ADD: Final = (
    f"INSERT INTO {{s}}.bill AS mine ({_COLUMNS}) SELECT {_COLUMNS} FROM unnest(%s::bytea[]"  # noqa: S608 - constants
    f"{', %s::text[]' * len(_NAMES)}{', %s::bigint[]' * len(_COUNTS)}) AS given ({_COLUMNS})"
    f" ON CONFLICT (key) DO UPDATE SET {', '.join(f'{name} = mine.{name} + excluded.{name}' for name in _COUNTS)}"
)
_OLD: Final = "DELETE FROM {s}.bill WHERE day < %s"
_SUMS: Final = ", ".join(f"sum({name})::bigint" for name in _COUNTS)


def writing(waiting: Mapping[BillKey, BillCounts]) -> list[Statement]:
    """Return the statements that add to the rows, and remove those that are too old."""
    rows = sorted((key_of(*key), *map(to_column, key), *counts) for key, counts in waiting.items())
    newest = date.fromisoformat(max(waiting)[0])
    return [
        (_ADD, tuple(map(list, zip(*rows, strict=True)))),
        (_OLD, ((newest - timedelta(days=BILL_DAYS)).isoformat(),)),
    ]


async def select_sums(
    database: Database,
    by: Sequence[BillName],
    wanted: Mapping[str, str | None],
    since: str | None,
    until: str | None,
    agents: Collection[str] | None,
    greatest: int | None = None,
) -> BillSums:
    """Return sums of the bill."""
    where, values = _filters(wanted, since, until)
    if agents is not None:
        where += " AND agent = ANY(%s::text[])"
        values.append([to_column(agent) for agent in agents])
    names = ", ".join(by)
    columns = f"{names}, " if by else ""
    query = f"SELECT {columns}{_SUMS}, count(*) OVER () FROM {{s}}.bill WHERE {where}"  # noqa: S608 - constants
    query += f" GROUP BY {names}" if by else " HAVING count(*) > 0"
    if greatest is None:
        query += f" ORDER BY {names}" if by else ""
    else:
        query += f" ORDER BY sum(tokens + arguments + results) DESC{', ' if by else ''}{names} LIMIT %s"
        values.append(max(min(greatest, MOST_GREATEST), 1))
    rows = await database.read(query, values)
    found = [_sum(by, row[: len(by)], row[len(by) : -1]) for row in rows]
    if greatest is None:
        return BillSums(found)
    kept = found[: max(greatest, 0)]
    return BillSums(kept, more=(rows[0][-1] if rows else 0) - len(kept))


def _sum(by: Sequence[BillName], names: Sequence[str], counts: Sequence[Any]) -> BillRecord:
    given = dict(zip(by, map(from_column, names), strict=True))
    day, principal, agent, session = (given.get(name, "") for name in _NAMES)
    return BillRecord(day, principal, agent, session, BillCounts(*counts))


def _filters(wanted: Mapping[str, str | None], since: str | None, until: str | None) -> tuple[str, list[Any]]:
    filters: dict[str, Any] = {f"{name} = %s": to_column(value) for name, value in wanted.items() if value is not None}
    days = {"day >= %s": since, "day <= %s": until}
    filters |= {name: day for name, day in days.items() if day is not None}
    return " AND ".join(filters) or "true", list(filters.values())


async def select_bill(
    database: Database,
    wanted: Mapping[str, str | None],
    since: str | None,
    until: str | None,
    after: Hashable,
    limit: int,
) -> BillPage:
    """Return the rows behind a key, in the order of their keys."""
    where, values = _filters(wanted, since, until)
    if after is not None:
        where += f" AND ({', '.join(_NAMES)}) > (%s, %s, %s, %s)"
        values += map(to_column, cast("tuple[str, ...]", after))
    query = (
        f"SELECT {', '.join((*_NAMES, *_COUNTS))} FROM {{s}}.bill WHERE {where}"  # noqa: S608 - constants
        f" ORDER BY {', '.join(_NAMES)} LIMIT %s"
    )
    rows = await database.read(query, [*values, limit])
    records = [_sum(_NAMES, row[: len(_NAMES)], row[len(_NAMES) :]) for row in rows]
    return BillPage(records, tuple(records[-1][: len(_NAMES)]) if records and len(rows) == limit else None)
