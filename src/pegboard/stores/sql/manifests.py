"""The manifests of servers and plugins, and the pins of servers' tools (G8, A4, G6)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Final

from pegboard.core.access.pins import Pin, PinName, ServerPins
from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest
from pegboard.ports import AuditRecord, PinChange
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import ChangedMeanwhileError, Transaction, insert
from pegboard.stores.sql.switches import PERMISSIONS, PINS_REVISION

MANIFESTS_PER_PLUGIN: Final = 32
SCOPES_PER_PLUGIN: Final = 1024
_SURPLUS: Final = (
    "DELETE FROM main.manifest WHERE plugin = ? AND scope {0} ''"
    " AND id NOT IN (SELECT id FROM main.manifest WHERE plugin = ? AND scope {0} '' ORDER BY id DESC LIMIT ?)"
)


class StoredManifests(StoreBase):
    """The part of the store that keeps manifests."""

    async def manifest(self, plugin: str, fingerprint: str, scope: str = "") -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        query = "SELECT text FROM main.manifest WHERE plugin = ? AND fingerprint = ? AND scope = ?"
        rows = await self._db.rows(query, plugin, fingerprint, scope)
        return manifest_from_json(rows[0][0]) if rows else None

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last, of those that can be read."""
        query = "SELECT fingerprint, text FROM main.manifest WHERE plugin = ? AND scope = '' ORDER BY id DESC"
        rows = await self._db.rows(query, plugin)
        readable = (manifest_from_json(text) for fingerprint, text in rows if fingerprint.startswith(beginning))
        return next((manifest for manifest in readable if manifest is not None), None)

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest, scope: str = "") -> None:
        """Store a manifest in place of an older one.

        The newest 32 fingerprints of a plugin are kept, and of what is some scope's the newest 1,024.
        """
        text = manifest_to_json(manifest)
        columns = ("plugin", "fingerprint", "scope", "text")
        surplus = _SURPLUS.format("<>" if scope else "=")
        most = SCOPES_PER_PLUGIN if scope else MANIFESTS_PER_PLUGIN

        async def keep(transaction: Transaction) -> None:
            remove = "DELETE FROM main.manifest WHERE plugin = ? AND fingerprint = ? AND scope = ?"
            await transaction.run(remove, plugin, fingerprint, scope)
            await transaction.run(insert("manifest", columns), plugin, fingerprint, scope, text)
            await transaction.run(surplus, plugin, plugin, most)

        await self._write(keep, f"manifest {plugin}")


_KEY: Final = ("plugin", "kind", "tool")
_COLUMNS: Final = (*_KEY, "digest", "waiting", "flags", "by", "definition")
_PUT: Final = insert("pin", _COLUMNS, key=_KEY)
_PUT_KEEPING: Final = insert("pin", _COLUMNS, key=_KEY, keep=("definition",))
_DELETE: Final = "DELETE FROM main.pin WHERE plugin = ? AND kind = ? AND tool = ?"
_COUNT: Final = "UPDATE main.counter SET value = value + 1 WHERE name = 'pins'"
_READ_ONLY: Final = 1
_HARMLESS: Final = 2
_LATER: Final = 4


class StoredPins(StoreBase):
    """The part of the store that keeps pins."""

    async def pins_revision(self) -> Hashable:
        """Return what differs after every change of a pin by any process."""
        return (await self._db.rows(PINS_REVISION))[0]

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions (A4)."""
        query = (
            "SELECT s.plugin, s.version, s.revision, p.kind, p.tool, p.digest, p.waiting, p.flags, p.by"
            " FROM main.pinned_server AS s LEFT JOIN main.pin AS p ON p.plugin = s.plugin"
            " ORDER BY s.plugin, p.kind, p.tool"
        )
        found: dict[str, ServerPins] = {}
        pins: dict[str, dict[PinName, Pin]] = {}
        for plugin, version, revision, kind, tool, digest, waiting, flags, by in await self._db.rows(query):
            own = pins.setdefault(plugin, {})
            found.setdefault(plugin, ServerPins(own, version, revision))
            if kind is not None:
                name = PinName(kind, tool)
                known = bool(flags & _READ_ONLY), bool(flags & _HARMLESS), bool(flags & _LATER)
                own[name] = Pin(name, digest, waiting, *known, by)
        return found

    async def pinned_definitions(self, plugin: str, names: Collection[PinName]) -> Mapping[PinName, str]:
        """Return the definitions that count, as canonical JSON."""
        query = "SELECT kind, tool, definition FROM main.pin WHERE plugin = ? AND definition <> ''"
        if len(names) == 1:
            rows = await self._db.rows(f"{query} AND kind = ? AND tool = ?", plugin, *next(iter(names)))
        else:
            rows = await self._db.rows(query, plugin)
        found = {PinName(kind, tool): text for kind, tool, text in rows}
        return {name: found[name] for name in names if name in found}

    async def change_pins(
        self,
        plugin: str,
        changes: Sequence[PinChange],
        *,
        expected: int | None,
        version: int,
        anew: bool = False,
        forget: Collection[PinName] = (),
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store pins of a server, with their records, if they are as expected; return the new revision or None."""

        async def change(transaction: Transaction) -> int:
            rows = await transaction.rows("SELECT revision FROM main.pinned_server WHERE plugin = ?", plugin)
            if (rows[0][0] if rows else None) != expected:
                raise ChangedMeanwhileError
            if anew:
                await transaction.run("DELETE FROM main.pin WHERE plugin = ?", plugin)
            await self._put_pins(transaction, plugin, changes)
            for name in forget:
                await transaction.run(_DELETE, plugin, *name)
            await transaction.run(_COUNT)
            revision = (await transaction.rows(PINS_REVISION))[0][0]
            put = insert("pinned_server", ("plugin", "version", "revision"), key=("plugin",))
            await transaction.run(put, plugin, version, revision)
            transaction.announce(permissions=True)
            return revision

        return await self._write_or_none(change, PERMISSIONS, audit=audit)

    async def _put_pins(self, transaction: Transaction, plugin: str, changes: Sequence[PinChange]) -> None:
        """Write pins: with the definition that counts, or keeping the one that is stored."""
        for statement, keeps in ((_PUT, False), (_PUT_KEEPING, True)):
            rows = {
                pin.name: (plugin, *pin.name, pin.digest, pin.waiting, _flags_of(pin), pin.by, text or "")
                for pin, text in changes
                if (text is None) is keeps
            }
            await transaction.run_many(statement, rows.values())


def _flags_of(pin: Pin) -> int:
    return _READ_ONLY * pin.read_only | _HARMLESS * pin.harmless | _LATER * pin.later
