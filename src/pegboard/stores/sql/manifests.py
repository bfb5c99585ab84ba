"""The manifests of servers and plugins (G8)."""

from __future__ import annotations

from typing import Final

from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Transaction, insert

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
