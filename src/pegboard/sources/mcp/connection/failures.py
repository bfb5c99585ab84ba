"""The failures of one server, and when it is tried again."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.sources.mcp.wire.faults import Fault
from pegboard.support.backoff import Backoff

_PATIENCE = 3  # failures in a row before starts are spaced out


class Failures:
    """The failures of a server since it last answered; ``fault`` is why it is not up."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.fault: Fault | None = None
        self._monotonic = monotonic
        self._count = 0
        self._backoff = Backoff(first=1.0, longest=30.0)
        self._retry_at = 0.0

    def add(self) -> None:
        """Count a failure: from the third on the next start has to wait."""
        self._count += 1
        if self._count >= _PATIENCE:
            self._retry_at = self._monotonic() + self._backoff.next()

    def clear(self) -> bool:
        """Note that the server answered: its next end is the first failure again; return whether one was noted."""
        if not self._count and self.fault is None:
            return False
        self._count, self._retry_at, self.fault = 0, 0.0, None
        self._backoff.reset()
        return True

    @property
    def pause(self) -> float:
        """Return how long the next start has to wait, in seconds."""
        return max(self._retry_at - self._monotonic(), 0.0)
