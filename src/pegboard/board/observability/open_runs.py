"""The runs of agents over one session in this process that are open, and the turns that end with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class _OpenRun:
    """A run: what it belongs to, when it began and was heard of last, and what knows whether it is over."""

    conversation: str
    began: int
    newest: int
    is_over: Callable[[], bool] | None


class OpenRuns:
    """The open runs of a session by name.

    A turn ends when none is open, so that what lasts a turn lasts every run that had a part in it (S6). One that ends
    while others are open adds to the turns that end with the last.
    """

    def __init__(self) -> None:
        self._open: dict[str, _OpenRun] = {}
        self._turns = 0
        self._moment = 0

    def step(self, name: str, *, conversation: str = "", is_over: Callable[[], bool] | None = None) -> int:
        """Note that a run makes a step, and begins with the first; return how many turns end before it.

        Args:
            name: the run's own.
            conversation: a run of the same one that nothing else knows about is over when this one begins.
            is_over: knows whether this run was given up; it is asked when another one begins or ends.
        """
        self._moment += 1
        known = self._open.get(name)
        if known is not None:
            known.newest = self._moment
            return 0
        self._drop(lambda one: one.conversation == conversation)
        turns = self._turns_over()
        self._open[name] = _OpenRun(conversation=conversation, began=self._moment, newest=self._moment, is_over=is_over)
        return turns

    def end(self, name: str) -> int:
        """Note that a run is over; return how many turns end now. One that is over already changes nothing."""
        ended = self._open.pop(name, None)
        if ended is None:
            return 0
        self._turns += 1
        self._drop(lambda one: one.newest < ended.began)
        return self._turns_over()

    def pause(self, name: str) -> None:
        """Note that a run waits for a person: its turn is not over, and others do not wait for it."""
        self._open.pop(name, None)

    def _drop(self, given_up: Callable[[_OpenRun], bool]) -> None:
        """Take as over what its own check says; of runs without one, what was given up."""
        over = [name for name, one in self._open.items() if (one.is_over() if one.is_over else given_up(one))]
        for name in over:
            del self._open[name]
        self._turns += len(over)

    def _turns_over(self) -> int:
        if self._open:
            return 0
        turns, self._turns = self._turns, 0
        return turns
