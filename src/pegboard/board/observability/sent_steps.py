"""The lists that models were sent lately, as they were sent, for operators who look back (F1)."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.core.model.tools import Tool
from pegboard.core.surface.surfaces import Surface
from pegboard.ports import SessionKey

MOST: Final = 20
"""How many lists of a session are kept, the newest."""
SESSIONS: Final = 200
"""Of how many sessions lists are kept; the one without another list for longest goes first."""


@dataclass(frozen=True, slots=True)
class SentStep:
    """A list of tools and the texts beside it, which differs from the one before it.

    Attributes:
        number: its place among those of its session, from 1.
        at: when a request was first sent it, in seconds since the epoch.
        tools: in the order in which they were sent.
        texts: in the order in which they were sent.
        surface: the newest surface then, which says where a text stands that it has; or None.
    """

    number: int
    at: float
    tools: tuple[Tool, ...]
    texts: tuple[str, ...]
    surface: Surface | None


class SentSteps:
    """The newest lists of the newest sessions of this process."""

    def __init__(self) -> None:
        self._of: OrderedDict[SessionKey, deque[SentStep]] = OrderedDict()

    def note(
        self, key: SessionKey, tools: tuple[Tool, ...], texts: tuple[str, ...], surface: Surface | None
    ) -> SentStep | None:
        """Keep a list, if it is another than the newest of its session; return what is kept of it anew."""
        steps = self._of.get(key)
        if steps is None:
            steps = self._of[key] = deque(maxlen=MOST)
            if len(self._of) > SESSIONS:
                self._of.popitem(last=False)
        newest = steps[-1] if steps else None
        if newest is not None and newest.tools == tools and newest.texts == texts:
            return None
        number = 1 if newest is None else newest.number + 1
        step = SentStep(number, time.time(), tools, texts, surface)
        steps.append(step)
        self._of.move_to_end(key)
        return step

    def withdraw(self, key: SessionKey, step: SentStep) -> None:
        """Keep a list no more that was not sent after all, where it is the newest."""
        steps = self._of.get(key)
        if steps and steps[-1] is step:
            steps.pop()

    def forget(self, key: SessionKey) -> None:
        """Keep nothing of a session."""
        self._of.pop(key, None)

    def of(self, key: SessionKey) -> Sequence[SentStep]:
        """Return what is kept of a session, the oldest first."""
        return tuple(self._of.get(key, ()))
