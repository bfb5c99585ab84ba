"""Log levels of clients, and log messages to those of the handshake era outside of calls (G7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pegboard.core.model.tools import JsonObject
from pegboard.ports import LOG_LEVELS

if TYPE_CHECKING:
    from mcp.server.connection import Connection

PATIENCE: Final = 5.0
"""How long a client may take to accept a notification, in seconds."""
MOST: Final = 1000
"""How many notifications may wait for a client that does not accept them."""
_STATE: Final = "pegboard/log_forwarder"


def requested_level(method: str, params: JsonObject, level: str | None, *, default: bool) -> bool:
    """Return whether a notification is to be passed on; ``default`` counts where no level was chosen.

    >>> requested_level("notifications/message", {"level": "info"}, "warning", default=True)
    False
    """
    if method != "notifications/message":
        return True
    if level is None:
        return default
    given = params.get("level")
    return given not in LOG_LEVELS or LOG_LEVELS.index(given) >= LOG_LEVELS.index(level)


class LogForwarder:
    """The way of upstreams' log messages outside of calls to a connection of the handshake era."""

    def __init__(self, connection: Connection) -> None:
        self.level: str | None = None
        self.open = True
        self._connection = connection
        self._watchers: list[Callable[[], None]] = []
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def choose(self, level: str) -> None:
        """Set the lowest level that the client receives from now on."""
        self.level = level
        for changed in tuple(self._watchers):
            changed()

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the level changes; returns what ends that."""
        self._watchers.append(changed)

        def end() -> None:
            if changed in self._watchers:
                self._watchers.remove(changed)

        return end

    def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, after those before; a client that accepts none loses the rest."""
        if not self.open or self._waiting >= MOST or not requested_level(method, params, self.level, default=True):
            return
        self._waiting += 1
        task = asyncio.ensure_future(self._send(method, params))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting -= 1

    async def _send(self, method: str, params: JsonObject) -> None:
        try:
            async with self._turn, asyncio.timeout(PATIENCE):
                await self._connection.notify(method, params)
        except TimeoutError:
            pass

    def close(self) -> None:
        """Stop: the connection is closed."""
        self.open = False
        self._watchers.clear()
        for task in self._tasks:
            task.cancel()


def forwarder_of(connection: Connection) -> LogForwarder:
    """Return what passes notifications on to a connection; the same as long as it is open."""
    known = connection.state.get(_STATE)
    if known is None:
        known = connection.state[_STATE] = LogForwarder(connection)
        connection.exit_stack.callback(known.close)
    return known
