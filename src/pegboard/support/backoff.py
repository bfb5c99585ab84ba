"""Pauses between attempts, and waiting for a condition that nothing announces."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Backoff:
    """A sequence of growing pauses, in seconds.

    Each pause is ``factor`` times the one before, from ``first`` up to ``longest``. With ``jitter`` a
    pause is taken at random from that share around it, so that several who wait do not wake together.

    >>> backoff = Backoff(first=0.5, longest=3.0)
    >>> [backoff.next() for _ in range(4)]
    [0.5, 1.0, 2.0, 3.0]
    """

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0
    _pause: float = field(default=0.0, init=False)

    def next(self) -> float:
        """Return the next pause."""
        self._pause = min(self._pause * self.factor, self.longest) if self._pause else self.first
        if not self.jitter:
            return self._pause
        return self._pause * random.uniform(1 - self.jitter, 1 + self.jitter)  # noqa: S311 - no secret

    async def wait(self) -> None:
        """Sleep for the next pause."""
        await asyncio.sleep(self.next())

    def reset(self) -> None:
        """Begin with the first pause again."""
        self._pause = 0.0


async def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether a condition holds within so many seconds; it is tested every 1 to 20 ms."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    backoff = Backoff(first=0.001, longest=0.02)
    while not condition():
        if loop.time() >= deadline:
            return False
        await backoff.wait()
    return True
