"""The event stream of open pages: topics only; what has changed is asked for like any page."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from pegboard.console.updates.changes import Changes

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

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
