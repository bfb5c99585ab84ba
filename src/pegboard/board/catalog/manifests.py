"""The manifests of plugins in the store: read under what a plugin is now, kept once it has answered (G8, X1)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Manifest
from pegboard.errors import StoreError
from pegboard.ports import CodeSource, Fingerprint, ManifestStore, Source

log = logging.getLogger("pegboard")
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredManifest:
    """A manifest out of the store; ``stale`` where the code of its plugin has changed since, or it cannot be read."""

    manifest: Manifest
    stale: bool = False


class Manifests:
    """The manifests of servers, and of plugins that are code of this process, as the store has them."""

    def __init__(self, store: ManifestStore) -> None:
        self._store = store
        self._stored: dict[tuple[str, str], Manifest] = {}  # of code, by plugin and fingerprint: not written again
        self._keeping = asyncio.Lock()

    async def stored_manifest(self, source: Source, spec: PluginSpec, overrides: JsonObject) -> StoredManifest | None:
        """Return what is stored of a plugin under these overrides, or None.

        Where nothing is stored of its code as it is now, the newest of earlier code counts, as a stale one.
        """
        code = _fingerprint(source, spec, overrides)
        if code is None:
            fingerprint = source.fingerprint(spec)
            found = await self._store.manifest(spec.name, fingerprint) if fingerprint and not overrides else None
            return StoredManifest(manifest=found) if found is not None else None
        found = await self._store.manifest(spec.name, code.text)
        stale = found is None
        if found is None:
            found = await self._store.newest_manifest(spec.name, f"{code.subject}:")
        if found is None or any(tool.plugin != spec.name for tool in found.tools):
            return None
        if not stale:
            self._stored[spec.name, code.text] = found
        return StoredManifest(manifest=found, stale=stale)

    async def keep(self, source: Source, spec: PluginSpec, overrides: JsonObject, manifest: Manifest) -> None:
        """Store what a plugin has answered.

        Where that of a server cannot be written, ``StoreError``; for a plugin that is code it is logged.
        """
        code = _fingerprint(source, spec, overrides)
        if code is not None:
            await self._keep_of_code(spec.name, code.text, manifest)
        elif (fingerprint := source.fingerprint(spec)) and not overrides:
            await self._store.keep_manifest(spec.name, fingerprint, manifest)

    async def keep_fault(self, source: Source, spec: PluginSpec, overrides: JsonObject, reason: str) -> None:
        """Store why a plugin that is code could not be brought in, beside the tools that it had with this code (P6).

        Nothing is stored where its code has changed: the tools that it had before stay known.
        """
        code = _fingerprint(source, spec, overrides)
        before = await self.stored_manifest(source, spec, overrides)
        if code is not None and (before is None or not before.stale):
            known = Manifest() if before is None else before.manifest
            failed = replace(known, unavailable=reason, packages=installed_packages())
            await self._keep_of_code(spec.name, code.text, failed)

    async def lists(self, plugin: str, fingerprint: str, scope: str) -> Mapping[str, Sequence[JsonObject]]:
        """Return by kind what is stored of the lists of a server besides that of tools; raises ``StoreError``."""
        found = await self._store.manifest(plugin, fingerprint, scope)
        return EMPTY if found is None else found.lists

    async def keep_list(
        self, plugin: str, fingerprint: str, scope: str, kind: str, items: Sequence[JsonObject]
    ) -> None:
        """Store one of these lists, if it is another than the one that is stored; raises ``StoreError``."""
        async with self._keeping:
            stored = await self.lists(plugin, fingerprint, scope)
            if kind not in stored or stored[kind] != tuple(items):
                manifest = Manifest(lists=Frozen({**stored, kind: tuple(items)}))
                await self._store.keep_manifest(plugin, fingerprint, manifest, scope)

    async def _keep_of_code(self, plugin: str, fingerprint: str, manifest: Manifest) -> None:
        if self._stored.get((plugin, fingerprint)) == manifest:
            return
        try:
            await self._store.keep_manifest(plugin, fingerprint, manifest)
        except (StoreError, TypeError, ValueError) as error:  # schemas of code need not be JSON
            log.warning("the tools of %s are not cached for the next start: %s", plugin, error)
            return
        self._stored[plugin, fingerprint] = manifest


def still_unavailable(manifest: Manifest, env: Mapping[str, str]) -> str:
    """Return why a plugin could not be brought in, as long as nothing was installed and no variable set that it names.

    It is tried again then as if nothing were known of it.
    """
    named = _VARIABLE.findall(manifest.unavailable)
    changed = manifest.packages != installed_packages() or any(env.get(name) for name in named)
    return "" if changed else manifest.unavailable


def installed_packages() -> str:
    """Return a digest that differs once a package was installed or removed."""
    folders = sorted({sysconfig.get_path(kind) for kind in ("purelib", "platlib")})
    times = [Path(folder).stat().st_mtime_ns if Path(folder).is_dir() else 0 for folder in folders]
    return hashlib.sha256(repr((folders, times)).encode()).hexdigest()[:16]


def _fingerprint(source: Source, spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:
    return source.code_fingerprint(spec, overrides) if isinstance(source, CodeSource) else None
