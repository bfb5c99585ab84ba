"""Notifications to clients that their list of tools has changed: each only of its own (G4, G5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from pegboard.core.model.tools import EMPTY
from pegboard.errors import PegboardError
from pegboard.gateway.clients.handshake import connection_of
from pegboard.gateway.protocol.board_port import CALLER, BoardPort, Caller
from pegboard.gateway.protocol.convert import ListDigests
from pegboard.gateway.protocol.request_identity import on_connection
from pegboard.support.tasks import BackgroundTasks

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from pegboard.board import Session
    from pegboard.gateway.protocol.early_answers import EarlyList
    from pegboard.ports import SessionKey

IN_EVERY_SESSION: Final = ("catalog_changed", "configuration_changed", "permissions_changed")
IN_ONE_SESSION: Final = ("loaded", "unloaded", "evicted", "turn_ended")
SWITCH_INTERVAL: Final = 1.0
"""How often a store that tells of no changes is asked for what another process has changed, in seconds."""
LISTENING_INTERVAL: Final = 0.2
"""The same while a client listens."""
MOST_LISTED: Final = 1_000
"""Of how many viewers it is known what they were listed before they listen."""
PATIENCE: Final = 5.0
"""How long a client may take to accept a notification, in seconds."""

NotifyListChanged = Callable[[], Awaitable[None]]
"""Notify a client that its list of tools has changed."""


class GetSession(Protocol):
    """The lookup of a session: of a caller, by its id, in the newer era or not."""

    async def __call__(self, caller: Caller, session_id: str, /, *, modern: bool) -> Session:
        """Return the session."""
        ...


@dataclass(slots=True, eq=False)
class HandshakeListener:
    """A connection of the handshake era, and the digest of the list that its client has.

    ``changed_by_call``: the call that is being served may have changed it. ``calls`` are in flight; ``version`` is that
    of the stored state of its session when the list was looked at last, None where it is to be looked at again.
    """

    connection: Connection
    caller: Caller
    key: SessionKey
    digest: str | None = None
    changed_by_call: bool = False
    calls: int = 0
    version: int | None = 0

    @property
    def is_shared(self) -> bool:
        """Return whether other clients can be in its session: it is not that of the transport."""
        return self.key.session != self.caller.transport_session


@dataclass(slots=True, eq=False)
class _ListenStream:
    bus: InMemorySubscriptionBus
    handler: ListenHandler
    digest: str
    open: int = 0


@dataclass(slots=True)
class ToolListNotifier:
    """The watch over a board that notifies each client whose list differs from the last one it had.

    ``on_any_change`` is called at whatever may change every list.
    """

    board: BoardPort
    session_of: GetSession
    digests: ListDigests = field(default_factory=ListDigests)
    on_any_change: Callable[[], None] = lambda: None
    _listeners: dict[int, HandshakeListener] = field(default_factory=dict)
    _streams: dict[Caller, _ListenStream] = field(default_factory=dict)
    _listed: dict[Caller, str] = field(default_factory=dict)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _unsubscribe: list[Callable[[], None]] = field(default_factory=list)
    _stale: bool = False
    _look_again: bool = False

    def start(self) -> None:
        """Listen to the board; call it on the loop that serves."""
        for event in IN_EVERY_SESSION:
            self._unsubscribe.append(self.board.on(event, self._any_list_may_differ))
        for event in IN_ONE_SESSION:
            self._unsubscribe.append(self.board.on(event, self._in_session))
        self._tasks.start(self._watch_store())

    def close(self) -> None:
        """End every stream gracefully and stop watching."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        for stream in self._streams.values():
            stream.handler.close()
        self._tasks.cancel()

    async def digest(self, caller: Caller, session_id: str | None) -> str:
        """Return the digest of the list of a caller: in the session of this name, else of the fixed part."""
        modern = session_id is None
        session = await self.session_of(caller, session_id or caller.usual_session, modern=modern)
        return self.digests.digest_of(await session.surface(loaded=not modern), modern=modern)

    # -- the handshake era -------------------------------------------------------------------------

    def join(self, connection: Connection, caller: Caller, key: SessionKey) -> HandshakeListener:
        """Return the listener on the connection of a request; it is removed when the connection closes."""
        listener = self._listeners.get(id(connection))
        if listener is None:
            listener = self._listeners[id(connection)] = HandshakeListener(
                connection=connection, caller=caller, key=key
            )
            connection.exit_stack.callback(self._listeners.pop, id(connection), None)
        elif listener.key is not key:
            if listener.key != key:
                listener.digest = None
            listener.key = key
        return listener

    def take_over(self, early: EarlyList, connection: Connection | None) -> None:
        """Note what a client was listed before the SDK was there; it may differ already."""
        if connection is None:
            self.note_list(early.caller, early.digest)
            return
        listener = self.join(connection, early.caller, early.key)
        listener.digest = early.digest
        self._tasks.start(self._refresh(listener))

    async def notify_caller(self, listener: HandshakeListener, notify: NotifyListChanged) -> None:
        """Notify the connection of the call that changed its list, before the call is answered."""
        listener.changed_by_call = False
        if await self._has_changed(listener):
            await notify()

    async def _has_changed(self, listener: HandshakeListener, *, unless_called: bool = False) -> bool:
        """Return whether a list is another one than its client has, which is notified then by whoever asked.

        ``unless_called`` leaves a list to the calls in flight, which notify of it before they are answered, and looks
        at it again after them.
        """
        while True:
            known = listener.digest
            now = await self.digest(listener.caller, listener.key.session)
            if unless_called and listener.calls:
                listener.version, self._look_again = None, True
                return False
            if listener.digest == known:  # else it was looked at meanwhile
                break
        listener.digest = now
        return now != known

    # -- the 2026-07-28 era ------------------------------------------------------------------------

    def note_list(self, caller: Caller, digest: str) -> None:
        """Note what a client was listed that does not listen yet: it may be another list by then."""
        if len(self._listed) >= MOST_LISTED:
            self._listed.clear()
        self._listed[_viewer(caller)] = digest

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one ``subscriptions/listen`` stream; events of other agents and principals are not on it."""
        caller = on_connection(CALLER.get(), connection_of(ctx.session))
        viewer = _viewer(caller)
        digest = await self.digest(viewer, None)
        stream = self._streams.get(viewer)
        if stream is None:
            bus = InMemorySubscriptionBus()
            stream = self._streams[viewer] = _ListenStream(bus=bus, handler=ListenHandler(bus), digest=digest)
        stream.open += 1
        if self._listed.pop(viewer, digest) != digest:
            self._tasks.start(stream.bus.publish(ToolsListChanged()))  # runs when the handler has subscribed
        try:
            return await stream.handler(ctx, params)
        finally:
            stream.open -= 1
            if not stream.open and self._streams.get(viewer) is stream:
                del self._streams[viewer]

    async def publish(self, viewer: Caller, event: ServerEvent) -> None:
        """Send an event to those streams of a viewer that subscribed to it."""
        for stream in self._streams_of(viewer):
            await stream.bus.publish(event)

    def has_stream(self, viewer: Caller) -> bool:
        """Return whether a viewer has a stream open."""
        return bool(self._streams_of(viewer))

    def _streams_of(self, viewer: Caller) -> list[_ListenStream]:
        """Return the streams of a viewer, whether the client draws user interfaces or not."""
        both = (replace(viewer, draws_ui=draws_ui) for draws_ui in (False, True))
        return [self._streams[one] for one in both if one in self._streams]

    # -- what happens on the board -----------------------------------------------------------------

    def _in_session(self, record: Mapping[str, Any]) -> None:
        mine = CALLING.get()
        named = (record.get("principal"), record.get("agent"), record.get("session"))
        for listener in self._listeners.values():
            if (listener.key.principal, listener.key.agent, listener.key.session) != named:
                continue
            if listener is mine:
                listener.changed_by_call = True
            else:
                self._tasks.start(self._refresh(listener))

    def _any_list_may_differ(self, _: Mapping[str, Any] = EMPTY) -> None:
        self.on_any_change()
        if not self._stale and (self._listeners or self._streams):
            self._stale = True
            self._tasks.start(self._refresh_all())

    async def _watch_store(self) -> None:
        """Watch what other processes change of the lists: switches and pins, and sessions; they send no event."""
        store, seen = self.board.services.store, None
        while True:
            with contextlib.suppress(PegboardError):
                before, seen = seen, await store.change_token()
                if before is not None and seen.permissions != before.permissions:
                    self._any_list_may_differ()
                if self._look_again or (before is not None and seen.states != before.states):
                    self._look_again = False
                    await self._follow_sessions()
                listening = self._listeners or self._streams
                await store.changed(seen, LISTENING_INTERVAL if listening else SWITCH_INTERVAL)
                continue
            await asyncio.sleep(SWITCH_INTERVAL)

    async def _follow_sessions(self) -> None:
        """Notify clients whose sessions were changed by way of others."""
        for listener in [one for one in self._listeners.values() if one.is_shared and one.digest is not None]:
            stored = await self.board.services.store.load(listener.key)
            version = 0 if stored is None else stored.version
            if version != listener.version:
                listener.version = version
                self._tasks.start(self._refresh(listener, unless_called=True))

    async def _refresh_all(self) -> None:
        await asyncio.sleep(0)
        self._stale = False
        for listener in list(self._listeners.values()):
            self._tasks.start(self._refresh(listener))
        for viewer, stream in list(self._streams.items()):
            now = await self._digest_now(viewer)
            if now is not None and now != stream.digest:
                stream.digest = now
                await stream.bus.publish(ToolsListChanged())

    async def _digest_now(self, viewer: Caller) -> str | None:
        try:
            return await self.digest(viewer, None)
        except PegboardError:
            return None

    async def _refresh(self, listener: HandshakeListener, *, unless_called: bool = False) -> None:
        try:
            changed = await self._has_changed(listener, unless_called=unless_called)
        except PegboardError:
            return
        if changed:
            try:
                async with asyncio.timeout(PATIENCE):
                    await listener.connection.send_tool_list_changed()
            except TimeoutError:
                listener.digest = None


def _viewer(caller: Caller) -> Caller:
    """Return what a list of the 2026-07-28 era depends on, of a caller (G4)."""
    return Caller(agent=caller.agent, principal=caller.principal, sub_app=caller.sub_app, draws_ui=caller.draws_ui)


CALLING: ContextVar[HandshakeListener | None] = ContextVar("pegboard_calling", default=None)
"""The connection whose call is being served: it is notified of a change before that call is answered."""
