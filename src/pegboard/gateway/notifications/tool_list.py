"""Tell clients that their list of tools has changed: each only of its own (G4, G5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from pegboard.concurrency.tasks import BackgroundTasks
from pegboard.core.model.tools import EMPTY
from pegboard.errors import PegboardError
from pegboard.gateway.protocol.board_port import CALLER, BoardPort, Caller

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.server.subscriptions import ServerEvent
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from pegboard.ports import SessionKey

EVERYWHERE: Final = ("catalog_changed", "configuration_changed", "permissions_changed")
IN_ONE_SESSION: Final = ("loaded", "unloaded", "evicted", "turn_ended")
LOOK: Final = 1.0
"""How often switches that another process may have set are looked at, in seconds."""
PATIENCE: Final = 5.0
"""How long a client may take to accept a notification, in seconds."""

Tell = Callable[[], Awaitable[None]]
"""Say that the list of tools has changed."""
Digest = Callable[[Caller, str | None], Awaitable[str]]
"""Return the digest of what a caller is listed: of the session of this name, else of the fixed part."""


@dataclass(slots=True, eq=False)
class HandshakeListener:
    """Hold a connection of the handshake era and the list that it knows."""

    connection: Connection
    caller: Caller
    key: SessionKey
    digest: str | None = None
    touched: bool = False


@dataclass(slots=True, eq=False)
class _Stream:
    bus: InMemorySubscriptionBus
    handler: ListenHandler
    digest: str
    open: int = 0


@dataclass(slots=True)
class ToolListNotifier:
    """Watch a board, and notify whoever is listed something else than before.

    ``listed`` is what was listed on stdio before there was a connection: the session, and the digest.
    ``beside`` is called at whatever may change every list.
    """

    board: BoardPort
    digest: Digest
    listed: tuple[SessionKey, str] | None = None
    beside: Callable[[], None] = lambda: None
    _joined: dict[int, HandshakeListener] = field(default_factory=dict)
    _streams: dict[Caller, _Stream] = field(default_factory=dict)
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _offs: list[Callable[[], None]] = field(default_factory=list)
    _stale: bool = False

    def start(self) -> None:
        """Listen to the board; call it on the loop that serves."""
        for event in EVERYWHERE:
            self._offs.append(self.board.on(event, self._everywhere))
        for event in IN_ONE_SESSION:
            self._offs.append(self.board.on(event, self._in_session))
        self._tasks.start(self._look_at_switches())

    def close(self) -> None:
        """End every stream gracefully and stop watching."""
        for off in self._offs:
            off()
        self._offs.clear()
        for stream in self._streams.values():
            stream.handler.close()
        self._tasks.cancel()

    # -- the handshake era -------------------------------------------------------------------------

    def join(self, connection: Connection, caller: Caller, key: SessionKey) -> HandshakeListener:
        """Return what is known of the connection of a request; it is forgotten when it closes."""
        joined = self._joined.get(id(connection))
        if joined is None:
            joined = self._joined[id(connection)] = HandshakeListener(connection=connection, caller=caller, key=key)
            if self.listed is not None and self.listed[0] == key:
                joined.digest = self.listed[1]
            connection.exit_stack.callback(self._joined.pop, id(connection), None)
        elif joined.key != key:
            joined.key, joined.digest = key, None
        return joined

    async def settle(self, joined: HandshakeListener, tell: Tell) -> None:
        """Notify the connection of the call that changed its list, before the call is answered."""
        if joined.touched:
            joined.touched = False
            if await self._differs(joined):
                await tell()

    async def _differs(self, joined: HandshakeListener) -> bool:
        now = await self.digest(joined.caller, joined.key.session)
        if now == joined.digest:
            return False
        joined.digest = now
        return True

    # -- the 2026-07-28 era ------------------------------------------------------------------------

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve one ``subscriptions/listen`` stream; events of other agents and principals stay out."""
        caller = CALLER.get()
        viewer = Caller(agent=caller.agent, principal=caller.principal)
        digest = await self.digest(viewer, None)
        stream = self._streams.get(viewer)
        if stream is None:
            bus = InMemorySubscriptionBus()
            stream = self._streams[viewer] = _Stream(bus=bus, handler=ListenHandler(bus), digest=digest)
        stream.open += 1
        try:
            return await stream.handler(ctx, params)
        finally:
            stream.open -= 1
            if not stream.open and self._streams.get(viewer) is stream:
                del self._streams[viewer]

    async def publish(self, viewer: Caller, event: ServerEvent) -> None:
        """Tell those streams of a viewer that asked for it."""
        stream = self._streams.get(viewer)
        if stream is not None:
            await stream.bus.publish(event)

    def listens(self, viewer: Caller) -> bool:
        """Return whether a viewer has a stream open."""
        return viewer in self._streams

    # -- what happens on the board -----------------------------------------------------------------

    def _in_session(self, record: Mapping[str, Any]) -> None:
        mine = CALLING.get()
        named = (record.get("principal"), record.get("agent"), record.get("session"))
        for joined in self._joined.values():
            if (joined.key.principal, joined.key.agent, joined.key.session) != named:
                continue
            if joined is mine:
                joined.touched = True
            else:
                self._tasks.start(self._refresh(joined))

    def _everywhere(self, _: Mapping[str, Any] = EMPTY) -> None:
        self.beside()
        if not self._stale and (self._joined or self._streams):
            self._stale = True
            self._tasks.start(self._refresh_all())

    async def _look_at_switches(self) -> None:
        """Notice what other processes switch; they send no event."""
        known: Hashable = None
        while True:
            with contextlib.suppress(PegboardError):
                now = (await self.board.services.store.change_token()).permissions
                if known is not None and now != known:
                    self._everywhere()
                known = now
            await asyncio.sleep(LOOK)

    async def _refresh_all(self) -> None:
        await asyncio.sleep(0)
        self._stale = False
        for joined in list(self._joined.values()):
            self._tasks.start(self._refresh(joined))
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

    async def _refresh(self, joined: HandshakeListener) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                if await self._differs(joined):
                    await joined.connection.send_tool_list_changed()
        except (PegboardError, TimeoutError):
            joined.digest = None


CALLING: ContextVar[HandshakeListener | None] = ContextVar("pegboard_calling", default=None)
"""The connection whose call is being served: it is told of a change in the answer to that call."""
