"""Secrets in the database, sealed, and leases over all processes (G11)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import AuditRecord
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.stores.rows.sealing import sealed_name
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.pins import SqlitePins
from pegboard.support.backoff import Backoff
from pegboard.support.threads import in_thread

if TYPE_CHECKING:
    import sqlite3

    from pegboard.stores.rows.sealing import Sealing

PATIENCE: Final = 10.0
"""How long a keyring may take to give the key, in seconds."""
LONGEST: Final = 600.0
"""For how many seconds a lease is asked for at most: one that ends later was taken before the clock was set back."""
_KEY: Final = "key of the store"
"""The lease under which one process looks for the key, and makes it where there is none."""
_UNEXPIRED: Final = "(expires_at IS NULL OR expires_at > ?)"
_COLUMNS: Final = "key, sealed, version, expires_at"
MARK: Final = "sealing key"
"""The name under which the store has the mark of the key that seals."""


class _RekeyedError(Exception):
    """Another key seals since something was sealed that is to be stored now."""


class SqliteSealed(SqlitePins):
    """The part of a store that keeps secrets."""

    _sealing: Sealing | None = None

    _asking: asyncio.Task[Sealing] | None = None

    async def aclose(self) -> None:
        """Write what still waits and let go of the file; a keyring that is asked is waited for no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await super().aclose()

    async def _seals(self) -> Sealing:
        """Return what seals; a keyring is asked beside the loop, once for all who wait, and again after a failure."""
        if self._sealing is not None:
            return self._sealing
        if self._asking is None:
            self._asking = asyncio.create_task(self._found())
            self._asking.add_done_callback(self._answered)
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(self._asking)
        except TimeoutError:
            from pegboard.stores.sqlite.sealing_keys import refusal

            why, hint = f"the keyring did not answer within {PATIENCE:g} s", "Unlock it, then try again."
            raise refusal(self.path, why, hint, stored=True) from None

    async def _found(self) -> Sealing:
        from pegboard.stores.rows.sealing import SealedRow  # few configurations have a login
        from pegboard.stores.sqlite.sealing_keys import sealing_for

        query = f"SELECT kind, key, sealed, place FROM sealed WHERE {_UNEXPIRED}"  # noqa: S608 - constants
        given = (time.time(),)
        mark, found = await self._opened().read(
            lambda connection: (select_mark(connection), connection.execute(query, given).fetchall())
        )
        rows = [SealedRow(sealed_name(kind, from_column(key)), sealed, place) for kind, key, sealed, place in found]
        holder, backoff = token_hex(8), Backoff(first=0.01, longest=0.5)
        while not await self.take_lease(_KEY, holder, seconds=PATIENCE):  # of two keys in a keyring one would be lost
            await backoff.wait()
        try:
            return await in_thread(sealing_for, self.path, rows=rows, mark=mark)
        finally:
            await self.end_lease(_KEY, holder)

    def _answered(self, asking: asyncio.Task[Sealing]) -> None:
        self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self._sealing = asking.result()

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        query = f"SELECT {_COLUMNS} FROM sealed WHERE kind = ? AND key = ? AND {_UNEXPIRED}"  # noqa: S608 - constants
        given = kind, to_column(key), time.time()
        row = await self._opened().read(lambda connection: connection.execute(query, given).fetchone())
        if row is None:
            return None
        sealing = await self._seals()
        found = _unsealed(sealing, kind, row)
        if found.text is None and await self._rekeyed(sealing):
            return await self.sealed(kind, key)
        return found

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired."""
        query = f"SELECT {_COLUMNS} FROM sealed WHERE kind = ? AND {_UNEXPIRED} ORDER BY key"  # noqa: S608 - constants
        given = kind, time.time()
        rows = await self._opened().read(lambda connection: connection.execute(query, given).fetchall())
        if not rows:
            return []
        sealing = await self._seals()
        found = [_unsealed(sealing, kind, row) for row in rows]
        if any(one.text is None for one in found) and await self._rekeyed(sealing):
            return await self.all_sealed(kind)
        return found

    async def _rekeyed(self, sealing: Sealing) -> bool:
        """Return whether another key may seal since the keys were read: they are read anew then."""
        if await self._opened().read(select_mark) == sealing.read_at:
            return False
        self._end(sealing)
        return True

    def _end(self, sealing: Sealing) -> None:
        """Let the keys be read anew."""
        if self._sealing is sealing:
            self._sealing = None

    async def seal(
        self,
        kind: SealedKind,
        key: str,
        text: str | None,
        *,
        expected: int | None,
        expires_at: float | None = None,
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store a secret, or remove it, if its version is still the expected one; return the new one or None."""
        while True:
            sealing = None if text is None else await self._seals()
            sealed = None
            if text is not None and sealing is not None:
                sealed = sealing.seal(text, sealed_name(kind, key)), sealing.place, sealing.read_at
            try:
                return await self._swap((kind, to_column(key)), sealed, expected, expires_at, audit)
            except _RekeyedError:
                if sealing is not None:
                    self._end(sealing)

    async def _swap(
        self,
        own: tuple[SealedKind, str | bytes],
        sealed: tuple[bytes, str, bytes] | None,
        expected: int | None,
        expires_at: float | None,
        audit: Sequence[AuditRecord],
    ) -> int | None:
        """Store what is sealed; raises ``_RekeyedError`` where another key seals now."""

        def swap(connection: sqlite3.Connection) -> int | None:
            if sealed is not None and select_mark(connection) != sealed[2]:
                raise _RekeyedError
            now = time.time()
            connection.execute("DELETE FROM sealed WHERE expires_at <= ?", (now,))
            row = connection.execute("SELECT version FROM sealed WHERE kind = ? AND key = ?", own).fetchone()
            found = row[0] if row else 0
            if expected is not None and found != expected:
                return None
            version = 0
            if sealed is None:
                connection.execute("DELETE FROM sealed WHERE kind = ? AND key = ?", own)
            else:
                version = max(time.time_ns() // 1000, found + 1)  # never used twice, also where it was removed
                connection.execute(
                    "INSERT OR REPLACE INTO sealed (kind, key, version, expires_at, sealed, place)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (*own, version, expires_at, *sealed[:2]),
                )
            self._queue.write(connection, audit)
            return version

        return await self._write(swap)

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that nobody else has; return whether the holder has it."""

        def take(connection: sqlite3.Connection) -> bool:
            now = time.time()
            row = connection.execute("SELECT holder, until FROM leases WHERE name = ?", (to_column(name),)).fetchone()
            if row is not None and from_column(row[0]) != holder and now < row[1] <= now + max(seconds, LONGEST):
                return False
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (to_column(name), to_column(holder), now + seconds)
            )
            return True

        return await self._write(take)

    async def end_lease(self, name: str, holder: str) -> None:
        """Give a lease back, if it is still this holder's."""
        own = to_column(name), to_column(holder)
        await self._write(
            lambda connection: connection.execute("DELETE FROM leases WHERE name = ? AND holder = ?", own)
        )


def select_mark(connection: sqlite3.Connection) -> bytes:
    """Return the mark of the key that seals, nothing where no key has followed another one."""
    row = connection.execute("SELECT value FROM secrets WHERE name = ?", (MARK,)).fetchone()
    return b"" if row is None else row[0]


def _unsealed(sealing: Sealing, kind: SealedKind, row: Any) -> SealedText:
    key, sealed, version, expires_at = row
    name = from_column(key)
    return SealedText(name, sealing.open(sealed, sealed_name(kind, name)), version, expires_at)
