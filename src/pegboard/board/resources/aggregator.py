"""What servers offer besides tools, as one agent sees it: lists, reads, prompts, completions (G7, P3)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pegboard.board.calls.decision_cache import pool_scope
from pegboard.board.calls.pipeline import failure_of
from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.core.access.listed_items import (
    CAPABILITY,
    ListedItem,
    Listing,
    ListKind,
    MergedList,
    Target,
    completed,
    merge_lists,
    owners,
    plugins_with_lists,
    unalias,
    why_not,
)
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin
from pegboard.errors import PegboardError
from pegboard.ports import CallContext, HasResources, ResourceSource

if TYPE_CHECKING:
    from pegboard.board.board import Board
    from pegboard.board.session import Session

log = logging.getLogger("pegboard")

MOST_SAID: Final = 1000
"""Of how many warnings it is remembered that they were given."""

Key = tuple[str, str, str, ListKind]
"""A server, its fingerprint, the scope of a connection, and which list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Hold one server as a session reaches it."""

    plugin: Plugin
    spec: PluginSpec
    source: ResourceSource
    scope: str

    def key(self, fingerprint: str, kind: ListKind) -> Key:
        """Return the key of one of its lists."""
        return self.plugin.name, fingerprint, self.scope, kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arranged:
    """Hold a shelf and what it was made of."""

    names: list[tuple[str, str | None]]
    listings: list[Listing]
    masker: Masker
    shelf: MergedList

    def fits(self, names: list[tuple[str, str | None]], listings: list[Listing], masker: Masker) -> bool:
        """Return whether it would be the same shelf."""
        same = names == self.names and masker is self.masker
        return same and all(a[1] is b[1] for a, b in zip(self.listings, listings, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Hold who has a resource to which somebody subscribed; ``release`` is None where it says no updates."""

    plugin: str
    release: Callable[[], None] | None


class ResourceAggregator:
    """Aggregate what the servers of a board offer; nothing here depends on what a session has loaded.

    Lists are live, over the connections that calls take (G9). Who does not answer within ``LOOK_WAIT``
    seconds is left out, with what is known of before; when its answer comes, subscribers are told.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._callbacks: list[Callable[[str, ListKind], object]] = []
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._late: set[Key] = set()
        self._known: dict[Key, Sequence[JsonObject]] = {}
        self._shelves: dict[tuple[str, str, ListKind], _Arranged] = {}
        self._said: set[str] = set()
        for source in board.parts.sources:
            if isinstance(source, HasResources):
                source.offering.on_changed(self._changed)

    def on_changed(self, callback: Callable[[str, ListKind], object]) -> Callable[[], None]:
        """Call back with a server and which of its lists may have changed; returns what ends that."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def _changed(self, plugin: str, kind: ListKind) -> None:
        for callback in tuple(self._callbacks):
            callback(plugin, kind)

    # -- lists -------------------------------------------------------------------------------------

    async def listed(self, session: Session, kind: ListKind) -> Mapping[str, ListedItem]:
        """Return what the session's agent sees, by the names that clients know, in order."""
        access = await self._access(session)
        return (await self._shelf(session, access, kind)).offers

    async def _access(self, session: Session) -> CompiledPermissions:
        """Return the access once servers that may hold what the agent names have been seen."""
        access = await session.access()
        if access.unresolved:
            await self._board.look(access, self._board.look_later(access), wait=SERVER_WAIT)
            access = await session.access()
        return access

    def _sides(self, session: Session, access: CompiledPermissions) -> list[_Side]:
        """Return the servers that the agent sees and that can be asked, in order."""
        return [
            side for plugin in plugins_with_lists(access) if (side := self._side(session, access, plugin)) is not None
        ]

    def _side(self, session: Session, access: CompiledPermissions, plugin: Plugin) -> _Side | None:
        spec = self._board.keeper.specs.get(plugin.name)
        source = self._board.keeper.source_of(spec) if spec is not None else None
        if spec is None or getattr(spec, "unavailable", "") or not isinstance(source, HasResources):
            return None
        scope = pool_scope(access, spec, session.key)
        return _Side(plugin=plugin, spec=spec, source=source.offering, scope=scope)

    @staticmethod
    def _may_have(side: _Side, kind: ListKind) -> bool:
        """Return whether a server is to be asked: none is started that is known to have nothing."""
        known = side.plugin.offers
        return known is None or CAPABILITY[kind] in known or side.source.is_up(side.spec, side.scope)

    async def _shelf(self, session: Session, access: CompiledPermissions, kind: ListKind) -> MergedList:
        sides = [side for side in self._sides(session, access) if self._may_have(side, kind)]
        lists = {side.plugin.name: side.source.cached(side.spec, side.scope, kind) for side in sides}
        missing = [side for side in sides if lists[side.plugin.name] is None]
        if missing:
            await self._fetched(missing, kind)
            for side in missing:
                lists[side.plugin.name] = self._known.get(self._key(side, kind), ())
        held = session.key.principal, session.key.agent, kind
        names = [(side.plugin.name, side.plugin.prefix) for side in sides]
        listings = [(side.plugin, lists[side.plugin.name] or ()) for side in sides]
        known = self._shelves.get(held)
        if known is not None and known.fits(names, listings, self._board.masker):
            return known.shelf
        shelf = merge_lists(kind, listings, self._board.masker.known)
        self._shelves[held] = _Arranged(names=names, listings=listings, masker=self._board.masker, shelf=shelf)
        for clash in shelf.clashes:
            self._say(f"{kind} {clash.first} and {clash.second} are both called {clash.wire}: the later is not listed")
        return shelf

    def _key(self, side: _Side, kind: ListKind) -> Key:
        return side.key(self._board.keeper.source_of(side.spec).fingerprint(side.spec), kind)

    async def _fetched(self, sides: Iterable[_Side], kind: ListKind) -> None:
        """Ask servers at once, and wait for those that were not late the last time."""
        awaited: dict[Key, asyncio.Task[None]] = {}
        for side in sides:
            key = self._key(side, kind)
            task = self._tasks.get(key)
            if task is None:
                task = self._tasks[key] = asyncio.create_task(self._fetch(side, key), name=f"list {kind} of {key[0]}")
                task.add_done_callback(lambda _, key=key: self._tasks.pop(key, None))
            if key not in self._late:
                awaited[key] = task
        if awaited:
            await asyncio.wait(awaited.values(), timeout=SERVER_WAIT)
        for key, task in awaited.items():
            if not task.done():
                self._late.add(key)
                log.warning("the %s of server %s are not there yet: its list goes without them", kind, key[0])

    async def _fetch(self, side: _Side, key: Key) -> None:
        """Keep the newest list of a server; one that cannot be read leaves what was known of before."""
        try:
            items = await side.source.offers(side.spec, side.scope, key[3])
        except PegboardError as error:
            self._say(f"the {key[3]} of server {key[0]} could not be read: {error.message}")
            return
        except Exception:
            log.exception("reading the %s of server %s failed", key[3], key[0])
            return
        self._known[key] = items
        if key in self._late:
            self._late.discard(key)
            self._changed(key[0], key[3])

    def _say(self, text: str) -> None:
        """Log a warning once."""
        shown = one_line(self._board.masker.text(text), limit=500)
        if shown not in self._said:
            if len(self._said) >= MOST_SAID:
                self._said.clear()
            self._said.add(shown)
            log.warning("%s", shown)

    # -- reads -------------------------------------------------------------------------------------

    async def read(self, session: Session, uri: str, context: CallContext) -> JsonObject | None:
        """Return the result of a read as the server gave it; None is that there is no such resource (P9).

        A listed URI goes to its owner, else to the owner of a template that gives it, else to whichever
        server that runs has it. Raises ``ToolUnavailableError``, ``UpstreamError``.
        """
        started = time.perf_counter()
        access = await self._access(session)
        sides = {side.plugin.name: side for side in self._sides(session, access)}
        targets = await self._targets(session, access, sides, uri)
        try:
            result = await self._read(session, sides, uri, targets, context)
        except PegboardError as error:
            await self._record(session, "read", uri, failure_of(error), started)
            raise
        if result is None:
            aliased = unalias(uri)
            await self._refused(session, access, "read", uri, aliased[0] if aliased else None)
        else:
            await self._record(session, "read", uri, "ok", started)
        return result

    async def _targets(
        self, session: Session, access: CompiledPermissions, sides: Mapping[str, _Side], uri: str
    ) -> list[Target]:
        resources, templates = await asyncio.gather(
            self._shelf(session, access, "resources"), self._shelf(session, access, "templates")
        )
        matches = next((side.source.matches for side in sides.values()), _never)
        return [target for target in owners(uri, sides, resources, templates, matches) if target[0] in sides]

    async def _read(
        self, session: Session, sides: Mapping[str, _Side], uri: str, targets: list[Target], context: CallContext
    ) -> JsonObject | None:
        first: PegboardError | None = None
        for plugin, own in targets:
            try:
                return await self._ask(session, sides[plugin], "resources/read", {"uri": own}, context)
            except PegboardError as error:
                first = first or error
        if first is not None:
            raise first
        running = [s for s in sides.values() if self._may_have(s, "resources") and s.source.is_up(s.spec, s.scope)]
        return await self._anywhere(session, running, uri, context)

    async def _anywhere(
        self, session: Session, sides: Sequence[_Side], uri: str, context: CallContext
    ) -> JsonObject | None:
        """Return what the first server in order has, of those that answer in time."""
        silent = replace(context, progress=None)
        work = (self._ask(session, side, "resources/read", {"uri": uri}, silent) for side in sides)
        tasks = [asyncio.create_task(one) for one in work]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=SERVER_WAIT)
            found = [task.result() for task in tasks if task.done() and task.exception() is None]
        finally:
            for task in tasks:
                task.cancel()
        return found[0] if found else None

    async def _ask(
        self, session: Session, side: _Side, method: str, params: JsonObject, context: CallContext
    ) -> JsonObject:
        scoped = replace(
            context,
            principal=session.key.principal,
            agent=session.key.agent,
            session=session.key.session,
            scope=side.scope,
        )
        return await side.source.ask(side.spec, method, params, scoped)

    async def prompt(
        self, session: Session, name: str, arguments: JsonObject | None, context: CallContext
    ) -> JsonObject | None:
        """Return the result of a prompt as the server gave it; None is that there is no such prompt (P9)."""
        started = time.perf_counter()
        access = await self._access(session)
        offer = (await self._shelf(session, access, "prompts")).offers.get(name)
        side = next(
            (s for s in self._sides(session, access) if offer is not None and s.plugin.name == offer.plugin), None
        )
        if offer is None or side is None:
            await self._refused(session, access, "prompt", name, name.partition("__")[0])
            return None
        params = {"name": offer.name} if arguments is None else {"name": offer.name, "arguments": arguments}
        digest = await self._board.recorder.digest(arguments or EMPTY)
        try:
            result = await self._ask(session, side, "prompts/get", params, context)
        except PegboardError as error:
            await self._record(session, "prompt", name, failure_of(error), started, digest)
            raise
        await self._record(session, "prompt", name, "ok", started, digest)
        return result

    async def complete(self, session: Session, params: JsonObject, context: CallContext) -> JsonObject | None:
        """Return the completion as the server gave it; None is that there is no such prompt or resource."""
        access = await self._access(session)
        sides = {side.plugin.name: side for side in self._sides(session, access)}
        prompts, resources, templates = await asyncio.gather(
            *(self._shelf(session, access, kind) for kind in ("prompts", "resources", "templates"))
        )
        found = completed(params.get("ref", EMPTY), sides, prompts, resources, templates)
        if found is None or found[0] not in sides:
            return None
        asked = {key: value for key, value in params.items() if key in ("argument", "context")}
        return await self._ask(session, sides[found[0]], "completion/complete", {"ref": found[1], **asked}, context)

    async def subscribe(self, session: Session, uri: str, updated: Callable[[str], None]) -> Subscription | None:
        """Call back when a resource is updated, with its URI as the client knows it.

        None is that there is no such resource (P9).
        """
        access = await self._access(session)
        sides = {side.plugin.name: side for side in self._sides(session, access)}
        targets = await self._targets(session, access, sides, uri)
        if not targets:
            return None
        plugin, own = targets[0]
        side, shown = sides[plugin], _as_shown(uri, own)
        release = await side.source.subscribe(side.spec, own, side.scope, lambda changed: updated(shown(changed)))
        return Subscription(plugin=plugin, release=release)

    async def sees(self, session: Session, plugin: str) -> bool:
        """Return whether the session's agent sees a server now (P4)."""
        access = await session.access()
        return any(found.name == plugin for found in plugins_with_lists(access))

    # -- the audit trail ---------------------------------------------------------------------------

    async def _record(
        self, session: Session, kind: str, subject: str, outcome: str, started: float, digest: str = ""
    ) -> None:
        self._board.recorder.asked(
            session.key,
            (await session.stored())[0].turn,
            kind=kind,
            subject=subject,
            outcome=outcome,
            duration=round((time.perf_counter() - started) * 1000, 3),
            arguments=digest,
        )

    async def _refused(
        self, session: Session, access: CompiledPermissions, kind: str, subject: str, owner: str | None
    ) -> None:
        """Audit a request for what there is not for this agent, with the true reason where it is known (P9)."""
        plugin = access.world.catalog.plugins.get(owner or "")
        denied = plugin is not None and plugin.kind == "server" and not access.may_have_tools_of(plugin)
        reason = why_not(access, plugin) if plugin is not None and denied else None
        await self._board.recorder.decided(
            session.key,
            (await session.stored())[0].turn,
            None,
            kind=kind,
            subject=subject,
            decision="refused",
            reason=reason.text if reason is not None else "There is no such thing.",
            outcome=reason.code if reason is not None else "not_found",
        )

    async def aclose(self) -> None:
        """Stop asking."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def _as_shown(uri: str, own: str) -> Callable[[str], str]:
    """Return what makes of a URI of the server the one for a client that knows ``own`` as ``uri``."""
    if not uri.endswith(own):
        return lambda _: uri
    head = uri.removesuffix(own)
    return lambda changed: head + changed


def _never(template: str, uri: str) -> bool:  # noqa: ARG001 - there is no server whose template it could be
    return False
