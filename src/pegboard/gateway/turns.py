"""When a turn ends in a gateway, which sees calls and never the user's message (G3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.board import Session
    from pegboard.ports import SessionKey

KEPT = 10_000
"""Of how many sessions the last call is remembered; an older one has its turn ended by labels only."""


@dataclass(slots=True)
class _Activity:
    in_flight: int = 0
    last: float | None = None
    label: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Turns:
    """End turns: by a new label, on request, or after a pause without a call in flight.

    The pause counts only for clients that give no labels, and is noticed at their next request.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.idle = asyncio.Event()
        self.idle.set()
        self._in_flight = 0
        self._seen: OrderedDict[SessionKey, _Activity] = OrderedDict()

    async def begin(self, session: Session, label: str | None) -> None:
        """End the turn before a request is served, where it is over."""
        activity = self._activity(session.key)
        if label is None:
            if self._paused(activity, session.agent.turn_gap):
                activity.last = None
                await session.end_turn()
            return
        if label == activity.label:
            return
        async with activity.lock:
            if label != activity.label:
                await session.mark_turn(label)
                activity.label = label

    def _paused(self, activity: _Activity, gap: float) -> bool:
        if activity.label is not None or activity.in_flight or activity.last is None:
            return False
        return self._clock() - activity.last > gap

    @contextmanager
    def call(self, session: Session) -> Generator[None]:
        """Count a call as in flight."""
        activity = self._activity(session.key)
        activity.in_flight += 1
        self._in_flight += 1
        self.idle.clear()
        try:
            yield
        finally:
            activity.in_flight -= 1
            self._in_flight -= 1
            if not self._in_flight:
                self.idle.set()
            activity.last = self._clock()

    def ended(self, key: SessionKey) -> None:
        """Note that the turn was ended on request."""
        self._activity(key).last = None

    def _activity(self, key: SessionKey) -> _Activity:
        activity = self._seen.get(key)
        if activity is None:
            activity = self._seen[key] = _Activity()
        self._seen.move_to_end(key)
        while len(self._seen) > KEPT:
            oldest = next(iter(self._seen.values()))
            if oldest.in_flight:
                break
            self._seen.popitem(last=False)
        return activity
