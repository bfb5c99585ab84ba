"""The time limits of the requests over one connection, with one timer for all of them."""

from __future__ import annotations

import asyncio
from math import inf

from pegboard.support.tasks import call_later_detached


class TimeLimits:
    """The time limits that run over one connection, with one timer; ``loop`` is the one in which it is made."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._ends: dict[TimeLimit, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = inf
        """When the timer looks."""

    def add(self, limit: TimeLimit, seconds: float) -> None:
        """Let a limit run out in so many seconds."""
        ends = self._ends[limit] = self.loop.time() + seconds
        if ends < self._next:
            self._set_timer(ends)

    def remove(self, limit: TimeLimit) -> float | None:
        """Forget a limit; return when it would have run out by the loop's clock, or None where it does not run."""
        return self._ends.pop(limit, None)

    def _set_timer(self, ends: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._next = call_later_detached(ends - self.loop.time(), self._check_limits), ends

    def _check_limits(self) -> None:
        self._timer, self._next = None, inf
        now = self.loop.time()
        for limit in [limit for limit, ends in self._ends.items() if ends <= now]:
            del self._ends[limit]
            limit.run_out_of_time()
        if self._ends:
            self._set_timer(min(self._ends.values()))


class TimeLimit:
    """A time limit of the current task: a context manager that turns its end into ``TimeoutError``.

    As ``asyncio.timeout``, for less: a timer of its own for each request takes longer than all else here.
    """

    __slots__ = ("_limits", "_over", "_requests", "_task", "ran_out")

    def __init__(self, limits: TimeLimits, seconds: float) -> None:
        task = asyncio.current_task(limits.loop)
        assert task is not None
        self.ran_out = self._over = False
        self._task = task
        self._requests = task.cancelling()
        self._limits = limits
        limits.add(self, seconds)

    def resume(self, seconds: float) -> None:
        """Let the clock run again, unless what it limits is over."""
        if not self._over:
            self._limits.add(self, seconds)

    def pause(self) -> float | None:
        """Stop the clock; return how many seconds are left, or None where it does not run."""
        ends = self._limits.remove(self)
        return None if ends is None else max(ends - self._limits.loop.time(), 0.0)

    def run_out_of_time(self) -> None:
        """End what the task does."""
        self.ran_out = True
        self._task.cancel()

    def __enter__(self) -> None:
        """Do nothing: the clock runs since this was made."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop the clock; raises ``TimeoutError`` where the time ran out and nothing else ended the task."""
        self._over = True
        self._limits.remove(self)
        if self.ran_out and self._task.uncancel() <= self._requests and kind is asyncio.CancelledError:
            raise TimeoutError
