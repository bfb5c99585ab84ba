"""Secrets in the database, sealed, and leases over all processes, by the clock of the server (G11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.errors import StoreError
from pegboard.ports import AuditRecord
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.stores.postgres.pins import PostgresPins
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from pegboard.stores.postgres.database import Transaction
    from pegboard.stores.rows.sealing import Sealing

_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_UNEXPIRED: Final = f"(expires_at IS NULL OR expires_at > {_NOW})"
_COLUMNS: Final = "key, sealed, version, expires_at"
_PUT: Final = (
    "INSERT INTO {s}.sealed (id, kind, key, version, expires_at, sealed, place)"
    " VALUES (%s, %s, %s, greatest(nextval('{s}.versions'), %s + 1), %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
    " version = excluded.version, expires_at = excluded.expires_at, sealed = excluded.sealed, place = excluded.place"
    " RETURNING version"
)
_TAKE: Final = (
    f"INSERT INTO {{s}}.leases AS mine (key, name, holder, until) VALUES (%s, %s, %s, {_NOW} + %s)"  # noqa: S608
    f" ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, until = excluded.until"
    f" WHERE mine.holder = excluded.holder OR mine.until <= {_NOW} RETURNING 1"
)


class PostgresSealed(PostgresPins):
    """The part of a store that keeps secrets; all processes seal with the key of the environment variable."""

    _sealing: Sealing | None = None

    def _seals(self) -> Sealing:
        if self._sealing is None:
            from pegboard.stores.rows.key_texts import (  # few configurations have a login
                MADE,
                VARIABLE,
                key_of_variable,
                with_second,
            )
            from pegboard.stores.rows.sealing import Sealing

            key = key_of_variable()
            if key is None:
                raise StoreError(
                    f"There is no key to seal secrets in {self.address.shown} with.",
                    hint=f"Set {VARIABLE} to the same 32 bytes in base64 for every process on it: {MADE}",
                    code="key_not_available",
                )
            self._sealing = Sealing(*with_second(key))
        return self._sealing

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        query = f"SELECT {_COLUMNS} FROM {{s}}.sealed WHERE id = %s AND {_UNEXPIRED}"  # noqa: S608 - constants
        rows = await self._rows(query, (key_of(kind, key),))
        return self._unsealed(kind, rows[0]) if rows else None

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired."""
        query = f"SELECT {_COLUMNS} FROM {{s}}.sealed WHERE kind = %s AND {_UNEXPIRED} ORDER BY key"  # noqa: S608
        return [self._unsealed(kind, row) for row in await self._rows(query, (kind,))]

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
        own = key_of(kind, key)
        sealing = None if text is None else self._seals()
        sealed = None if text is None or sealing is None else (sealing.seal(text, _name(kind, key)), sealing.place)

        async def swap(transaction: Transaction) -> int:
            await transaction.run("SELECT pg_advisory_xact_lock(%s, %s)", _lock(own))
            await transaction.run(f"DELETE FROM {{s}}.sealed WHERE expires_at <= {_NOW}")  # noqa: S608 - constants
            rows = await transaction.run("SELECT version FROM {s}.sealed WHERE id = %s", (own,))
            found = rows[0][0] if rows else 0
            transaction.refuse_unless(expected is None or found == expected)
            if sealed is None:
                await transaction.run("DELETE FROM {s}.sealed WHERE id = %s", (own,))
                return 0
            return (await transaction.run(_PUT, (own, kind, to_column(key), found, expires_at, *sealed)))[0][0]

        return await self._write_or_none(swap, audit=audit)

    async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
        """Take a lease that nobody else has; return whether the holder has it."""
        database, _ = self._opened()
        (rows,) = await database.script((_TAKE, (key_of(name), to_column(name), to_column(holder), seconds)))
        return bool(rows)

    async def end_lease(self, name: str, holder: str) -> None:
        """Give a lease back, if it is still this holder's."""
        database, _ = self._opened()
        query = "DELETE FROM {s}.leases WHERE key = %s AND holder = %s"
        await database.script((query, (key_of(name), to_column(holder))))


def _name(kind: SealedKind, key: str) -> str:
    return f"{kind}\0{key}"


def _lock(own: bytes) -> tuple[int, int]:
    return int.from_bytes(own[:4], "big", signed=True), int.from_bytes(own[4:8], "big", signed=True)
