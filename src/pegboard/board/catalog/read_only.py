"""Keep up with which tools of servers count as read-only, or as destroying nothing (G6, A4)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pegboard.core.access.read_only import (
    Claimed,
    Claims,
    claimed_harmless,
    claimed_read_only,
    compare_claims,
    reads_only,
)
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Manifest, Plugin, Tool
from pegboard.ports import ReadOnlyTrustStore

log = logging.getLogger("pegboard")


class ReadOnlyTrust:
    """Which tools count as read-only, as of the last look at the store; any process may change it."""

    def __init__(self, store: ReadOnlyTrustStore) -> None:
        self._store = store
        self._counted: Mapping[str, frozenset[str]] = {}

    async def refresh(self) -> bool:
        """Take up what any process has stored; return whether that is something else than before."""
        before, self._counted = self._counted, await self._store.claims()
        return before != self._counted

    def counted(self, plugin: str) -> frozenset[str]:
        """Return the own names of the tools of a server that count as read-only; none of one never seen."""
        return self._counted.get(plugin, frozenset())

    def reads_only(self, plugin: Plugin, tool: Tool) -> bool:
        """Return whether a tool may run where only reading is allowed; a server never seen is not believed."""
        return reads_only(plugin, tool, self.counted(plugin.name))

    def claims_of(self, plugin: str) -> Claims:
        """Return what counts of what a server says of its tools."""
        return Claims(read_only=self.counted(plugin), harmless=self.counted(_harmless(plugin)))

    def pending(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the tools of a trusted server that say now that they only read, and do not count yet."""
        return self._pending(plugin, plugin.name, claimed_read_only)

    def pending_harmless(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the tools of a trusted server that say now that they destroy nothing, and do not count yet."""
        return self._pending(plugin, _harmless(plugin.name), claimed_harmless)

    def _pending(self, plugin: Plugin, key: str, claimed: Claimed) -> tuple[Tool, ...]:
        counted = self._counted.get(key)
        if plugin.kind != "server" or not plugin.trusted or counted is None:
            return ()
        names = compare_claims(counted, plugin.tools, claimed).pending
        return tuple(tool for tool in plugin.tools if tool.name in names)

    async def seen(self, plugin: Plugin, manifest: Manifest) -> None:
        """Keep a first list as what counts; hold a later one against it, and warn of what does not count."""
        if plugin.kind != "server":
            return
        later = await self._compared(manifest, plugin.name, claimed_read_only)
        await self._compared(manifest, _harmless(plugin.name), claimed_harmless)
        if later and plugin.trusted:
            names = one_line(", ".join(later), limit=200)
            message = "server %s says now that these tools only read: %s. `pegboard check --accept` accepts it."
            log.warning(message, plugin.name, names)

    async def _compared(self, manifest: Manifest, key: str, claimed: Claimed) -> tuple[str, ...]:
        """Return the names of the tools that are claimed to be so now, and do not count."""
        counted = self._counted.get(key)
        if counted is None:
            counted = await self._store.keep_first_claims(key, claimed(manifest.tools))
            self._counted = {**self._counted, key: counted}
        judgement = compare_claims(counted, manifest.tools, claimed)
        if judgement.retracted:
            await self._store.change_claims(key, retract=judgement.retracted)
            await self.refresh()
        return judgement.pending

    async def accept(self, plugin: Plugin, tools: tuple[Tool, ...]) -> None:
        """Let what tools of a server say of themselves count from the next call on, whichever process serves it."""
        for key, claimed in ((plugin.name, claimed_read_only), (_harmless(plugin.name), claimed_harmless)):
            if names := claimed(tools):
                await self._store.change_claims(key, accept=names)
        await self.refresh()


def _harmless(plugin: str) -> str:
    """Return the name under which it stands which tools of a server destroy nothing; no plugin can have it."""
    return f"{plugin}\0destroys nothing"
