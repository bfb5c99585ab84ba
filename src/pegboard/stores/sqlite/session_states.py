"""The file of a store: session states and past uses, and what waits to be written with the next change (S2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pegboard.errors import StoreError
from pegboard.ports import (
    UNREAD,
    AuditRecord,
    BillRecord,
    CallDetails,
    ChangeToken,
    SessionKey,
    StateChange,
    StoredState,
    Unread,
    UsageRecord,
    UseRecord,
)
from pegboard.stores.sqlite.audit import AuditQueue
from pegboard.stores.sqlite.bill import BillQueue
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.usage import UsageQueue
from pegboard.stores.sqlite.uses import UseQueue

if TYPE_CHECKING:
    import sqlite3

    from pegboard.stores.sqlite.database import Database, Work

T = TypeVar("T")
Columns = tuple[str | bytes, str | bytes, str | bytes]


class SqliteStates:
    """A file with session states and past uses, opened, written in transactions and closed.

    ``audit_keep`` is about how many of the newest audit entries are kept, ``patience`` for how many seconds a
    change waits for other writers before it raises ``StoreBusyError``.
    """

    def __init__(
        self,
        path: Path,
        *,
        audit_keep: int = 100_000,
        patience: float = 30.0,
    ) -> None:
        self.path = path.absolute()
        self._patience = patience
        self._database: Database | None = None
        self._queue = AuditQueue(self._flush, keep=audit_keep)
        self._uses = UseQueue()
        self._bill = BillQueue()
        self._usage = UsageQueue()
        self._digest_key: tuple[int, bytes] | None = None  # with the generation of the file
        self._changes = 0  # of states, switches and claims, through this connection
        self._data_version: tuple[int, int] | None = None  # with the generation of the file in front
        self._token: ChangeToken | None = None
        self._looked_at = 0.0  # when the data version was read

    async def open(self) -> None:
        """Make the file, folder and tables where they are missing.

        Raises ``StoreError`` where it cannot be made, read or written, ``StoreSchemaError`` where it is damaged,
        newer or not ours, ``StoreBusyError`` where it stays locked.
        """
        if self._database is None:
            from pegboard.stores.sqlite.database import Database

            database = Database(self.path, patience=self._patience)
            await database.open()
            self._database = database

    async def aclose(self) -> None:
        """Write what still waits and let go of the file."""
        if self._database is None:
            return
        try:
            self._queue.stop()
            await self._flush()
        finally:
            self._database.close()
            self._database = self._digest_key = self._token = None

    def known_state(self, key: SessionKey) -> Unread:  # noqa: ARG002 - a file is read in microseconds
        """Return that it has to be read."""
        return UNREAD

    async def load(self, key: SessionKey) -> StoredState | None:
        """Return the stored state, or None where there is none."""
        row = await self._opened().read(
            lambda connection: connection.execute(
                "SELECT text, version, updated_at FROM sessions WHERE principal = ? AND agent = ? AND session = ?",
                _columns(key),
            ).fetchone()
        )
        return StoredState(text=from_column(row[0]), version=row[1], updated_at=row[2]) if row else None

    async def save(
        self, key: SessionKey, text: str | None, *, expected: int, audit: Sequence[AuditRecord] = ()
    ) -> int | None:
        """Store the text if the stored version is still ``expected``; return the new version or None (S2).

        A version is the time in microseconds, or one more than the version before where that is later: none is
        used twice, also where a state was removed meanwhile.
        """
        version = 0 if text is None else max(time.time_ns() // 1000, expected + 1)

        def swap(connection: sqlite3.Connection) -> int | None:
            if not _swapped(connection, _columns(key), text, version, expected):
                return None
            self._queue.write(connection, audit)
            return version

        return await self._write(swap, permissions=False)

    async def save_together(
        self, changes: Sequence[StateChange], *, audit: Sequence[AuditRecord] = ()
    ) -> Sequence[int] | None:
        """Store several states if all are of the expected versions; return the new ones or None (S2)."""
        now = time.time_ns() // 1000
        versions = [0 if one.text is None else max(now, one.expected + 1) for one in changes]

        def swap(connection: sqlite3.Connection) -> list[int] | None:
            if any(_version(connection, _columns(one.key)) != one.expected for one in changes):
                return None
            for one, version in zip(changes, versions, strict=True):
                _swapped(connection, _columns(one.key), one.text, version, one.expected)
            self._queue.write(connection, audit)
            return versions

        return await self._write(swap, permissions=False)

    async def sessions(
        self, *, principal: str | None = None, agent: str | None = None
    ) -> Sequence[tuple[SessionKey, StoredState]]:
        """Return what is stored, newest change first."""
        clauses = [(name, value) for name, value in (("principal", principal), ("agent", agent)) if value is not None]
        where = " AND ".join(f"{name} = ?" for name, _ in clauses) or "1"
        rows = await self._opened().read(
            lambda connection: connection.execute(
                f"SELECT principal, agent, session, text, version, updated_at FROM sessions WHERE {where}"  # noqa: S608
                " ORDER BY version DESC",
                [to_column(value) for _, value in clauses],
            ).fetchall()
        )
        return [
            (
                SessionKey(principal=from_column(row[0]), agent=from_column(row[1]), session=from_column(row[2])),
                StoredState(text=from_column(row[3]), version=row[4], updated_at=row[5]),
            )
            for row in rows
        ]

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the file stands at; one statement where no other connection has committed.

        ``PRAGMA data_version`` tells of commits through other connections only; a value of it that was read
        after ``since`` (``time.monotonic()``) is not read again.
        """
        database = self._opened()
        if since is not None and (known := self.known_token(since)) is not None:
            return known

        def newest(connection: sqlite3.Connection) -> ChangeToken:
            data_version = database.generation, connection.execute("PRAGMA data_version").fetchone()[0]
            if self._token is None or data_version != self._data_version:
                query = "SELECT value FROM counters WHERE name = 'permissions'"
                number = connection.execute(query).fetchone()[0]
                self._data_version = data_version
                self._token = ChangeToken(states=(data_version, self._changes), permissions=(data_version[0], number))
            return self._token

        self._looked_at = time.monotonic()
        await database.follow()
        return await database.read(newest)

    async def changed(self, token: ChangeToken, timeout: float) -> None:  # noqa: ARG002 - a file tells nobody
        """Wait: whoever asks for the token then has what other processes changed meanwhile."""
        await asyncio.sleep(timeout)

    async def catch_up(self) -> bool:
        """Return that nothing was taken up: each reading of a file has what was stored by then."""
        return False

    def known_token(self, since: float) -> ChangeToken | None:
        """Return what the file stood at when it was looked at last, where that was after ``since``."""
        return self._token if since <= self._looked_at and self._database is not None else None

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch; where no loop runs, with the next operation that writes."""
        self._opened()
        self._queue.add_later(entry, details)

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses within 50 ms, in a batch with the calls; where no loop runs, with the next that is written."""
        self._opened()
        self._uses.add(uses)
        self._queue.schedule()

    async def uses(self, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is remembered, the newest last; one statement where nothing has changed."""
        generation, key = self._opened().generation, (principal, agent)
        return await self._opened().read(lambda connection: self._uses.read(connection, key, generation=generation))

    async def forget_uses(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Remove what is remembered, and overwrite it in the file and its log; return how many there were."""
        wanted = {"principal": principal, "agent": agent}
        gone = await self._write(lambda connection: self._uses.delete(connection, wanted))
        await self._opened().read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        return gone

    def bill_later(self, *records: BillRecord) -> None:
        """Add to the bill within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._opened()
        self._bill.add(records)
        self._queue.schedule()

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to the counts by time within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._opened()
        self._usage.add(records)
        self._queue.schedule()

    def _opened(self) -> Database:
        if self._database is None:
            raise StoreError(f"{self.path} is not open.", hint="Await `open()` before, and nothing after `aclose()`.")
        return self._database

    async def _write(self, work: Work[T], *, permissions: bool | None = None) -> T:
        """Return what the work returns once it is committed, together with what waited.

        ``permissions`` is whether it changes more than states; None where the change token need not tell of it.
        """
        taken = 0, 0

        def with_queues(connection: sqlite3.Connection) -> T:
            nonlocal taken
            taken = self._queue.insert(connection), self._uses.insert(connection)
            if self._bill.waiting:
                self._bill.insert(connection)
            if self._usage.waiting:
                self._usage.insert(connection)
            return work(connection)

        result = await self._opened().write(with_queues)
        self._queue.drop(taken[0])
        self._uses.drop(taken[1])
        if self._bill.waiting:
            self._bill.drop()
        if self._usage.waiting:
            self._usage.drop()
        if permissions is not None:
            # The data version does not tell of changes through this connection.
            self._changes += 1
            known = None if permissions else self._token
            self._token = None if known is None else ChangeToken((self._data_version, self._changes), known.permissions)
        return result

    async def _flush(self) -> None:
        if self._queue or self._uses or self._bill.waiting or self._usage.waiting:
            await self._write(lambda _: None)


def _version(connection: sqlite3.Connection, columns: Columns) -> int:
    """Return the version of a stored state, or 0 where none is stored."""
    query = "SELECT version FROM sessions WHERE principal = ? AND agent = ? AND session = ?"
    row = connection.execute(query, columns).fetchone()
    return row[0] if row else 0


def _swapped(connection: sqlite3.Connection, columns: Columns, text: str | None, version: int, expected: int) -> bool:
    """Return whether the state was still of the expected version (0: not stored), and is stored or removed now."""
    mine = "principal = ? AND agent = ? AND session = ?"
    if text is None:
        if expected == 0:
            query = f"SELECT 1 FROM sessions WHERE {mine}"  # noqa: S608 - a constant
            return connection.execute(query, columns).fetchone() is None
        query = f"DELETE FROM sessions WHERE {mine} AND version = ?"  # noqa: S608 - a constant
        return connection.execute(query, (*columns, expected)).rowcount == 1
    row = version, time.time(), to_column(text)
    if expected == 0:
        query = "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?)"
        return connection.execute(query, (*columns, *row)).rowcount == 1
    query = f"UPDATE sessions SET version = ?, updated_at = ?, text = ? WHERE {mine} AND version = ?"  # noqa: S608
    return connection.execute(query, (*row, *columns, expected)).rowcount == 1


def _columns(key: SessionKey) -> Columns:
    return to_column(key.principal), to_column(key.agent), to_column(key.session)
