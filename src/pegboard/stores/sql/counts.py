"""The bill and the counts of calls by time: added to in batches, summed by the database (F4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pegboard.ports import (
    BILL_DAYS,
    BillCounts,
    BillPage,
    BillRecord,
    BillSums,
    UsageCounts,
    UsageRecord,
    UsageSums,
    UsageUnit,
)
from pegboard.ports.tokens import MOST_GREATEST
from pegboard.ports.usage import DAY, UNITS, folded, start_of
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Database, Transaction, insert, one_of, where

if TYPE_CHECKING:
    from pegboard.ports import BillName
    from pegboard.ports.usage import UsageName

BillKey = tuple[str, str, str, str]
UsageKey = tuple[int, str, str, str, str]
_BILL: Final = ("day", "principal", "agent", "session")
_USAGE: Final = ("start", "agent", "server", "tool", "outcome")
_ADD_BILL: Final = insert("bill", (*_BILL, *BillCounts._fields), key=_BILL, add=True)
_ADD_USAGE: Final = insert("usage", ("seconds", *_USAGE, *UsageCounts._fields), key=("seconds", *_USAGE), add=True)

FOLDED_EVERY: Final = 50
"""After how many batches, or with how many counts in one, it is looked whether there are too many rows."""


class _Taken(NamedTuple):
    bill: Mapping[BillKey, BillCounts]
    usage: Mapping[UsageKey, UsageCounts]


class WaitingCounts:
    """Counts that are not stored yet, summed by their names, however long they wait."""

    def __init__(self) -> None:
        self._bill: dict[BillKey, BillCounts] = {}
        self._usage: dict[UsageKey, UsageCounts] = {}
        self._puts = 0

    def __len__(self) -> int:
        """Return whether any wait; they fit into one batch."""
        return 1 if self._bill or self._usage else 0

    def add_bill(self, records: Iterable[BillRecord]) -> None:
        """Take what is to be added to the bill."""
        for *names, counts in records:
            key = cast("BillKey", tuple(names))
            self._bill[key] = self._bill.get(key, BillCounts()).plus(counts)

    def add_usage(self, records: Iterable[UsageRecord]) -> None:
        """Take what is to be added to the counts by time."""
        for start, agent, server, tool, outcome, counts in records:
            key = start_of(UNITS[0], start), agent, server, tool, outcome
            self._usage[key] = self._usage.get(key, UsageCounts()).plus(counts)

    def take(self, most: int) -> _Taken:  # noqa: ARG002 - they are few
        """Return what is to be written."""
        taken, self._bill, self._usage = _Taken(self._bill, self._usage), {}, {}
        return taken

    async def put(self, transaction: Transaction, taken: _Taken) -> None:
        """Add to the rows, and remove those that are too old."""
        if taken.bill:
            await transaction.many(_ADD_BILL, [(*key, *counts) for key, counts in sorted(taken.bill.items())])
            oldest = date.fromisoformat(max(taken.bill)[0]) - timedelta(days=BILL_DAYS)
            await transaction.run("DELETE FROM main.bill WHERE day < ?", oldest.isoformat())
        for unit in UNITS if taken.usage else ():
            summed: dict[UsageKey, UsageCounts] = {}
            for (start, *names), counts in taken.usage.items():
                key = cast("UsageKey", (start_of(unit, start), *names))
                summed[key] = summed.get(key, UsageCounts()).plus(counts)
            await transaction.many(
                _ADD_USAGE, [(unit.seconds, *key, *counts) for key, counts in sorted(summed.items())]
            )
            oldest = max(taken.usage)[0] - unit.kept - unit.seconds
            await transaction.run("DELETE FROM main.usage WHERE seconds = ? AND start <= ?", unit.seconds, oldest)
        self._puts += 1
        if len(taken.usage) >= FOLDED_EVERY or (taken.usage and self._puts % FOLDED_EVERY == 0):
            await _fold_all(transaction)

    def written(self, taken: _Taken) -> None:
        """Do nothing more."""

    def drop_surplus(self) -> int:
        """Keep all: they are few."""
        return 0


async def _fold_all(transaction: Transaction) -> None:
    """Sum the smallest rows of each stretch of time that has too many."""
    most = " ".join(f"WHEN {unit.seconds} THEN {unit.most}" for unit in UNITS)
    query = f"SELECT seconds, start FROM main.usage GROUP BY seconds, start HAVING count(*) > CASE seconds {most} END"  # noqa: S608
    mine = "FROM main.usage WHERE seconds = ? AND start = ?"
    names = ", ".join((*_USAGE[1:], *UsageCounts._fields))
    for seconds, start in await transaction.rows(query):
        unit = next(unit for unit in UNITS if unit.seconds == seconds)
        found = await transaction.rows(f"SELECT {names} {mine}", seconds, start)
        left = folded({row[:4]: UsageCounts(*row[4:]) for row in found}, unit.most)
        await transaction.run(f"DELETE {mine}", seconds, start)
        await transaction.many(_ADD_USAGE, [(seconds, start, *key, *counts) for key, counts in left.items()])


class Counts(StoreBase):
    """The part of the store that keeps the bill and the counts of calls by time."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._waiting_counts = WaitingCounts()
        self._batches.kinds.append(self._waiting_counts)

    @property
    def lasts(self) -> bool:
        """Return whether what is stored outlives the process."""
        return self._db.lasts

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:
        """Have what was counted handed over as a batch is made, where another process may serve on."""
        if self._db.answers_get_lost:
            self._batches.before_batch.append(hand_over)
        return self._db.answers_get_lost

    def bill_later(self, *records: BillRecord) -> None:
        """Add to the bill within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._require_open()
        self._waiting_counts.add_bill(records)
        self._batches.schedule()

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to the counts by time within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._require_open()
        self._waiting_counts.add_usage(records)
        self._batches.schedule()

    async def bill(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        after: Hashable = None,
        limit: int = 2000,
    ) -> BillPage:
        """Return a part of what is stored, the oldest day first; what waits is written before."""
        await self._batches.flush()
        condition, values = _of_bill(since, until, None, principal=principal, agent=agent, session=session)
        if after is not None:
            condition = f"{condition or ' WHERE 1 = 1'} AND ({', '.join(_BILL)}) > (?, ?, ?, ?)"
            values += cast("tuple[str, ...]", after)
        names = ", ".join((*_BILL, *BillCounts._fields))
        query = f"SELECT {names} FROM main.bill{condition} ORDER BY {', '.join(_BILL)} LIMIT ?"  # noqa: S608 - constants
        rows = await self._db.rows(query, *values, limit)
        records = [record for row in rows if (record := _intact_bill(row)) is not None]
        return BillPage(records, rows[-1][:4] if rows and len(rows) == limit else None, len(rows) - len(records))

    async def bill_sums(
        self,
        *,
        by: Sequence[BillName],
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        agents: Collection[str] | None = None,
        greatest: int | None = None,
    ) -> BillSums:
        """Return sums of the bill; what waits is written before."""
        await self._batches.flush()
        condition, values = _of_bill(since, until, agents, principal=principal, agent=agent, session=session)
        names = ", ".join(by)
        query = f"SELECT {names}{', ' if by else ''}{_sums(BillCounts)}, count(*) OVER () FROM main.bill{condition}"  # noqa: S608
        query += f" GROUP BY {names}" if by else ""
        if greatest is not None and by:
            query += f" ORDER BY sum(tokens + arguments + results) DESC, {names} LIMIT ?"
            values.append(max(min(greatest, MOST_GREATEST), 1))
        elif by:
            query += f" ORDER BY {names}"
        rows = [row for row in await self._db.slow_rows(query, *values) if row[len(by)] is not None]
        kept = rows if greatest is None else rows[: max(greatest, 0)]
        records = [BillRecord(*_named(_BILL, by, row), BillCounts(*row[len(by) : -1])) for row in kept]
        return BillSums(records, more=(rows[0][-1] if rows and greatest is not None else len(kept)) - len(kept))

    async def usage(
        self, unit: UsageUnit, *, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None = None
    ) -> UsageSums:
        """Return sums over a time; what waits is written before."""
        await self._batches.flush()
        condition, values = where({"seconds = ?": unit.seconds, "start >= ?": since, "start < ?": until})
        if agents is not None:
            of_agents, given = one_of("agent", agents)
            condition, values = f"{condition} AND {of_agents}", [*values, *given]
        names = ", ".join(by)
        query = f"SELECT {names}{', ' if by else ''}{_sums(UsageCounts)} FROM main.usage{condition}"  # noqa: S608 - constants
        query += f" GROUP BY {names} ORDER BY {names}" if by else ""
        read = self._db.slow_rows if unit is DAY else self._db.rows  # days are asked for by the month
        rows = [row for row in await read(query, *values) if row[len(by)] is not None]
        return UsageSums([UsageRecord(*_named(_USAGE, by, row), UsageCounts(*row[len(by) :])) for row in rows])


def _sums(counts: Any) -> str:
    return ", ".join(f"CAST(sum({name}) AS bigint)" for name in counts._fields)


def _named(names: Sequence[str], by: Sequence[str], row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the names of a sum in the order of a record's; those that it is not told apart by are empty."""
    given = dict(zip(by, row, strict=False))
    return tuple(given.get(name, 0 if name == "start" else "") for name in names)


def _of_bill(
    since: str | None, until: str | None, agents: Collection[str] | None, **names: str | None
) -> tuple[str, list[Any]]:
    condition, values = where(
        {**{f"{name} = ?": value for name, value in names.items()}, "day >= ?": since, "day <= ?": until}
    )
    if agents is not None:
        of_agents, given = one_of("agent", agents)
        condition, values = f"{condition or ' WHERE 1 = 1'} AND {of_agents}", [*values, *given]
    return condition, values


def _intact_bill(row: Sequence[Any]) -> BillRecord | None:
    """Return a row as a record, or None where a column holds what is never written."""
    try:
        date.fromisoformat(row[0])
    except (TypeError, ValueError):
        return None
    if any(type(count) is not int for count in row[4:]):
        return None
    return BillRecord(row[0], row[1], row[2], row[3], BillCounts(*row[4:]))
