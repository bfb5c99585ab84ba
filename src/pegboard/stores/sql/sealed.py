"""Secrets, sealed where they are stored (G11)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import AuditRecord
from pegboard.ports.sealed import SealedKind, SealedText
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Database, Transaction, insert
from pegboard.stores.sql.sealing import Cipher, NoCipher, SealedRow, sealed_name
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import start_detached
from pegboard.support.threads import run_in_thread

if TYPE_CHECKING:
    from pegboard.stores.sql.sealing_keys import SealingKeys

PATIENCE: Final = 10.0
"""How long a keyring may take to give the key, in seconds."""
_KEY: Final = "key of the store"
"""The lease under which one process looks for the key, and makes it where there is none."""
_UNEXPIRED: Final = "(expires_at IS NULL OR expires_at > clock())"
_SELECT: Final = f"SELECT key, sealed, version, expires_at FROM main.sealed WHERE kind = ? AND {_UNEXPIRED}"  # noqa: S608
_ALL: Final = f"SELECT kind, key, sealed, place FROM main.sealed WHERE {_UNEXPIRED}"  # noqa: S608 - constants
_COLUMNS: Final = ("kind", "key", "version", "expires_at", "sealed", "place")


class SealedTexts(StoreBase):
    """The part of the store that keeps secrets; without ``keys`` they are sealed by nothing."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._keys: Callable[[], SealingKeys] | None = None
        self._cipher: Cipher | None = None
        self._looking: asyncio.Task[Cipher] | None = None

    async def _seals(self) -> Cipher:
        """Return what seals; a keyring is asked beside the loop, once for all who wait, and again after a failure."""
        if self._keys is None:
            return NoCipher()
        if self._cipher is not None:
            return self._cipher
        if self._looking is None:
            self._looking = start_detached(self._find_cipher(self._keys()), done=self._keep_cipher)
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(self._looking)
        except TimeoutError:
            why, hint = f"the keyring did not answer within {PATIENCE:g} s", "Unlock it, then try again."
            raise self._keys().refusal(why, hint, stored=True) from None

    async def _find_cipher(self, keys: SealingKeys) -> Cipher:
        rows = [
            SealedRow(sealed_name(kind, key), sealed, place) for kind, key, sealed, place in await self._db.rows(_ALL)
        ]
        holder, backoff = f"{id(self)}-{time.time_ns()}", Backoff(first=0.01, longest=0.5)
        while not await self.take_lease(_KEY, holder, seconds=PATIENCE):  # of two new keys one would be lost
            await backoff.wait()
        try:
            return await run_in_thread(keys.find_sealing, rows)
        finally:
            await self.end_lease(_KEY, holder)

    def _keep_cipher(self, looking: asyncio.Task[Cipher]) -> None:
        self._looking = None
        if not looking.cancelled() and looking.exception() is None:
            self._cipher = looking.result()

    async def _stop_looking(self) -> None:
        """Wait for a keyring no longer."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def sealed(self, kind: SealedKind, key: str) -> SealedText | None:
        """Return a secret, or None."""
        rows = await self._db.rows(f"{_SELECT} AND key = ?", kind, key)
        return _unseal_row(await self._seals(), kind, rows[0]) if rows else None

    async def all_sealed(self, kind: SealedKind) -> Sequence[SealedText]:
        """Return every secret of a kind that has not expired."""
        rows = await self._db.rows(f"{_SELECT} ORDER BY key", kind)
        cipher = await self._seals() if rows else NoCipher()
        return [_unseal_row(cipher, kind, row) for row in rows]

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
        name = sealed_name(kind, key)
        cipher = None if text is None else await self._seals()
        sealed = None if text is None or cipher is None else (cipher.seal(text, name), cipher.place)

        async def swap(transaction: Transaction) -> int:
            await transaction.run("DELETE FROM main.sealed WHERE expires_at <= clock()")
            rows = await transaction.rows("SELECT version FROM main.sealed WHERE kind = ? AND key = ?", kind, key)
            found = rows[0][0] if rows else 0
            if expected not in (None, found):
                raise ChangedMeanwhileError
            if sealed is None:
                await transaction.run("DELETE FROM main.sealed WHERE kind = ? AND key = ?", kind, key)
                return 0
            version = self._next_version(found, self._db.clock())
            put = insert("sealed", _COLUMNS, key=("kind", "key"))
            await transaction.run(put, kind, key, version, expires_at, *sealed)
            return version

        return await self._write_or_none(swap, name, audit=audit)


def _unseal_row(cipher: Cipher, kind: SealedKind, row: Any) -> SealedText:
    key, sealed, version, expires_at = row
    return SealedText(key, cipher.open(sealed, sealed_name(kind, key)), version, expires_at)
