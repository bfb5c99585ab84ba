"""The manifests of servers and plugins (G8)."""

from __future__ import annotations

from typing import Final

from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Transaction, insert

MANIFESTS_PER_PLUGIN: Final = 32
_SURPLUS: Final = (
    "DELETE FROM main.manifest WHERE plugin = ?"
    " AND id NOT IN (SELECT id FROM main.manifest WHERE plugin = ? ORDER BY id DESC LIMIT ?)"
)


class StoredManifests(StoreBase):
    """The part of the store that keeps manifests."""

    async def manifest(self, plugin: str, fingerprint: str) -> Manifest | None:
        """Return the stored manifest of a plugin whose specification has this fingerprint."""
        query = "SELECT text FROM main.manifest WHERE plugin = ? AND fingerprint = ?"
        rows = await self._db.rows(query, plugin, fingerprint)
        return manifest_from_json(rows[0][0]) if rows else None

    async def newest_manifest(self, plugin: str, beginning: str) -> Manifest | None:
        """Return the manifest of a plugin that was stored last, of those that can be read."""
        query = "SELECT fingerprint, text FROM main.manifest WHERE plugin = ? ORDER BY id DESC"
        rows = await self._db.rows(query, plugin)
        readable = (manifest_from_json(text) for fingerprint, text in rows if fingerprint.startswith(beginning))
        return next((manifest for manifest in readable if manifest is not None), None)

    async def keep_manifest(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        """Store a manifest in place of an older one; the newest 32 fingerprints of a plugin are kept."""
        text = manifest_to_json(manifest)

        async def keep(transaction: Transaction) -> None:
            remove = "DELETE FROM main.manifest WHERE plugin = ? AND fingerprint = ?"
            await transaction.run(remove, plugin, fingerprint)
            await transaction.run(insert("manifest", ("plugin", "fingerprint", "text")), plugin, fingerprint, text)
            await transaction.run(_SURPLUS, plugin, plugin, MANIFESTS_PER_PLUGIN)

        await self._write(keep, f"manifest {plugin}")
