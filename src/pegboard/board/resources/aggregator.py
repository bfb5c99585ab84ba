"""What servers list besides tools, as one agent sees it: lists, reads, prompts, completions (G7, P3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pegboard.board import resources
from pegboard.board.discover import are_all_searchable_known, discover_searchable
from pegboard.board.resources.lists import ResourceLists
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot, read_snapshot
from pegboard.core.access import extensions
from pegboard.core.access.listed_items import ListKind, MergedList, plugins_with_lists
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.ports import CallContext, HasResources, Source

if TYPE_CHECKING:
    from pegboard.board.resources.reads import Subscription


class ResourceAggregator:
    """What the servers of a board list besides tools; nothing here depends on what a session has loaded."""

    def __init__(self, services: Services, sources: Sequence[Source]) -> None:
        self._services = services
        self._callbacks: list[Callable[[str, ListKind], object]] = []
        self._lists = ResourceLists(services, self._notify_change)
        for source in sources:
            if isinstance(source, HasResources):
                source.offering.on_changed(self._source_changed)
                source.offering.on_up(self._lists.note_up)

    def on_changed(self, callback: Callable[[str, ListKind], object]) -> Callable[[], None]:
        """Call back with a server and which of its lists may have changed; returns what ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def _source_changed(self, plugin: str, kind: ListKind) -> None:
        self._lists.refresh(plugin)
        self._notify_change(plugin, kind)

    def _notify_change(self, plugin: str, kind: ListKind) -> None:
        for callback in tuple(self._callbacks):
            callback(plugin, kind)

    async def _read_with_servers(self, info: SessionInfo) -> Snapshot:
        """Return the session once servers that may have what the agent names have been seen."""
        snapshot = await read_snapshot(self._services, info)
        return (
            await discover_searchable(self._services, snapshot) if snapshot.permissions.entries.unresolved else snapshot
        )

    async def listed(self, info: SessionInfo, kind: ListKind) -> list[JsonObject]:
        """Return what the session's agent sees, as it stands on the wire for clients, in order."""
        return _wire_items(await self._lists.merged(await self._read_with_servers(info), kind))

    async def list_if_at_hand(self, info: SessionInfo, kind: ListKind) -> list[JsonObject] | None:
        """Return what :meth:`listed` does where no server has to be started or asked for it; else None."""
        snapshot = await read_snapshot(self._services, info)
        if snapshot.permissions.entries.unresolved and not are_all_searchable_known(snapshot):
            return None
        found = await self._lists.list_if_at_hand(snapshot, kind)
        return None if found is None else _wire_items(found)

    async def read(self, info: SessionInfo, uri: str, context: CallContext) -> JsonObject | None:
        """Return the result of a read as the server gave it; None is that there is no such resource (P9).

        Raises ``ToolUnavailableError``, ``UpstreamError``.
        """
        return await resources.reads.read_resource(
            self._services, self._lists, await self._read_with_servers(info), uri, context
        )

    async def prompt(
        self, info: SessionInfo, name: str, arguments: JsonObject | None, context: CallContext
    ) -> JsonObject | None:
        """Return the result of a prompt as the server gave it; None is that there is no such prompt (P9)."""
        snapshot = await self._read_with_servers(info)
        return await resources.reads.get_prompt(self._services, self._lists, snapshot, name, arguments, context)

    async def complete(self, info: SessionInfo, params: JsonObject, context: CallContext) -> JsonObject | None:
        """Return the completion as the server gave it; None is that there is no such prompt or resource."""
        return await resources.reads.complete(
            self._services, self._lists, await self._read_with_servers(info), params, context
        )

    async def capabilities(self, info: SessionInfo, *, modern: bool) -> JsonObject:
        """Return what the servers of the session's agent declare besides lists, as far as it is known: none is started.

        ``modern`` is the era of the client that is told.
        """
        snapshot = await read_snapshot(self._services, info)
        declares = [plugin.declares for plugin in plugins_with_lists(snapshot.permissions) if plugin.declares]
        return extensions.merge_extensions(declares, modern=modern) if declares else EMPTY

    async def ask_extension(
        self, info: SessionInfo, method: str, params: JsonObject, context: CallContext
    ) -> JsonObject | None:
        """Return the result of a request of an extension, merged where it lists what servers have.

        None is that none of the agent's servers has what it names (P9). Raises ``LookupError`` where none of them has
        the method, else as :meth:`read` does.
        """
        snapshot = await self._read_with_servers(info)
        return await resources.extensions.ask(self._services, self._lists, snapshot, method, params, context)

    async def subscribe(self, info: SessionInfo, uri: str, updated: Callable[[str], None]) -> Subscription | None:
        """Call back when a resource is updated, with its URI as the client knows it.

        None is that there is no such resource (P9).
        """
        return await resources.reads.subscribe(
            self._services, self._lists, await self._read_with_servers(info), uri, updated
        )

    async def sees(self, info: SessionInfo, plugin: str) -> bool:
        """Return whether the session's agent sees a server now (P4)."""
        snapshot = await read_snapshot(self._services, info)
        return any(found.name == plugin for found in plugins_with_lists(snapshot.permissions))

    async def aclose(self) -> None:
        """Stop asking."""
        await self._lists.aclose()


def _wire_items(merged: MergedList) -> list[JsonObject]:
    return [offer.wire for offer in merged.offers.values()]
