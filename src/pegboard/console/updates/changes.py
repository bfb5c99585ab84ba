"""What has changed, by topic, on this board and in other processes; and the stream of it that open pages read."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import StreamingResponse

from pegboard.console.console_board import ConsoleBoard
from pegboard.errors import StoreError
from pegboard.operators.servers import activity
from pegboard.support.tasks import call_later_detached, start_detached

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.ports import ChangeToken, ServerActivity


log = logging.getLogger("pegboard.console")

TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "loaded": ("sessions", "audit", "bill"),
    "unloaded": ("sessions", "audit", "bill", "approvals"),
    "evicted": ("sessions", "audit", "bill"),
    "loadout_changed": ("sessions", "audit"),
    "turn_ended": ("sessions",),
    "called": ("calls", "audit", "bill"),
    "denied": ("calls", "audit", "bill"),
    "permissions_changed": ("switches", "sessions", "audit", "configuration"),
    "pins_changed": ("pins", "servers", "audit", "configuration"),
    "approval_asked": ("approvals", "sessions", "audit"),
    "approval_decided": ("approvals", "sessions", "audit"),
    "approval_used": ("approvals", "sessions", "audit"),
    "catalog_changed": ("servers", "switches", "configuration", "pins"),
    "configuration_changed": ("configuration", "servers", "switches", "sessions"),
    "configuration_refused": ("configuration",),
    "store_lost": ("configuration",),
    "store_back": ("sessions", "calls", "switches", "approvals", "audit", "bill", "pins", "configuration"),
}
"""What parts of pages an event of the board is about."""
OFTEN: Final = frozenset({"called", "denied"})
"""Events that come as often as agents call tools."""
COUNTED: Final = ("sessions", "servers", "switches", "configuration")
"""What shows tokens, or what is wrong, and went without it while that was being counted or looked for."""
STORED: Final = frozenset({"sessions", "calls", "switches", "approvals", "audit", "bill", "pins"})
"""What another process may have changed in the store."""
LOOK_EVERY: Final = 0.2
"""How often it is looked at what other processes stored and what servers do, in seconds, while someone listens."""
GATHER: Final = 0.1
"""For how long changes are gathered before a listener hears of them, in seconds."""
REST: Final = 0.2
"""For how long calls are gathered for a listener after it heard of something: so many seconds for each listener that
there is, up to twice as many, so that what all pages ask for together takes the same part of the time."""
KEPT_FOR: Final = 10.0
"""For how long after a page was rendered changes are kept for its stream, in seconds."""


class ChangeListener:
    """Someone who waits for changes; topics that come close together come at once."""

    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._some = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._heard = -math.inf
        self.closed = False

    def add(self, topics: Iterable[str], *, rest: float = 0.0) -> None:
        """Note that these topics have changed; they are heard of ``rest`` seconds after the last ones."""
        if rest and self._timer is not None and self._topics.issuperset(topics):
            return  # calls come by the thousand in a second
        self._topics.update(topics)
        loop = asyncio.get_running_loop()
        due = max(loop.time() + GATHER, self._heard + rest)
        if self._timer is None or due < self._timer.when():
            self._stop()
            self._timer = loop.call_at(due, self._some.set)

    def close(self) -> None:
        """End the waiting."""
        self.closed = True
        self._stop()
        self._some.set()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def wait(self, seconds: float) -> frozenset[str]:
        """Return what has changed since the last time; nothing where that takes longer, or this is closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._some.wait()
        except TimeoutError:
            return frozenset()
        found = frozenset(self._topics)
        self._heard = asyncio.get_running_loop().time()
        self._stop()
        self._topics.clear()
        self._some.clear()
        return found


class Changes:
    """The changes of one board, numbered; nothing is subscribed or read unless a page is open or was just rendered."""

    def __init__(self, board: ConsoleBoard) -> None:
        self._board = board
        self._listeners: set[ChangeListener] = set()
        self._newest = 0
        self._first = 0  # what came before this one is not known
        self._last: dict[str, int] = {}  # the newest change of each topic
        self._rendered: asyncio.TimerHandle | None = None  # ends the keeping for pages that were just rendered
        self._ends: list[Callable[[], None]] = []
        self._looking: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self._token: ChangeToken | None = None
        self._activity: ServerActivity | None = None
        self._surface_at = 0.0
        self.closed = False

    async def keep_from_now(self) -> int:
        """Return the number of the newest change, for a page that is rendered now; later ones are kept for a while."""
        if not self.closed:
            if self._rendered is not None:
                self._rendered.cancel()
            self._rendered = call_later_detached(KEPT_FOR, self._forget)
            await self._start()
        return self._newest

    def _forget(self) -> None:
        self._rendered = None
        self._stop_unheard()

    @asynccontextmanager
    async def listening(self, after: int | None = None) -> AsyncGenerator[tuple[ChangeListener, bool]]:
        """Listen while the context lasts, and say whether all is heard that came after a change; else from now on."""
        listener, known = ChangeListener(), False
        self._listeners.add(listener)  # before anything is awaited: no one else's end stops the looking any longer
        try:
            await self._start()
            if after is not None and self._first <= after <= self._newest:
                known = True
                if topics := [topic for topic, number in self._last.items() if number > after]:
                    listener.add(topics)
            if self.closed:
                listener.close()
            yield listener, known
        finally:
            self._listeners.discard(listener)
            self._stop_unheard()

    def close(self) -> None:
        """End every stream."""
        self.closed = True
        if self._rendered is not None:
            self._rendered.cancel()
            self._forget()
        for listener in self._listeners:
            listener.close()

    async def _start(self) -> None:
        """Subscribe, and return once it is known what later looks are compared with."""
        if self._looking is not None:
            await self._looked.wait()
            return
        self._newest += 1
        self._first = self._newest
        self._last.clear()
        self._ends = [self._board.on(event, partial(self._note_event, event)) for event in TOPICS]
        self._looked = looked = asyncio.Event()
        self._token = self._activity = None
        self._surface_at = self._board.services.live.newest or -1.0
        self._looking = start_detached(self._look_on(looked), name="console: changes")
        await looked.wait()

    def _stop_unheard(self) -> None:
        if self._listeners or self._rendered is not None or self._looking is None:
            return
        for end in self._ends:
            end()
        self._looking.cancel()
        self._looking = None

    def _note_event(self, event: str, _: Mapping[str, Any]) -> None:
        self.tell(TOPICS[event], often=event in OFTEN)

    def tell(self, topics: Iterable[str], *, often: bool = False) -> None:
        """Let every listener know that these topics have changed; of what changes ``often`` in turns."""
        self._newest += 1
        self._last.update(dict.fromkeys(topics, self._newest))
        for place, listener in enumerate(self._listeners, 1):
            # Those that hear of a call at one moment hear of the next ones at different moments.
            listener.add(topics, rest=REST * (len(self._listeners) + place) if often else 0.0)

    async def _look_on(self, looked: asyncio.Event) -> None:
        try:
            while True:
                await self._look_for_changes()
                looked.set()
                await self._wait_for_interest()
        finally:
            looked.set()

    async def _wait_for_interest(self) -> None:
        """Wait until it may be worth to look again."""
        if self._token is not None:
            with suppress(StoreError):
                await self._board.services.store.changed(self._token, LOOK_EVERY)
                return
        await asyncio.sleep(LOOK_EVERY)

    async def _look_for_changes(self) -> None:
        """Note what servers do and what other processes store; what this one stores comes with an event as well."""
        services, token, known = self._board.services, self._token, self._activity
        try:
            self._token = await services.store.change_token()
        except StoreError as error:
            log.debug("the store cannot be read: %s", error)
        if token is not None and self._token is not None and self._token != token:
            # Other processes call as often as this one; a switch is heard of at once.
            self.tell(STORED, often=self._token.permissions == token.permissions)
        at, self._surface_at = self._surface_at, services.live.newest
        if at and self._surface_at != at:
            self.tell(("sessions",), often=True)
        self._activity = activity(services)
        if known is not None and known.states != self._activity.states:
            self.tell(("servers",))
        if known is not None and known.lines != self._activity.lines:
            self.tell(("logs",))


QUIET: Final = 15.0
"""After how many quiet seconds a comment keeps the connection alive."""
MOST: Final = 200
"""How many streams are open at once."""
MOST_OF_ONE: Final = 50
"""How many of them are one operator's."""


class Streams:
    """The open streams of one console; one that goes on from where a page was rendered has no ``started``."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._open: Counter[str] = Counter()
        self._started = secrets.token_hex(4)

    def full(self, operator: str) -> bool:
        """Return whether no further stream is opened for an operator."""
        return self._open[operator] >= MOST_OF_ONE or self._open.total() >= MOST or self._changes.closed

    async def after_now(self) -> str:
        """Return the query of a stream that goes on from here, for a page that is being rendered."""
        return f"?after={self._started}-{await self._changes.keep_from_now()}"

    def response(self, operator: str, still: Callable[[], bool], after: str = "") -> StreamingResponse:
        """Return the stream of an operator; it ends where ``still`` says that they are one no more."""
        started, _, number = after.partition("-")
        known = started == self._started and number.isdecimal() and len(number) < 20
        return _CountedStream(self._lines(still, int(number) if known else None), partial(self._count, operator))

    def _count(self, operator: str, one: int) -> None:
        self._open[operator] += one

    async def _lines(self, still: Callable[[], bool], after: int | None) -> AsyncGenerator[str]:
        async with self._changes.listening(after) as (listener, goes_on):
            yield "retry: 1000\n\n" if goes_on else f"retry: 1000\nevent: started\ndata: {self._started}\n\n"
            while not listener.closed:
                topics = await listener.wait(QUIET)
                if not still():
                    yield "event: signed_out\ndata: \n\n"
                    return
                yield f"event: changed\ndata: {json.dumps(sorted(topics))}\n\n" if topics else ": quiet\n\n"


class _CountedStream(StreamingResponse):
    """A stream that counts from the moment at which it is sent: many may be asked for at once."""

    def __init__(self, lines: AsyncGenerator[str], count: Callable[[int], None]) -> None:
        super().__init__(lines, media_type="text/event-stream")
        self._lines = lines
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._count(1)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._count(-1)
            await self._lines.aclose()
