"""Remembered use: written in batches, read again only where it has changed (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports import USE_LIFETIME, USES_KEPT, UseRecord
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Database, Row, Transaction, insert, key_of, where_clause

MOST_PENDING: Final = 10_000
MOST_READ: Final = 128
"""Of how many principals and agents what was read is kept."""
_OWNER: Final = "principal = ? AND agent = ?"
_PUT: Final = insert("use", UseRecord._fields, key=UseRecord._fields[1:])
_REMOVE: Final = f"DELETE FROM main.use WHERE {_OWNER} AND need = ? AND tool = ?"  # noqa: S608 - constants
_SURPLUS: Final = (
    f"DELETE FROM main.use WHERE {_OWNER} AND (SELECT count(*) FROM main.use WHERE {_OWNER}) > ?"  # noqa: S608 - constants
    f" AND id NOT IN (SELECT id FROM main.use WHERE {_OWNER} ORDER BY id DESC LIMIT ?)"
)
_TYPES: Final = (float, str, str, str, str)
_EXTENT: Final = f"SELECT max(id), count(*) FROM main.use WHERE {_OWNER}"  # noqa: S608 - constants
_SELECT: Final = f"SELECT at, principal, agent, need, tool FROM main.use WHERE {_OWNER} ORDER BY id"  # noqa: S608


class PendingUses:
    """Uses that are not stored yet."""

    def __init__(self, uses: Uses) -> None:
        self._of = uses
        self.rows: list[UseRecord] = []
        self._taken: list[UseRecord] = []

    def add(self, uses: Sequence[UseRecord]) -> None:
        """Take uses; the oldest are dropped where there are too many."""
        self.rows.extend(uses)
        self.drop_surplus()

    def pending_of(self, principal: str, agent: str) -> list[UseRecord]:
        """Return what is not stored yet of a principal and agent."""
        return [use for use in (*self._taken, *self.rows) if (use.principal, use.agent) == (principal, agent)]

    def take(self, most: int) -> list[UseRecord]:
        """Return the uses of the next batch."""
        self._taken, self.rows = self.rows[:most], self.rows[most:]
        return self._taken

    async def put(self, transaction: Transaction, taken: list[UseRecord]) -> None:
        """Write uses, and remove what is surplus or too old."""
        await self._of.put_uses(transaction, taken)

    def note_written(self, taken: list[UseRecord]) -> None:
        """Note that they are stored."""
        self._taken = []
        for use in taken:
            self._of.forget_read("u", key_of(use.principal, use.agent))

    def drop_surplus(self) -> int:
        """Drop the oldest where there are too many."""
        surplus = max(0, len(self.rows) - MOST_PENDING)
        del self.rows[:surplus]
        return surplus


class Uses(StoreBase):
    """The part of the store that keeps what was called after which need."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._pending_uses = PendingUses(self)
        self._batches.kinds.append(self._pending_uses)
        self._read_uses: dict[str, tuple[Row, tuple[UseRecord, ...]]] = {}  # behind what tells whether they changed
        self._unchanged: set[str] = set()  # those of which a change would have been announced
        self._forgotten = 0
        self._oldest: float | None = None
        self._on_change.append(self.forget_read)

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._require_open()
        self._pending_uses.add(uses)
        self._batches.schedule()

    async def put_uses(self, transaction: Transaction, uses: Sequence[UseRecord]) -> None:
        """Write uses, and remove what is surplus or too old."""
        newest: dict[tuple[str, ...], UseRecord] = {}
        for use in uses:
            newest.pop(use[1:], None)
            newest[use[1:]] = use
        for key in newest:
            await transaction.run(_REMOVE, *key)
        await transaction.run_many(_PUT, newest.values())
        owners = {(use.principal, use.agent) for use in uses}
        for owner in sorted(owners):
            await transaction.run(_SURPLUS, *owner, *owner, USES_KEPT, *owner, USES_KEPT)
        transaction.announce(uses=[key_of(*owner) for owner in owners])
        end = max(use.at for use in uses) - USE_LIFETIME
        self._oldest = None if self._oldest is None else min(self._oldest, *(use.at for use in uses))
        if self._oldest is None or self._oldest < end:
            await self._remove_old(transaction, end)

    async def _remove_old(self, transaction: Transaction, end: float) -> None:
        for owner in await transaction.rows("SELECT DISTINCT principal, agent FROM main.use WHERE at < ?", end):
            transaction.announce(uses=[key_of(*owner)])
            self.forget_read("u", key_of(*owner))
        await transaction.run("DELETE FROM main.use WHERE at < ?", end)
        self._oldest = (await transaction.rows("SELECT min(at) FROM main.use"))[0][0]

    async def uses(self, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is stored and pending, the newest last; the same object as long as nothing has changed."""
        if not self._db.lasts and self._pending_uses.pending_of(
            principal, agent
        ):  # then nothing else writes them at once
            await self._batches.flush()
        own = key_of(principal, agent)
        stored = self._read_uses[own][1] if own in self._unchanged and self._db.hears else None
        while stored is None:
            began = self._forgotten
            found = await self._stored_uses(own, principal, agent)
            if began == self._forgotten:  # else what was pending may have been stored after that was read
                stored = found
        if not (pending := self._pending_uses.pending_of(principal, agent)):
            return stored
        newest = {(use.need, use.tool): use for use in pending}
        return (*(use for use in stored if (use.need, use.tool) not in newest), *newest.values())[-USES_KEPT:]

    async def _stored_uses(self, own: str, principal: str, agent: str) -> tuple[UseRecord, ...]:
        began, hears = self._forgotten, self._db.hears
        stamp = self._db.file_number, *(await self._db.rows(_EXTENT, principal, agent))[0]
        known = self._read_uses.get(own)
        if known is None or known[0] != stamp:
            rows = await self._db.rows(_SELECT, principal, agent)
            found = tuple(UseRecord(*row) for row in rows if tuple(map(type, row)) == _TYPES)  # not what is damaged
            if len(self._read_uses) >= MOST_READ:
                self._read_uses.clear()
                self._unchanged.clear()
            known = self._read_uses[own] = stamp, found
        if hears and began == self._forgotten:
            self._unchanged.add(own)
        return known[1]

    def forget_read(self, kind: str, key: str | None) -> None:
        """Take up that the uses of a principal and agent, or of all, may have changed."""
        if kind != "u":
            return
        self._forgotten += 1
        if key is None:
            self._unchanged.clear()
        else:
            self._unchanged.discard(key)

    async def forget_uses(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Remove what is remembered, and overwrite it in a file; return how many there were."""
        await self._batches.flush()
        wanted, values = where_clause({"principal = ?": principal, "agent = ?": agent})

        async def forget(transaction: Transaction) -> int:
            owners = await transaction.rows(f"SELECT DISTINCT principal, agent FROM main.use{wanted}", *values)  # noqa: S608
            transaction.announce(uses=[key_of(*owner) for owner in owners])
            return await transaction.erase(f"DELETE FROM main.use{wanted}", *values)  # noqa: S608 - constants

        gone = await self._write(forget)
        self._read_uses.clear()
        self.forget_read("u", None)
        return gone
