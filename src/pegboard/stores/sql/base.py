"""What the subjects of the store have in common: rows that are written soon, in batches, and transactions (S2, X4)."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable, Sequence, Sized
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from pegboard.errors import StoreError
from pegboard.ports import AuditRecord
from pegboard.ports.store_health import PendingCount
from pegboard.stores.sql.cleaning import Cleaning
from pegboard.stores.sql.database import ChangedMeanwhileError, Database, Transaction, insert, not_open_error
from pegboard.stores.sql.request_rows import PendingRecord, PendingRecords
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import call_later_detached, start_detached

T = TypeVar("T")

DELAY: Final = 0.03  # leaves 20 ms of the 50 for the loop and for other writers
LONGEST_PAUSE: Final = 0.5
"""After how many seconds at most a batch that failed is tried again."""
MOST_AT_ONCE: Final = 1_000
"""How many rows of a kind one batch has."""
_STORED: Final = "SELECT number FROM main.batch WHERE writer = ?"
_NUMBER: Final = insert("batch", ("writer", "number", "at"), key=("writer",))
_DAY: Final = 24 * 3600.0

log = logging.getLogger(__name__)


class PendingRows(Protocol):
    """Rows of one kind that are not written yet."""

    @property
    def rows(self) -> Sized:
        """Return them."""
        ...

    def take(self, most: int) -> Any:
        """Return the rows of the next batch, which are pending no longer."""
        ...

    async def put(self, transaction: Transaction, taken: Any) -> None:
        """Write what was taken."""
        ...

    def note_written(self, taken: Any) -> None:
        """Note that what was taken is stored."""
        ...

    def drop_surplus(self) -> int:
        """Drop the oldest where there are too many; return how many."""
        ...


class _Batch(NamedTuple):
    """What is written at once, under a number that tells afterwards whether it was."""

    number: int
    parts: Sequence[tuple[PendingRows, Any]]


class PendingWrites:
    """Writes pending rows, in order and once, also where a connection was lost before the database had answered.

    A batch that was not written, whatever the reason, is tried again by itself until it is.
    """

    def __init__(self, database: Database, records: PendingRecords) -> None:
        self._db: Final = database
        self._records: Final = records
        self.kinds: Final[list[PendingRows]] = [records]
        self.before_batch: Final[list[Callable[[], object]]] = []
        """Called before a batch is made, so that the rows that they add are in it."""
        self._writer = os.urandom(8).hex()
        self._batch: _Batch | None = None
        self._taken = 0
        self.has_rows = False
        """Whether there may be pending rows."""
        self._stored = 0
        self._writing = asyncio.Lock()
        self._backoff = Backoff(first=DELAY, longest=LONGEST_PAUSE)
        self._has_failed = False
        self._dropped = 0  # since something was written
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> PendingCount:
        """Return how many rows are pending, and how many were dropped since something was written."""
        taken = sum(len(rows) for _, rows in self._batch.parts) if self._batch is not None else 0
        return PendingCount(taken + sum(len(kind.rows) for kind in self.kinds), self._dropped)

    @property
    def is_scheduled(self) -> bool:
        """Return whether a running loop is about to write what is pending."""
        return self._timer is not None and self._loop is not None and self._loop.is_running()

    def schedule(self) -> None:
        """Have what is pending written soon; where no loop runs, with the next that is written."""
        self.has_rows = True
        if self._timer is None or self._loop is None or not self._loop.is_running():
            self._start_timer(DELAY)

    async def write_with(
        self,
        work: Callable[[Transaction], Awaitable[T]],
        *locks: str,
        decisions: Sequence[PendingRecord] = (),
    ) -> T:
        """Write what the work writes, and its decisions, behind what is pending; all of that, or nothing.

        What is pending is written before where an error does not say that nothing is. Returns what the work returns.
        """
        most = self._most_of_a_kind() if self.has_rows else 0
        if most > MOST_AT_ONCE or (self._db.answers_get_lost and (most or self._batch is not None)):
            await self.flush()
            most = 0
        if not most and (self._batch is None or self._db.answers_get_lost):
            result = await self._db.write(self._writing_all(work, None, decisions), *locks)
            if decisions:
                self._records.note_written(decisions)
            return result
        async with self._writing:
            batch = self._batch = self._batch or self._next_batch()
            try:
                result = await self._db.write(self._writing_all(work, batch, decisions), *locks)
            except BaseException:  # it may be the work alone that failed
                self.schedule()
                raise
            if batch is not None:
                self._is_stored(batch)
            if decisions:
                self._records.note_written(decisions)
            return result

    def _writing_all(
        self, work: Callable[[Transaction], Awaitable[T]], batch: _Batch | None, decisions: Sequence[PendingRecord]
    ) -> Callable[[Transaction], Awaitable[T]]:
        async def write(transaction: Transaction) -> T:
            result = await work(transaction)
            if batch is not None or decisions:
                await self._write_batch(batch, decisions, transaction)
            return result

        return write

    async def flush(self) -> None:
        """Write what is pending now, one batch after the other; what comes meanwhile is for the next flush."""
        pending = self._most_of_a_kind()
        if self._batch is None and not pending:
            self.has_rows = False
            return
        last = self._taken + math.ceil(pending / MOST_AT_ONCE)
        await self._writing.acquire()
        try:
            if self._batch is not None and self._db.answers_get_lost:
                rows = await self._db.rows(_STORED, self._writer)
                if rows and rows[0][0] >= self._batch.number:
                    self._is_stored(self._batch)
            while self._stored < last and (batch := self._batch or self._next_batch()) is not None:
                self._batch = batch
                await self._db.write(partial(self._write_batch, batch, ()))
                self._is_stored(batch)
        except BaseException:
            self._retry_later()
            raise
        finally:
            self._writing.release()

    async def finish(self) -> None:
        """End the flush that runs and write what is pending; what cannot be written is not tried again."""
        if self._task is not None:
            self._task.cancel()
        try:
            await self.flush()
        finally:
            self._stop_timer()

    def _is_stored(self, batch: _Batch) -> None:
        self._stored, self._batch = batch.number, None
        for kind, taken in batch.parts:
            kind.note_written(taken)
        if self._has_failed:
            if self._dropped:
                log.error("The store is written again; the %d oldest records had to be dropped.", self._dropped)
            self._has_failed, self._dropped = False, 0
        self._backoff.reset()

    def _next_batch(self) -> _Batch | None:
        kinds = [kind for kind in self.kinds if kind.rows]
        if not kinds:
            return None
        if self.before_batch:
            for call in self.before_batch:
                call()
            kinds = [kind for kind in self.kinds if kind.rows]
        self._taken += 1
        return _Batch(self._taken, [(kind, kind.take(MOST_AT_ONCE)) for kind in kinds])

    async def _write_batch(
        self, batch: _Batch | None, decisions: Sequence[PendingRecord], transaction: Transaction
    ) -> None:
        """Write a batch, and decisions behind its records with the same statement."""
        if batch is not None and self._db.answers_get_lost:
            now = self._db.clock()
            await transaction.run(_NUMBER, self._writer, batch.number, now)
            await transaction.run("DELETE FROM main.batch WHERE at < ?", now - _DAY)
        for kind, taken in batch.parts if batch is not None else ():
            if kind is self._records:
                decisions = [*taken, *decisions]
            else:
                await kind.put(transaction, taken)
        if decisions:
            await self._records.put(transaction, decisions)
        transaction.announce(others=True)

    def _most_of_a_kind(self) -> int:
        most = 0
        for kind in self.kinds:
            if (rows := kind.rows) and len(rows) > most:
                most = len(rows)
        return most

    def _retry_later(self) -> None:
        """Have the batch that was not written tried again after a pause; drop what is too much until then."""
        self._dropped += sum(kind.drop_surplus() for kind in self.kinds)
        self._start_timer(self._backoff.next())

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._loop, self._timer = loop, call_later_detached(seconds, self._start)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self._timer = None
        if not self._db.is_open:
            return
        if self._task is None or self._task.done():
            self._task = start_detached(self._flush_pending())
        else:  # it may have taken what it writes before this came
            self.schedule()

    async def _flush_pending(self) -> None:
        try:
            await self.flush()
        except StoreError as error:
            if not self._has_failed:
                self._has_failed = True
                log.error("Records and counts are not written yet, which is tried again. %s", error.message)


T = TypeVar("T")

LONGEST: Final = 600.0
"""For how many seconds a lease is asked for at most: one that ends later was taken before the clock was set back."""
_TAKE: Final = (
    "INSERT INTO main.lease AS old (name, holder, until) VALUES (?, ?, clock() + ?)"
    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until"
    " WHERE old.holder = excluded.holder OR old.until <= clock() OR old.until > clock() + ?"
)


class StoreBase:
    """One part of the store, which keeps one subject; :class:`SqlStore` combines them."""

    def __init__(self, database: Database) -> None:
        self._db: Final = database
        self._cleaning: Final = Cleaning(database)
        self._records: Final = PendingRecords(self._cleaning)
        self._batches: Final = PendingWrites(database, self._records)
        self._on_change: Final[list[Callable[[str, str | None], None]]] = []
        """Called with what another process may have changed, as ``Database.open`` says."""
        self._version = 0
        self._secrets: dict[str, tuple[int, bytes]] = {}

    async def _write(
        self, work: Callable[[Transaction], Awaitable[T]], *locks: str, audit: Sequence[AuditRecord] = ()
    ) -> T:
        """Return what the work returns once it is committed with its records, after the pending ones."""
        batches = self._batches
        if not audit:
            forgotten = batches.has_rows and not batches.is_scheduled
            return await (batches.write_with if forgotten else self._db.write)(work, *locks)

        if not self._db.lasts:  # then a record need not be stored before this returns
            result = await self._db.write(work, *locks)
            self._records.rows += self._records.records_of(audit)
            batches.schedule()
            return result

        return await batches.write_with(work, *locks, decisions=self._records.records_of(audit))

    async def _write_or_none(
        self, work: Callable[[Transaction], Awaitable[T]], *locks: str, audit: Sequence[AuditRecord] = ()
    ) -> T | None:
        """Return the same, or None where the work lost a race: nothing is stored then."""
        try:
            return await self._write(work, *locks, audit=audit)
        except ChangedMeanwhileError:
            return None

    def _require_open(self) -> None:
        if not self._db.is_open:
            raise not_open_error(self._db.place)

    async def _secret(self, name: str) -> bytes:
        """Return a secret of the store, which one process has made and every process uses."""
        known = self._secrets.get(name)
        if known is None or known[0] != self._db.file_number:
            from secrets import token_bytes  # every start would pay for it

            async def read_or_make(transaction: Transaction) -> bytes:
                made = "INSERT INTO main.secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
                await transaction.run(made, name, token_bytes(32))
                return (await transaction.rows("SELECT value FROM main.secret WHERE name = ?", name))[0][0]

            value = await self._write(read_or_make)
            known = self._secrets[name] = self._db.file_number, value
        return known[1]

    def _next_version(self, found: int, now: float) -> int:
        """Return a version that was never used: the time in microseconds, or one more than the greatest known."""
        self._version = max(int(now * 1_000_000), self._version + 1, found + 1)
        return self._version

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that has no other holder; return whether the holder has it."""

        async def take(transaction: Transaction) -> bool:
            return await transaction.changed(_TAKE, name, holder, seconds, max(seconds, LONGEST)) > 0

        return await self._write(take)

    async def end_lease(self, name: str, holder: str) -> None:
        """Give a lease back, if it is still this holder's."""

        async def end(transaction: Transaction) -> None:
            await transaction.run("DELETE FROM main.lease WHERE name = ? AND holder = ?", name, holder)

        await self._write(end)
