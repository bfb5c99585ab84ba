"""The lists of resources, templates and prompts of all servers that a session reaches, merged (G7, G8)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.board.resources.reach import ListKey, ReachedServer, ServerKey, reached_servers, server_of
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.listed_items import KEYS, Listing, ListKind, MergedList, merge_lists
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.support.tasks import start_detached

log = logging.getLogger("pegboard")

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT: Final = 4096
"""Of how many servers and agents the newest lists are kept, and of how many warnings that they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CachedMergedList:
    """A merged list and what it was made of."""

    names: list[tuple[str, str | None]]
    listings: list[Listing]
    items: MergedList

    def is_merged_from(self, names: list[tuple[str, str | None]], listings: list[Listing]) -> bool:
        """Return whether it would be the same list."""
        return names == self.names and all(a[1] is b[1] for a, b in zip(self.listings, listings, strict=True))


class ResourceLists:
    """The newest list of each server, and the merged ones.

    Lists are live, over the connections that calls take (G9), where those are up. Of a server that does not run the
    list counts that the store has of it, and it is not started; once it runs, its lists are read again. A server that
    does not answer within ``SERVER_WAIT`` seconds is excluded, or keeps what was known of before. Where a list turns
    out to be another than the one that was given, ``changed`` is called.
    """

    def __init__(self, services: Services, changed: Callable[[str, ListKind], None]) -> None:
        self._services = services
        self._changed = changed
        self._tasks: dict[ListKey, asyncio.Task[None]] = {}
        self._late: set[ListKey] = set()
        self._known: OrderedDict[ListKey, Sequence[JsonObject]] = OrderedDict()
        self._merged: OrderedDict[tuple[str, str, ListKind], _CachedMergedList] = OrderedDict()
        self._given: OrderedDict[ServerKey, tuple[ReachedServer, frozenset[ListKind]]] = OrderedDict()
        self._refreshing: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._warned: set[str] = set()

    async def merged(self, snapshot: Snapshot, kind: ListKind) -> MergedList:
        """Return what the session's agent sees of a kind, by the names that clients know."""
        found = await self._lists_at_hand(snapshot, kind)
        missing = [server for server, items in found if items is None]
        if missing:
            await self._fetch_all(missing, kind)
        known = [(s, self._known.get(s.key(kind), ()) if items is None else items) for s, items in found]
        return self._merge(snapshot, kind, known)

    async def list_if_at_hand(self, snapshot: Snapshot, kind: ListKind) -> MergedList | None:
        """Return what :meth:`merged` does where no server has to be started or asked for it; else None."""
        found = await self._lists_at_hand(snapshot, kind)
        known = [(server, items) for server, items in found if items is not None]
        return self._merge(snapshot, kind, known) if len(known) == len(found) else None

    async def _lists_at_hand(
        self, snapshot: Snapshot, kind: ListKind
    ) -> list[tuple[ReachedServer, Sequence[JsonObject] | None]]:
        servers = (s for s in reached_servers(self._services, snapshot).values() if s.may_have(kind))
        return [(server, await self._list_if_at_hand(server, kind)) for server in servers]

    async def _list_if_at_hand(self, server: ReachedServer, kind: ListKind) -> Sequence[JsonObject] | None:
        """Return a list of a server that nothing has to be started or asked for, or None."""
        _, kinds = self._given.get(server.server_key, (server, frozenset[ListKind]()))
        _keep_newest(self._given, server.server_key, (server, kinds | {kind}))
        items = server.cached(kind)
        return await self._stored_list(server, kind) if items is None and not server.is_up else items

    async def _stored_list(self, server: ReachedServer, kind: ListKind) -> Sequence[JsonObject] | None:
        """Return a list that the store has of a server, or None."""
        key = server.key(kind)
        known = self._known.get(key)
        try:
            items = await self.kept(server, kind)
        except PegboardError:  # the store, or a login, cannot be read now
            return known
        if items is None or (known is not None and items == tuple(known)):
            return None if items is None else known
        _keep_newest(self._known, key, items)
        return items

    async def kept(self, server: ReachedServer, kind: str) -> Sequence[JsonObject] | None:
        """Return what is kept of a list of a server, of any kind, or None; raises ``PegboardError``."""
        name = await server.kept_as()
        if name is None:
            return None
        lists = await self._services.loader.manifests.lists(server.plugin.name, server.fingerprint, name)
        return lists.get(kind)

    def note_up(self, spec: PluginSpec, scope: str, owner: LoginOwner) -> None:
        """Read again what is stored of a server, since a connection to it is up."""
        server = server_of(self._services, spec, scope, owner)
        if server is not None:
            if server.server_key not in self._given:
                _keep_newest(self._given, server.server_key, (server, frozenset()))
            self.refresh(spec.name)

    def refresh(self, plugin: str) -> None:
        """Read again, beside everything else, what was given of a server, as far as its connections are up."""
        if plugin in self._refreshing:
            self._again.add(plugin)
        elif any(key[0] == plugin for key in self._given):
            self._refreshing[plugin] = start_detached(
                self._refresh(plugin), name=f"lists of {plugin}", done=lambda _: self._refreshing.pop(plugin, None)
            )

    async def _refresh(self, plugin: str) -> None:
        again = True
        while again:
            self._again.discard(plugin)
            given = [found for key, found in self._given.items() if key[0] == plugin]
            for server, kinds in given:  # one after the other: the first takes a process that is no one's yet
                for kind in KEYS if server.is_up else ():
                    wanted = kind in kinds or await self._stored_list(server, kind) is not None
                    if wanted and server.is_up and server.cached(kind) is None:
                        await self._read_again(server, kind)
            again = plugin in self._again

    async def _read_again(self, server: ReachedServer, kind: ListKind) -> None:
        before = self._known.get(server.key(kind))
        await asyncio.wait([self._fetch_task(server, kind)])
        after = self._known.get(server.key(kind))
        if before is not None and after is not None and tuple(before) != tuple(after):
            self._changed(server.plugin.name, kind)

    def _merge(
        self, snapshot: Snapshot, kind: ListKind, lists: list[tuple[ReachedServer, Sequence[JsonObject]]]
    ) -> MergedList:
        key = snapshot.info.key.principal, snapshot.info.key.agent, kind
        names = [(server.plugin.name, server.plugin.prefix) for server, _ in lists]
        listings: list[Listing] = [(server.plugin, items) for server, items in lists]
        known = self._merged.get(key)
        if known is not None and known.is_merged_from(names, listings):
            return known.items
        items = merge_lists(kind, listings)
        _keep_newest(self._merged, key, _CachedMergedList(names=names, listings=listings, items=items))
        for clash in items.clashes:
            self._warn(f"{kind} {clash.first} and {clash.second} are both called {clash.name}: the later is not listed")
        return items

    async def _fetch_all(self, servers: Iterable[ReachedServer], kind: ListKind) -> None:
        """Ask servers at once, and wait for those that were not late the last time."""
        awaited: dict[ListKey, asyncio.Task[None]] = {}
        for server in servers:
            key, task = server.key(kind), self._fetch_task(server, kind)
            if key not in self._late:
                awaited[key] = task
        if awaited:
            await asyncio.wait(awaited.values(), timeout=SERVER_WAIT)
        for key, task in awaited.items():
            if not task.done():
                self._late.add(key)
                log.warning("the %s of server %s have not been read yet: the list is sent without them", kind, key[0])

    def _fetch_task(self, server: ReachedServer, kind: ListKind) -> asyncio.Task[None]:
        """Return the task that asks a server for a list: one for everyone who wants it now."""
        key = server.key(kind)
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = start_detached(
                self._fetch(server, key), name=f"list {kind} of {key[0]}", done=partial(self._tasks.pop, key)
            )
        return task

    async def _fetch(self, server: ReachedServer, key: ListKey) -> None:
        """Keep the newest list of a server; one that cannot be read leaves what was known of before.

        Nothing is left to who has no login any longer.
        """
        kind = key[-1]
        try:
            items = await server.offers(kind)
        except NeedsLoginError:  # reported of the server itself
            self._known.pop(key, None)
            self._late.discard(key)
            return
        except PegboardError as error:
            if server.is_up:  # else reported of the server itself
                self._warn(f"the {kind} of server {key[0]} could not be read: {error.message}")
            return
        except Exception:
            log.exception("reading the %s of server %s failed", kind, key[0])
            return
        _keep_newest(self._known, key, items)
        await self.keep_for_next_start(server, kind, items)
        if key in self._late:
            self._late.discard(key)
            self._changed(key[0], kind)

    async def keep_for_next_start(self, server: ReachedServer, kind: str, items: Sequence[JsonObject]) -> None:
        """Store a list, so that the next start of Pegboard does not have to start the server for it."""
        manifests, name = self._services.loader.manifests, server.plugin.name
        try:
            if server.may_keep and (kept_as := await server.kept_as()) is not None:
                await manifests.keep_list(name, server.fingerprint, kept_as, kind, items)
        except PegboardError as error:
            self._warn(f"the {kind} of server {name} are not cached for the next start: {error.message}")

    def _warn(self, text: str) -> None:
        """Log a warning once."""
        shown = one_line(self._services.masker.text(text), limit=500)
        if shown not in self._warned:
            if len(self._warned) >= MOST_KEPT:
                self._warned.clear()
            self._warned.add(shown)
            log.warning("%s", shown)

    async def aclose(self) -> None:
        """Stop asking."""
        tasks = [*self._refreshing.values(), *self._tasks.values()]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def _keep_newest(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)
