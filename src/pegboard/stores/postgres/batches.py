"""What waits to be written in batches: calls, remembered use, the bill and counts by time (S2, X4, F4, P3)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pegboard.ports import MOST_DETAILS, AuditRecord, BillCounts, CallDetails, UsageCounts, UseRecord
from pegboard.stores.postgres import bill, trail, usage, uses
from pegboard.stores.postgres.texts import key_of, to_column
from pegboard.stores.rows.waiting_counts import BillKey, UsageKey, WaitingBill, WaitingUsage
from pegboard.stores.rows.waiting_records import WaitingRecords
from pegboard.stores.rows.waiting_uses import MOST_WAITING, joined

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Database, Row, Statement
    from pegboard.stores.postgres.pulse import Pulse

MOST_AT_ONCE: Final = 1_000
"""How many records one batch has."""
_NONE: Final[Mapping[int, CallDetails]] = {}
_STORED: Final = "SELECT number FROM {s}.flushes WHERE writer = %s"
_NUMBER: Final = (
    "INSERT INTO {s}.flushes (writer, number) VALUES (%s, %s)"
    " ON CONFLICT (writer) DO UPDATE SET number = excluded.number, at = now()"
)
_ENDED: Final = "DELETE FROM {s}.flushes WHERE at < now() - interval '1 day'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What is written at once, under a number that tells afterwards whether it was."""

    number: int
    records: Sequence[AuditRecord]
    details: Mapping[int, CallDetails]
    uses: Sequence[UseRecord]
    bill: Mapping[BillKey, BillCounts]
    usage: Mapping[UsageKey, UsageCounts]


class Batches:
    """What waits; each is stored once, also where a connection was lost before the server had answered.

    ``keep`` is about how many of the newest audit entries are kept.
    """

    def __init__(self, flush: Callable[[], Awaitable[None]], *, keep: int) -> None:
        self.records: Final = WaitingRecords(flush)
        self.bill: Final = WaitingBill()
        self.usage: Final = WaitingUsage()
        self._uses: list[UseRecord] = []
        self._read = uses.ReadUses()
        self._keep = keep
        self._trim_every = max(1, min(1024, keep // 10))
        self._untrimmed = 0
        self._writer = secrets.token_hex(8)
        self._batch: _Batch | None = None
        self._number = 0
        self._newest = 0
        """The number of the newest batch that is stored."""
        self._flushing = asyncio.Lock()
        self.hand_over: Callable[[], object] = lambda: None
        """Hands over what was counted until now."""
        self._making = False

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return self._batch is not None or self._has_more()

    def _has_more(self) -> bool:
        """Return whether anything waits that is in no batch."""
        return bool(self.records or self._uses or self.bill.waiting or self.usage.waiting)

    def stop(self) -> None:
        """Start no more flushes by themselves; what waits stays."""
        self.records.stop()

    def schedule(self) -> None:
        """See to it that what waits is written soon; what is handed over as a batch is made is in that one."""
        if not self._making:
            self.records.schedule()

    # -- writing -----------------------------------------------------------------------------------

    async def flush(self, database: Database, pulse: Pulse) -> None:
        """Write what waits now, one batch after the other; what comes meanwhile waits for the next."""
        last = self._number + (1 + len(self.records) // MOST_AT_ONCE if self._has_more() else 0)
        async with self._flushing:
            if self._batch is not None and await self._is_stored(database, self._batch):
                self._newest, self._batch = self._batch.number, None
            while self._newest < last and (batch := self._batch or self._taken()) is not None:
                self._batch = batch
                statements, places = self._message(pulse, batch)
                answers = await database.script(*statements)
                self._newest, self._batch = batch.number, None
                await self._follow_up(database, pulse, batch, answers, places)

    async def _is_stored(self, database: Database, batch: _Batch) -> bool:
        rows = await database.read(_STORED, (self._writer,))
        return bool(rows) and rows[0][0] >= batch.number

    def _taken(self) -> _Batch | None:
        """Return what waits, or a part of it, which waits no more; None where nothing does."""
        if not self._has_more():
            return None
        self._making = True
        try:
            self.hand_over()
        finally:
            self._making = False
        records, details = self.records.take(MOST_AT_ONCE)
        self._number += 1
        batch = _Batch(
            number=self._number,
            records=records,
            details=details,
            uses=self._uses,
            bill=self.bill.waiting,
            usage=self.usage.waiting,
        )
        self._uses = []
        self.bill.drop()
        self.usage.drop()
        return batch

    def _message(self, pulse: Pulse, batch: _Batch) -> tuple[list[Statement], dict[str, int]]:
        """Return the statements that store a batch, and which of them return something."""
        of = {key_of(use.principal, use.agent) for use in batch.uses}
        statements: list[Statement] = [(_NUMBER, (self._writer, batch.number))]
        places: dict[str, int] = {}
        for name, some in (
            ("full", usage.writing(batch.usage) if batch.usage else []),
            ("old", uses.writing(batch.uses) if batch.uses else []),
            ("", bill.writing(batch.bill) if batch.bill else []),
        ):
            statements += some
            if some:
                places[name] = len(statements) - 1
        if batch.records:
            places["audit"] = len(statements) + 1
        statements += self.inserting(pulse, batch.records, batch.details)
        return [*statements, *pulse.telling(uses=sorted(of), others=True)], places

    def inserting(
        self, pulse: Pulse, records: Sequence[AuditRecord], details: Mapping[int, CallDetails] = _NONE
    ) -> list[Statement]:
        """Return the statements that store records, numbered in the order in which transactions end."""
        return [pulse.in_order(), *trail.writing(records, details)] if records else []

    async def _follow_up(
        self, database: Database, pulse: Pulse, batch: _Batch, answers: list[list[Row]], places: Mapping[str, int]
    ) -> None:
        """Take up what a stored batch has changed, and keep the tables small."""
        changed = {key_of(use.principal, use.agent) for use in batch.uses}
        gone = {row[0] for row in answers[places["old"]]} if "old" in places else set[bytes]()
        for of in changed | gone:
            self._read.forget(of)
        if gone:
            await database.script(*pulse.telling(uses=sorted(gone)))
        for seconds, start in answers[places["full"]] if "full" in places else []:
            await database.transact(partial(usage.fold, seconds=seconds, start=start))
        if "audit" in places:
            await self._trim(database, batch, answers[places["audit"]][0][0])

    async def _trim(self, database: Database, batch: _Batch, last: int) -> None:
        self._untrimmed += sum(len(one.text) for one in batch.details.values())
        before = last - len(batch.records)
        if last // self._trim_every != before // self._trim_every or self._untrimmed > trail.TRIMMED_EVERY:
            self._untrimmed = 0
            await database.script(*trail.trimming(last - self._keep, MOST_DETAILS), (_ENDED, ()))

    # -- remembered use ----------------------------------------------------------------------------

    def remember(self, new: Iterable[UseRecord]) -> None:
        """Take uses. Where they cannot be written for long, the oldest give way."""
        self._uses.extend(new)
        del self._uses[:-MOST_WAITING]
        self.records.schedule()

    def forget_uses(self, of: bytes | None) -> None:
        """Take up that another process has changed the uses of somebody; None is anybody."""
        self._read.forget(of)

    async def uses(self, database: Database, pulse: Pulse, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is stored and what waits, the newest last; the same object as long as nothing has changed."""
        of = key_of(principal, agent)
        stored = self._read.fresh(of) if pulse.hears else None
        while stored is None:
            began = self._read.forgotten
            read = await self._stored(database, of, (principal, agent), told=pulse.hears)
            if began == self._read.forgotten:  # else what waited may have been stored after that was read
                stored = read
        waiting = [*(self._batch.uses if self._batch else ()), *self._uses]
        mine = [use for use in waiting if (use.principal, use.agent) == (principal, agent)]
        return joined(stored, mine) if mine else stored

    async def _stored(
        self, database: Database, of: bytes, who: tuple[str, str], *, told: bool
    ) -> tuple[UseRecord, ...]:
        """Return what is stored; what was read before stays where it is of the same extent."""
        began = self._read.forgotten
        newest, count = (await database.read(uses.EXTENT, (of,)))[0]
        told = told and began == self._read.forgotten
        if (known := self._read.same(of, (newest, count), told=told)) is not None:
            return known
        rows = await database.read(uses.SELECT, (of,))
        found = tuple(uses.use_of(*who, row[1:]) for row in rows)
        self._read.keep(of, (rows[-1][0] if rows else None, len(rows)), found)
        return found

    async def delete_uses(self, database: Database, pulse: Pulse, wanted: Mapping[str, str | None]) -> int:
        """Remove uses whose columns have these values (None: any); return how many there were."""
        await self.flush(database, pulse)
        filters = {name: to_column(value) for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = %s" for name in filters) or "true"
        query = f"DELETE FROM {{s}}.uses WHERE {where} RETURNING of"  # noqa: S608 - constants
        (gone, *_) = await database.script((query, tuple(filters.values())))
        keys = sorted({row[0] for row in gone})
        for of in keys:
            self._read.forget(of)
        if keys:
            await database.script(*pulse.telling(uses=keys))
        return len(gone)
