"""The store that ``store: sqlite:///…`` means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest
from pegboard.ports import (
    AuditPart,
    AuditRecord,
    BillPage,
    BillSums,
    CallDetails,
    NumberedRecord,
    SessionKey,
    TrailPage,
    UsageSums,
    UsageUnit,
)
from pegboard.ports.usage import DAY
from pegboard.stores.sqlite import calls, session_data
from pegboard.stores.sqlite.audit import select_entries, select_part, select_trail
from pegboard.stores.sqlite.bill import select_bill, select_sums
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.pins import count
from pegboard.stores.sqlite.replicas import SqliteReplicas
from pegboard.stores.sqlite.usage import select_usage

if TYPE_CHECKING:
    import sqlite3

    from pegboard.ports import AuditFilter, BillName
    from pegboard.ports.usage import UsageName


MANIFESTS_PER_PLUGIN = 32


class SqliteStore(SqliteReplicas):
    """A store in one file, shared by any number of processes; one event loop uses one store.

    ``audit_keep`` is about how many of the newest audit entries are kept, ``patience`` for how many seconds a
    change waits for other writers before it raises ``StoreBusyError``. A file that is removed while it is open is
    made anew by the next change.
    """

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last (P10)."""
        name = to_column(configuration)
        return await self._opened().read(lambda connection: _accepted(connection, name))

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, with its records, if what is stored is as expected; return whether."""
        name = to_column(configuration)

        def change(connection: sqlite3.Connection) -> bool:
            if _accepted(connection, name) != expected:
                return False
            connection.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?)", (name, text))
            count(connection, "permissions")
            self._queue.write(connection, audit)
            return True

        return await self._write(change, permissions=True)

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        row = await self._opened().read(
            lambda connection: connection.execute(
                "SELECT text FROM manifests WHERE plugin = ? AND fingerprint = ?",
                (to_column(plugin), to_column(fingerprint)),
            ).fetchone()
        )
        return manifest_from_json(row[0]) if row else None

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last, of those that can be read."""

        def texts(connection: sqlite3.Connection) -> list[str]:
            query = "SELECT fingerprint, text FROM manifests WHERE plugin = ? ORDER BY id DESC"
            rows = connection.execute(query, (to_column(plugin),))
            return [text for fingerprint, text in rows if from_column(fingerprint).startswith(beginning)]

        readable = map(manifest_from_json, await self._opened().read(texts))
        return next((manifest for manifest in readable if manifest is not None), None)

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one; the newest 32 fingerprints of a plugin are kept."""
        name, text = to_column(plugin), manifest_to_json(manifest)

        def keep(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO manifests (plugin, fingerprint, text) VALUES (?, ?, ?)",
                (name, to_column(fingerprint), text),
            )
            connection.execute(
                "DELETE FROM manifests WHERE plugin = ? AND id NOT IN"
                " (SELECT id FROM manifests WHERE plugin = ? ORDER BY id DESC LIMIT ?)",
                (name, name, MANIFESTS_PER_PLUGIN),
            )

        await self._write(keep)

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return what plugins keep for a session."""
        return await self._opened().read(lambda connection: session_data.select(connection, key))

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; None removes one."""
        await self._write(lambda connection: session_data.write(connection, key, changes))

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove what plugins keep for a session; return whether there was anything."""
        return await self._write(lambda connection: session_data.remove(connection, key))

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, after the calls that wait, before returning."""
        self._opened()
        self._queue.add(*entries, details=details)
        await self._flush()

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number; what waits is written before."""
        await self._flush()
        return await self._opened().read(lambda connection: calls.select_numbered(connection, number))

    async def call_details(self, number: int) -> str | None:
        """Return what is kept of a call; what waits is written before."""
        await self._flush()
        return await self._opened().read(lambda connection: calls.select_details(connection, number))

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session by the index; what waits is written before."""
        await self._flush()
        return await self._opened().read(
            lambda connection: calls.select_session(connection, key, before, after, kinds, limit)
        )

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return the newest entries first; those that this store still holds back are written before."""
        await self._flush()
        wanted = {"principal": principal, "agent": agent, "session": session, "kind": kind}
        return await self._opened().read(lambda connection: select_entries(connection, wanted, limit))

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first; entries that cannot be read are counted."""
        await self._flush()
        return await self._opened().read(lambda connection: select_trail(connection, after, agent, limit))

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next records; those that this store still holds back are written before."""
        await self._flush()
        return await self._opened().read(
            lambda connection: select_part(connection, wanted, before=before, after=after, limit=limit)
        )

    @property
    def lasts(self) -> bool:
        """Return that it outlives the process."""
        return True

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:  # noqa: ARG002 - no other process serves on
        """Return that counts are not fetched."""
        return False

    async def bill(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        after: Hashable = None,
        limit: int = 2000,
    ) -> BillPage:
        """Return a part of what is stored, the oldest day first; what waits is written before."""
        await self._flush()
        wanted = {"principal": principal, "agent": agent, "session": session}
        return await self._opened().read(lambda connection: select_bill(connection, wanted, since, until, after, limit))

    async def bill_sums(
        self,
        *,
        by: Sequence[BillName],
        since: str | None = None,
        until: str | None = None,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        agents: Collection[str] | None = None,
        greatest: int | None = None,
    ) -> BillSums:
        """Return sums of the bill; what waits is written before."""
        await self._flush()
        wanted = {"principal": principal, "agent": agent, "session": session}
        return await self._opened().read_apart(
            lambda connection: select_sums(connection, tuple(by), wanted, since, until, agents, greatest)
        )

    async def usage(
        self, unit: UsageUnit, *, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None = None
    ) -> UsageSums:
        """Return sums over a time; what waits is written before."""
        await self._flush()
        database = self._opened()
        read = database.read_apart if unit is DAY else database.read  # days are asked for by the month
        return await read(lambda connection: select_usage(connection, unit, since, until, tuple(by), agents))

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested; made once, kept in the file."""
        database = self._opened()
        if self._digest_key is None or self._digest_key[0] != database.generation:
            key = await self._write(_digest_key)
            self._digest_key = database.generation, key
        return self._digest_key[1]


def _digest_key(connection: sqlite3.Connection) -> bytes:
    import secrets  # every start would pay for it

    connection.execute("INSERT OR IGNORE INTO secrets VALUES ('digest', ?)", (secrets.token_bytes(32),))
    return connection.execute("SELECT value FROM secrets WHERE name = 'digest'").fetchone()[0]


def _accepted(connection: sqlite3.Connection, name: str | bytes) -> str | None:
    row = connection.execute("SELECT text FROM accepted WHERE configuration = ?", (name,)).fetchone()
    return row[0] if row else None
