"""The store: every subject over one database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.ports import ChangeToken
from pegboard.ports.store_health import PendingCount
from pegboard.stores.sql.approvals import StoredApprovals
from pegboard.stores.sql.configuration_texts import ConfigurationTexts
from pegboard.stores.sql.counts import StoredCounts
from pegboard.stores.sql.database import Database
from pegboard.stores.sql.grants import StoredGrants
from pegboard.stores.sql.manifests import StoredManifests, StoredPins
from pegboard.stores.sql.replicas import Replicas
from pegboard.stores.sql.requests import StoredRequests
from pegboard.stores.sql.sealed import SealedTexts
from pegboard.stores.sql.sessions import SessionData, Sessions
from pegboard.stores.sql.switches import StoredSwitches
from pegboard.stores.sql.uses import Uses

if TYPE_CHECKING:
    from pegboard.stores.sql.sealing_keys import SealingKeys


class SqlStore(
    Sessions,
    SessionData,
    StoredSwitches,
    StoredApprovals,
    StoredManifests,
    StoredPins,
    StoredGrants,
    ConfigurationTexts,
    StoredRequests,
    StoredCounts,
    Uses,
    SealedTexts,
    Replicas,
):
    """A store in a database; one event loop uses it.

    ``audit_keep`` is about how many of the newest decisions are kept, in memory of all records.
    """

    def __init__(self, database: Database, *, audit_keep: int = 100_000) -> None:
        super().__init__(database)
        self._records.old.decisions_kept = audit_keep

    async def open(self) -> None:
        """Make the tables where they are missing; raises ``StoreError`` as the database says."""
        await self._db.open(self._forget)

    async def aclose(self) -> None:
        """Write what is pending and let go of the database; a keyring that is asked is waited for no longer."""
        await self._stop_looking()
        if not self._db.is_open:
            return
        try:
            await self._batches.finish()
        finally:
            await self._cleaning.stop()
            await self._db.aclose()
            self._secrets.clear()

    async def remove_old(self) -> None:
        """Remove the records and counts whose time is over; raises ``StoreError``."""
        await self._batches.flush()
        self._records.old.is_due = True
        await self._cleaning.clean()

    def _forget(self, kind: str, key: str | None) -> None:
        for call in self._on_change:
            call(kind, key)

    @property
    def pending(self) -> PendingCount:
        """Return how many records and counts are not written yet, and how many were dropped since some were."""
        return self._batches.count

    async def change_token(self, since: float | None = None) -> ChangeToken:
        """Return what the store is at now, or was at after ``since`` (``time.monotonic()``)."""
        return await self._db.token(since)

    def certain_until(self) -> float:
        """Return until when it is certain that what is known without a statement is so (``time.monotonic()``)."""
        return self._db.certain_until()

    def known_token(self, since: float) -> ChangeToken | None:
        """Return the same where that needs no statement."""
        return self._db.known_token(since)

    async def changed(self, token: ChangeToken, timeout: float) -> None:
        """Return when another process may have changed something, at the latest after some seconds."""
        await self._db.wait_for_change(token, timeout)

    async def catch_up(self) -> bool:
        """Take up what others have stored by now; return whether there was anything."""
        return await self._db.catch_up()


class MemoryStore(SqlStore):
    """A store in the memory of this process: nothing is shared and nothing survives it."""

    def __init__(self, *, audit_keep: int = 100_000) -> None:
        from pegboard.stores.sql.sqlite_database import SqliteDatabase

        super().__init__(SqliteDatabase(None), audit_keep=audit_keep)


class SqliteStore(SqlStore):
    """A store in one file, shared by any number of processes.

    ``patience`` is for how many seconds a change waits for other writers before it raises ``StoreBusyError``.
    """

    def __init__(self, path: Path, *, audit_keep: int = 100_000, patience: float = 30.0) -> None:
        from pegboard.stores.sql.sqlite_database import SqliteDatabase

        self.path = path.absolute()
        super().__init__(SqliteDatabase(self.path, patience=patience), audit_keep=audit_keep)
        self._keys = partial(_sealing_keys, str(self.path), self.path)


class PostgresStore(SqlStore):
    """A store in a PostgreSQL database; ``patience`` is as that of :class:`SqliteStore`."""

    def __init__(self, url: str, *, audit_keep: int = 100_000, patience: float = 5.0) -> None:
        from pegboard.stores.sql.postgres_database import PostgresDatabase

        database = PostgresDatabase(url, patience=patience)
        super().__init__(database, audit_keep=audit_keep)
        self.address = database.address
        self._keys = partial(_sealing_keys, database.place)


def _sealing_keys(place: str, file: Path | None = None) -> SealingKeys:
    from pegboard.stores.sql.sealing_keys import SealingKeys  # few configurations have a login

    return SealingKeys(place, file)
