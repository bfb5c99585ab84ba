"""The log messages of a server: who takes them, and from which level on. Imports the SDK: import late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from mcp_types import LOG_LEVEL_META_KEY

from pegboard.core.model.tools import JsonObject
from pegboard.ports import LOG_LEVELS, Client, Listener
from pegboard.sources.mcp.wire.upstream_call import Call, Thunk
from pegboard.support.tasks import BackgroundTasks

MESSAGE: Final = "notifications/message"
PASSED_ON: Final = frozenset({MESSAGE, "notifications/elicitation/complete"})
"""The notifications that go to the client of a call, beside progress."""


class LogMessages:
    """The log messages of one server and those who take them.

    ``calls`` are the calls under way. ``supported``: the server logs. ``modern``: its level stands in the
    ``_meta`` of each call; else ``set_level`` tells it the lowest level that anybody wants.
    """

    def __init__(self, calls: set[Call], tasks: BackgroundTasks) -> None:
        self.supported = False
        self.modern = False
        self.set_level: Callable[[str], Awaitable[None]] | None = None
        self._calls = calls
        self._tasks = tasks
        self._listeners: dict[Listener, Callable[[], None]] = {}
        self._level: str | None = None

    def watch(self, call: Call) -> None:
        """Let whoever makes a call hear what the server logs outside of calls too."""
        if not self.supported or call.client is None:
            return
        listener = call.client.listener
        if listener is not None and listener not in self._listeners and listener.open:
            self._prune()
            self._listeners[listener] = listener.watch(self._level_changed)

    def _prune(self) -> None:
        for listener in [listener for listener in self._listeners if not listener.open]:
            self._listeners.pop(listener)()

    def close(self) -> None:
        """Forget who listens: the connection has ended."""
        for end in self._listeners.values():
            end()
        self._listeners.clear()

    def pass_on(self, method: str, params: object, call: Call | None = None) -> bool:
        """Pass a notification on to whom it belongs to; return that it was taken.

        That is the client of its call; with several in flight over stdio each of their clients gets it
        once. Outside of any call it goes to whoever has called over this connection and still listens.
        """
        if not isinstance(params, dict):
            return True
        given = cast("dict[str, Any]", params)
        calls = {call} if call is not None and call in self._calls else self._calls
        notified: set[object] = set()
        for each in list(calls):
            client = each.client
            if client is not None and (client.listener or client) not in notified:
                notified.add(client.listener or client)
                each.pass_on(_notification(client, method, given))
        if not calls:
            self._prune()
            for listener in self._listeners:
                listener.tell(method, given)
        return True

    def meta(self, call: Call) -> dict[str, Any] | None:
        """Return the ``_meta`` of a call with the level that its client wants, in the era that has it there.

        One of the handshake era that has chosen none gets all that a server logs by itself.
        """
        meta, client = call.meta, call.client
        if not self.modern or client is None:
            return meta
        level = client.level or ("debug" if client.listener is not None and self.supported else None)
        return meta if level is None else {**(meta or {}), LOG_LEVEL_META_KEY: level}

    async def agree_on(self, client: Client) -> None:
        """Tell the server before a call what its client wants, where it does not know it yet."""
        if self.supported and not self.modern and client.level is not None and client.level != self._level:
            await self._agree(client.level)

    def _level_changed(self) -> None:
        if self.supported and not self.modern:
            self._tasks.start(self._agree())

    async def _agree(self, *more: str) -> None:
        """Tell the server the lowest level that anybody wants."""
        levels = {*more, *(listener.level for listener in self._listeners if listener.open)}
        levels |= {call.client.level for call in self._calls if call.client is not None}
        wanted = next((level for level in LOG_LEVELS if level in levels), None)
        if wanted is not None and wanted != self._level and self.set_level is not None:
            self._level = wanted
            await self.set_level(wanted)


def _notification(client: Client, method: str, params: JsonObject) -> Thunk:
    async def tell() -> None:
        await client.tell(method, params)

    return tell
