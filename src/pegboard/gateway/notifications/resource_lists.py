"""Notifications to clients that lists of resources or prompts have changed, or a resource was updated (G7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged

from pegboard.core.access.listed_items import CAPABILITY, KEYS, ListKind
from pegboard.errors import PegboardError
from pegboard.gateway.notifications.tool_list import PATIENCE, GetSession, ToolListNotifier
from pegboard.gateway.protocol import convert
from pegboard.gateway.protocol.board_port import Caller
from pegboard.support.tasks import BackgroundTasks

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from pegboard.gateway.protocol.board_port import BoardPort
    from pegboard.gateway.protocol.early_answers import EarlyList


_EVENTS: Final = {"resources": ResourcesListChanged(), "prompts": PromptsListChanged()}


@dataclass(slots=True, eq=False)
class _ListedDigests:
    """The digests of what one client was listed: a connection of the handshake era, or all streams of a viewer."""

    caller: Caller
    session: str
    connection: Connection | None
    digests: dict[ListKind, str] = field(default_factory=dict["ListKind", str])


class ResourceListNotifier:
    """The watch over resources and prompts that notifies each client whose lists differ from those it had."""

    def __init__(self, board: BoardPort, tool_list: ToolListNotifier, session: GetSession) -> None:
        self._board = board
        self._tool_list = tool_list
        self._session = session
        self._known: dict[object, _ListedDigests] = {}
        self._stale: set[ListKind] = set()
        self._tasks = BackgroundTasks()
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Listen to the board; call it on the loop that serves."""
        self._unsubscribe = self._board.resources.on_changed(lambda _, kind: self._refresh_soon([kind]))
        self._tool_list.on_any_change = lambda: self._refresh_soon(KEYS)

    def close(self) -> None:
        """Stop watching."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._tasks.cancel()

    def note_list(
        self, caller: Caller, session: str, connection: Connection | None, kind: ListKind, digest: str
    ) -> None:
        """Note what a client was listed; ``connection`` is that of the handshake era."""
        viewer = Caller(agent=caller.agent, principal=caller.principal, sub_app=caller.sub_app)
        key: object = viewer if connection is None else id(connection)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _ListedDigests(caller=viewer, session=session, connection=connection)
            if connection is not None:
                connection.exit_stack.callback(self._known.pop, key, None)
        known.session = session
        known.digests[kind] = digest

    def take_over(self, early: EarlyList, connection: Connection | None) -> None:
        """Note what a client was listed before the SDK was there; it may differ already."""
        assert early.kind is not None
        self.note_list(early.caller, early.key.session, connection, early.kind, early.digest)
        self._refresh_soon([early.kind])

    def _refresh_soon(self, kinds: Iterable[ListKind]) -> None:
        if not self._known:
            return
        idle = not self._stale
        self._stale.update(kinds)
        if idle:
            self._tasks.start(self._refresh_all())

    async def _refresh_all(self) -> None:
        await asyncio.sleep(0)  # events of one moment need one comparison
        kinds = frozenset(self._stale)
        self._stale.clear()
        for known in list(self._known.values()):
            if known.connection is not None or self._tool_list.has_stream(known.caller):
                self._tasks.start(self._refresh(known, kinds))

    async def _refresh(self, known: _ListedDigests, kinds: frozenset[ListKind]) -> None:
        changed: dict[str, None] = {}
        try:
            session = await self._session(known.caller, known.session, modern=known.connection is None)
            for kind in kinds & known.digests.keys():
                now = convert.digest(await self._board.resources.listed(session.info, kind))
                if now != known.digests.get(kind):
                    known.digests[kind] = now
                    changed[CAPABILITY[kind]] = None
        except PegboardError:
            return
        for what in changed:
            await self._notify(known, what)

    async def _notify(self, known: _ListedDigests, what: str) -> None:
        connection = known.connection
        if connection is None:
            await self._tool_list.publish(known.caller, _EVENTS[what])
            return
        try:
            async with asyncio.timeout(PATIENCE):
                if what == "resources":
                    await connection.send_resource_list_changed()
                else:
                    await connection.send_prompt_list_changed()
        except TimeoutError:
            known.digests.clear()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task beside requests, until it is done or the gateway closes."""
        self._tasks.start(work)
