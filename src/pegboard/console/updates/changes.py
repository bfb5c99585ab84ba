"""What has changed, by topic: from this board's events, and from what other processes store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from pegboard.board.views.operators.servers import activity
from pegboard.console.console_board import ConsoleBoard
from pegboard.errors import StoreError

log = logging.getLogger("pegboard.console")

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "loaded": ("sessions", "audit", "bill"),
    "unloaded": ("sessions", "audit", "bill", "approvals"),
    "evicted": ("sessions", "audit", "bill"),
    "loadout_changed": ("sessions", "audit"),
    "turn_ended": ("sessions",),
    "called": ("sessions", "audit", "bill"),
    "denied": ("sessions", "audit", "bill"),
    "permissions_changed": ("switches", "sessions", "audit"),
    "approval_asked": ("approvals", "sessions", "audit"),
    "approval_decided": ("approvals", "sessions", "audit"),
    "approval_used": ("approvals", "sessions", "audit"),
    "catalog_changed": ("servers", "switches"),
    "configuration_changed": ("configuration", "servers", "switches", "sessions"),
    "configuration_refused": ("configuration",),
}
"""What parts of pages an event of the board is about."""
STORED: Final = frozenset({"sessions", "switches", "approvals", "audit", "bill"})
"""What another process may have changed in the store."""
LOOK_EVERY: Final = 0.25
"""How often it is looked at what other processes stored and what servers do, in seconds, while somebody listens."""
GATHER: Final = 0.15
"""For how long changes are gathered before a listener hears of them, in seconds."""


class Listener:
    """Somebody who waits for changes; topics that come close together come at once."""

    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._some = asyncio.Event()
        self.closed = False

    def add(self, topics: Iterable[str]) -> None:
        """Note that these topics have changed."""
        self._topics.update(topics)
        self._some.set()

    def close(self) -> None:
        """End the waiting."""
        self.closed = True
        self._some.set()

    async def wait(self, seconds: float) -> frozenset[str]:
        """Return what has changed since the last time; nothing where that takes longer, or this is closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._some.wait()
        except TimeoutError:
            return frozenset()
        if not self.closed:
            await asyncio.sleep(GATHER)
        found = frozenset(self._topics)
        self._topics.clear()
        self._some.clear()
        return found


class Changes:
    """The changes of one board, heard of while at least one page is open: else nothing is subscribed or read."""

    def __init__(self, board: ConsoleBoard) -> None:
        self._board = board
        self._listeners: set[Listener] = set()
        self._ends: list[Callable[[], None]] = []
        self._looking: asyncio.Task[None] | None = None
        self.closed = False

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Listener]:
        """Listen while the context lasts."""
        listener = Listener()
        if self.closed:
            listener.close()
        if not self._listeners:
            self._start()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._stop()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        for listener in self._listeners:
            listener.close()

    def _start(self) -> None:
        self._ends = [self._board.on(event, partial(self._note, topics)) for event, topics in TOPICS.items()]
        self._looking = asyncio.create_task(self._look(), name="console: changes")

    def _stop(self) -> None:
        for end in self._ends:
            end()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _note(self, topics: tuple[str, ...], _: Mapping[str, Any]) -> None:
        self._tell(topics)

    def _tell(self, topics: Iterable[str]) -> None:
        for listener in self._listeners:
            listener.add(topics)

    async def _look(self) -> None:
        """Note what servers do and what other processes store; what this one stores comes with an event as well."""
        known: object = None
        before = activity(self._board.services)
        while True:
            try:
                now = await self._board.services.store.change_token()
            except StoreError as error:
                log.debug("the store cannot be looked at: %s", error)
                now = None
            if known is not None and now != known:
                self._tell(STORED)
            known = now
            after = activity(self._board.services)
            if after.states != before.states:
                self._tell(("servers",))
            if after.lines != before.lines:
                self._tell(("logs",))
            before = after
            await asyncio.sleep(LOOK_EVERY)
