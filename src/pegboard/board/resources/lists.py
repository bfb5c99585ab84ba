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
from pegboard.board.resources.reach import ListKey, ReachedServer, reached_servers
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.listed_items import Listing, ListKind, MergedList, merge_lists
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject
from pegboard.errors import NeedsLoginError, PegboardError

log = logging.getLogger("pegboard")

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT: Final = 4096
"""Of how many servers and agents the newest lists are kept, and of how many warnings that they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged:
    """A merged list and what it was made of."""

    names: list[tuple[str, str | None]]
    listings: list[Listing]
    items: MergedList

    def is_made_of(self, names: list[tuple[str, str | None]], listings: list[Listing]) -> bool:
        """Return whether it would be the same list."""
        return names == self.names and all(a[1] is b[1] for a, b in zip(self.listings, listings, strict=True))


class ResourceLists:
    """The newest list of each server, and the merged ones.

    Lists are live, over the connections that calls take (G9). A server that does not answer within ``SERVER_WAIT``
    seconds is excluded, or keeps what was known of before; when its answer comes, ``changed`` is called.
    """

    def __init__(self, services: Services, changed: Callable[[str, ListKind], None]) -> None:
        self._services = services
        self._changed = changed
        self._tasks: dict[ListKey, asyncio.Task[None]] = {}
        self._late: set[ListKey] = set()
        self._known: OrderedDict[ListKey, Sequence[JsonObject]] = OrderedDict()
        self._merged: OrderedDict[tuple[str, str, ListKind], _Merged] = OrderedDict()
        self._warned: set[str] = set()

    async def merged(self, snapshot: Snapshot, kind: ListKind) -> MergedList:
        """Return what the session's agent sees of a kind, by the names that clients know."""
        servers = [s for s in reached_servers(self._services, snapshot).values() if s.may_have(kind)]
        lists = {server.plugin.name: server.cached(kind) for server in servers}
        missing = [server for server in servers if lists[server.plugin.name] is None]
        if missing:
            await self._fetch_all(missing, kind)
            for server in missing:
                lists[server.plugin.name] = self._known.get(server.key(kind), ())
        return self._merge(snapshot, kind, [(s, lists[s.plugin.name] or ()) for s in servers])

    def _merge(
        self, snapshot: Snapshot, kind: ListKind, lists: list[tuple[ReachedServer, Sequence[JsonObject]]]
    ) -> MergedList:
        key = snapshot.info.key.principal, snapshot.info.key.agent, kind
        names = [(server.plugin.name, server.plugin.prefix) for server, _ in lists]
        listings: list[Listing] = [(server.plugin, items) for server, items in lists]
        known = self._merged.get(key)
        if known is not None and known.is_made_of(names, listings):
            return known.items
        items = merge_lists(kind, listings)
        _keep(self._merged, key, _Merged(names=names, listings=listings, items=items))
        for clash in items.clashes:
            self._warn(f"{kind} {clash.first} and {clash.second} are both called {clash.wire}: the later is not listed")
        return items

    async def _fetch_all(self, servers: Iterable[ReachedServer], kind: ListKind) -> None:
        """Ask servers at once, and wait for those that were not late the last time."""
        awaited: dict[ListKey, asyncio.Task[None]] = {}
        for server in servers:
            key = server.key(kind)
            task = self._tasks.get(key)
            if task is None:
                task = self._tasks[key] = asyncio.create_task(self._fetch(server, key), name=f"list {kind} of {key[0]}")
                task.add_done_callback(partial(self._tasks.pop, key))
            if key not in self._late:
                awaited[key] = task
        if awaited:
            await asyncio.wait(awaited.values(), timeout=SERVER_WAIT)
        for key, task in awaited.items():
            if not task.done():
                self._late.add(key)
                log.warning("the %s of server %s are not there yet: its list goes without them", kind, key[0])

    async def _fetch(self, server: ReachedServer, key: ListKey) -> None:
        """Keep the newest list of a server; one that cannot be read leaves what was known of before.

        Nothing is left to who has no login any more.
        """
        kind = key[-1]
        try:
            items = await server.offers(kind)
        except NeedsLoginError:  # reported of the server itself
            self._known.pop(key, None)
            self._late.discard(key)
            return
        except PegboardError as error:
            self._warn(f"the {kind} of server {key[0]} could not be read: {error.message}")
            return
        except Exception:
            log.exception("reading the %s of server %s failed", kind, key[0])
            return
        _keep(self._known, key, items)
        if key in self._late:
            self._late.discard(key)
            self._changed(key[0], kind)

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
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)
