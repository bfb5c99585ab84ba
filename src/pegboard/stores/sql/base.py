"""What the subjects of the store have in common: the database, what is pending, and transactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from pegboard.ports import AuditRecord
from pegboard.stores.sql.cleaning import Cleaning
from pegboard.stores.sql.database import ChangedMeanwhileError, Database, Transaction, not_open
from pegboard.stores.sql.pending_records import PendingRecords
from pegboard.stores.sql.pending_writes import PendingWrites

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
        self._records: Final = PendingRecords(database, self._cleaning)
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
            self._records.rows += self._records.of(audit)
            batches.schedule()
            return result

        return await batches.write_with(work, *locks, decisions=self._records.of(audit))

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
            raise not_open(self._db.place)

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
