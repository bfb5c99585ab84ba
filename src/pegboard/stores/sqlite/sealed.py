"""Secrets in the database, sealed, and leases over all processes (G11)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import AuditRecord
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.pins import SqlitePins

if TYPE_CHECKING:
    import sqlite3

    from pegboard.stores.sqlite.sealing import Sealing

_UNEXPIRED: Final = "(expires_at IS NULL OR expires_at > ?)"
_COLUMNS: Final = "key, sealed, version, expires_at"


class SqliteSealed(SqlitePins):
    """The part of a store that keeps secrets."""

    _sealing: Sealing | None = None

    def _seals(self) -> Sealing:
        if self._sealing is None:
            from pegboard.stores.sqlite.sealing import sealing_for  # few configurations have a login

            self._sealing = sealing_for(self.path)
        return self._sealing

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        query = f"SELECT {_COLUMNS} FROM sealed WHERE kind = ? AND key = ? AND {_UNEXPIRED}"  # noqa: S608 - constants
        given = kind, to_column(key), time.time()
        row = await self._opened().read(lambda connection: connection.execute(query, given).fetchone())
        return None if row is None else self._unsealed(kind, row)

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired."""
        query = f"SELECT {_COLUMNS} FROM sealed WHERE kind = ? AND {_UNEXPIRED} ORDER BY key"  # noqa: S608 - constants
        given = kind, time.time()
        rows = await self._opened().read(lambda connection: connection.execute(query, given).fetchall())
        return [self._unsealed(kind, row) for row in rows]

    def _unsealed(self, kind: SealedKind, row: Any) -> SealedText:
        key, sealed, version, expires_at = row
        name = from_column(key)
        return SealedText(name, self._seals().open(sealed, _name(kind, name)), version, expires_at)

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
        own = kind, to_column(key)
        sealed = None if text is None else self._seals().seal(text, _name(kind, key))

        def swap(connection: sqlite3.Connection) -> int | None:
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
                    "INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?, ?)", (*own, version, expires_at, sealed)
                )
            self._queue.write(connection, audit)
            return version

        return await self._write(swap)

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that nobody else has; return whether the holder has it."""

        def take(connection: sqlite3.Connection) -> bool:
            now = time.time()
            row = connection.execute("SELECT holder, until FROM leases WHERE name = ?", (to_column(name),)).fetchone()
            if row is not None and from_column(row[0]) != holder and now < row[1] <= now + seconds:
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


def _name(kind: SealedKind, key: str) -> str:
    return f"{kind}\0{key}"
