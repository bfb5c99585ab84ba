"""The store that ``store: postgresql://…`` means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest
from pegboard.ports import (
    AuditPart,
    AuditRecord,
    BillPage,
    BillRecord,
    BillSums,
    CallDetails,
    NumberedRecord,
    SessionKey,
    TrailPage,
    UsageRecord,
    UsageSums,
    UsageUnit,
    UseRecord,
)
from pegboard.stores.postgres import bill, trail, usage
from pegboard.stores.postgres.replicas import PostgresReplicas
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter, BillName
    from pegboard.ports.usage import UsageName
    from pegboard.stores.postgres.database import Database, Transaction

MANIFESTS_PER_PLUGIN: Final = 32
_KEEP_MANIFEST: Final = (
    "INSERT INTO {s}.manifests (key, of, plugin, fingerprint, text) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (key) DO UPDATE SET id = DEFAULT, text = excluded.text"
)
_TRIM_MANIFESTS: Final = (
    "DELETE FROM {s}.manifests WHERE of = %s AND id <="
    " (SELECT id FROM {s}.manifests WHERE of = %s ORDER BY id DESC OFFSET %s LIMIT 1)"
)
_KEEP_DATA: Final = (
    "INSERT INTO {s}.session_data (of, key, principal, agent, session, name, text) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (of, key) DO UPDATE SET text = excluded.text"
)
_ACCEPT: Final = (
    "INSERT INTO {s}.accepted (key, configuration, text) VALUES (%s, %s, %s)"
    " ON CONFLICT (key) DO UPDATE SET text = excluded.text"
)


class PostgresStore(PostgresReplicas):
    """A store in one database, shared by any number of processes; one event loop uses one store.

    ``audit_keep`` is about how many of the newest audit entries are kept, ``patience`` for how many seconds a change
    waits for other writers before it raises ``StoreBusyError``.
    """

    async def accepted(self, configuration: str) -> str | None:
        """Return what a configuration grants, as it was accepted last (P10)."""
        rows = await self._rows("SELECT text FROM {s}.accepted WHERE key = %s", (key_of(configuration),))
        return from_column(rows[0][0]) if rows else None

    async def accept(
        self, configuration: str, text: str, *, expected: str | None, audit: Sequence[AuditRecord] = ()
    ) -> bool:
        """Store what a configuration grants, with its records, if what is stored is as expected; return whether."""
        own = key_of(configuration)

        async def change(transaction: Transaction) -> None:
            await self._alone(transaction)
            rows = await transaction.run("SELECT text FROM {s}.accepted WHERE key = %s", (own,))
            transaction.refuse_unless((from_column(rows[0][0]) if rows else None) == expected)
            await transaction.run(_ACCEPT, (own, to_column(configuration), to_column(text)))

        return await self._write_or_not(change, audit=audit, permissions=True)

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        rows = await self._rows("SELECT text FROM {s}.manifests WHERE key = %s", (key_of(plugin, fingerprint),))
        return manifest_from_json(from_column(rows[0][0])) if rows else None

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last, of those that can be read."""
        rows = await self._rows(
            "SELECT text FROM {s}.manifests WHERE of = %s AND starts_with(fingerprint, %s) ORDER BY id DESC",
            (key_of(plugin), to_column(beginning)),
        )
        readable = (manifest_from_json(from_column(row[0])) for row in rows)
        return next((manifest for manifest in readable if manifest is not None), None)

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one; the newest 32 fingerprints of a plugin are kept."""
        database, _ = self._opened()
        of, texts = key_of(plugin), map(to_column, (plugin, fingerprint, manifest_to_json(manifest)))
        await database.script(
            (_KEEP_MANIFEST, (key_of(plugin, fingerprint), of, *texts)),
            (_TRIM_MANIFESTS, (of, of, MANIFESTS_PER_PLUGIN)),
        )

    async def session_data(self, key: SessionKey) -> Mapping[str, str]:
        """Return what plugins keep for a session."""
        rows = await self._rows("SELECT name, text FROM {s}.session_data WHERE of = %s", (_session(key),))
        return {from_column(name): from_column(text) for name, text in rows}

    async def keep_session_data(self, key: SessionKey, changes: Mapping[str, str | None]) -> None:
        """Keep some names for a session; None removes one."""
        database, _ = self._opened()
        own, names = _session(key), tuple(map(to_column, (key.principal, key.agent, key.session)))
        gone = [key_of(name) for name, text in changes.items() if text is None]
        kept = sorted((key_of(name), name, text) for name, text in changes.items() if text is not None)
        await database.script(
            ("DELETE FROM {s}.session_data WHERE of = %s AND key = ANY(%s::bytea[])", (own, gone)),
            *((_KEEP_DATA, (own, at, *names, to_column(name), to_column(text))) for at, name, text in kept),
        )

    async def forget_session_data(self, key: SessionKey) -> bool:
        """Remove what plugins keep for a session; return whether there was anything."""
        database, _ = self._opened()
        query = "DELETE FROM {s}.session_data WHERE of = %s RETURNING 1"
        return bool((await database.script((query, (_session(key),))))[0])

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, after the calls that wait, before returning."""
        self._opened()
        self._batches.records.add(*entries, details=details)
        await self._flush()

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number; what waits is written before."""
        return await trail.select_numbered(await self._flushed(), number)

    async def call_details(self, number: int) -> str | None:
        """Return what is kept of a call; what waits is written before."""
        return await trail.select_details(await self._flushed(), number)

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
        return await trail.select_session(await self._flushed(), key, before, after, kinds, limit)

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
        wanted = {"principal": principal, "agent": agent, "session": session, "kind": kind}
        return await trail.select_entries(await self._flushed(), wanted, limit)

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first."""
        return await trail.select_trail(await self._flushed(), after, agent, limit)

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next records; those that this store still holds back are written before."""
        return await trail.select_part(await self._flushed(), wanted, before=before, after=after, limit=limit)

    @property
    def lasts(self) -> bool:
        """Return that it outlives the process."""
        return True

    def fetch_counts(self, hand_over: Callable[[], object]) -> bool:
        """Have what was counted handed over as a batch is made."""
        self._batches.hand_over = hand_over
        return True

    def bill_later(self, *records: BillRecord) -> None:
        """Add to the bill within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._opened()
        self._batches.bill.add(records)
        self._batches.schedule()

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
        wanted = {"principal": principal, "agent": agent, "session": session}
        return await bill.select_bill(await self._flushed(), wanted, since, until, after, limit)

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
        wanted = {"principal": principal, "agent": agent, "session": session}
        return await bill.select_sums(await self._flushed(), tuple(by), wanted, since, until, agents, greatest)

    def usage_later(self, *records: UsageRecord) -> None:
        """Add to the counts by time within 50 ms, in a batch; where no loop runs, with the next that is written."""
        self._opened()
        self._batches.usage.add(records)
        self._batches.schedule()

    async def usage(
        self, unit: UsageUnit, *, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None = None
    ) -> UsageSums:
        """Return sums over a time; what waits is written before."""
        return await usage.select_usage(await self._flushed(), unit, since, until, tuple(by), agents)

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses within 50 ms, in a batch with the calls; where no loop runs, with the next that is written."""
        self._opened()
        self._batches.remember(uses)

    async def uses(self, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is remembered, the newest last; without a statement where nothing has changed."""
        return await self._batches.uses(*self._opened(), principal, agent)

    async def forget_uses(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Remove what is remembered; return how many there were. The server overwrites it when it cleans up."""
        return await self._batches.delete_uses(*self._opened(), {"principal": principal, "agent": agent})

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested; made once, kept in the database."""
        return await self._secret("digest")

    async def _flushed(self) -> Database:
        """Return the database once what waited is written."""
        await self._flush()
        return self._opened()[0]


def _session(key: SessionKey) -> bytes:
    return key_of(key.principal, key.agent, key.session)
