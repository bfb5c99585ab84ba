"""Keep up with which tools of servers count as read-only (G6)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pegboard.core.access.read_only import claimed_read_only, compare_claims, reads_only
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

    def pending(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the tools of a trusted server that say now that they only read, and do not count yet."""
        counted = self._counted.get(plugin.name)
        if plugin.kind != "server" or not plugin.trusted or counted is None:
            return ()
        names = compare_claims(counted, plugin.tools).pending
        return tuple(tool for tool in plugin.tools if tool.name in names)

    async def seen(self, plugin: Plugin, manifest: Manifest) -> None:
        """Keep a first list as what counts; hold a later one against it, and warn of what does not count."""
        if plugin.kind != "server":
            return
        counted = self._counted.get(plugin.name)
        if counted is None:
            counted = await self._store.keep_first_claims(plugin.name, claimed_read_only(manifest.tools))
            self._counted = {**self._counted, plugin.name: counted}
        judgement = compare_claims(counted, manifest.tools)
        if judgement.retracted:
            await self._store.change_claims(plugin.name, retract=judgement.retracted)
            await self.refresh()
        if judgement.pending and plugin.trusted:
            names = one_line(", ".join(judgement.pending), limit=200)
            log.warning(
                "server %s says now that these tools only read: %s. `pegboard check --accept` accepts it.",
                plugin.name,
                names,
            )

    async def accept(self, plugin: Plugin, tools: tuple[Tool, ...]) -> None:
        """Let tools of a server count as read-only from the next call on, whichever process serves it."""
        await self._store.change_claims(plugin.name, accept=[tool.name for tool in tools])
        await self.refresh()
