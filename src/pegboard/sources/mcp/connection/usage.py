"""The use of a connection, and its end when no one uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pegboard.support.tasks import call_later_detached


class ConnectionUsage:
    """The requests under way over a connection, and the timer that stops it once there have been none for a while.

    ``in_flight`` counts the requests. ``stop`` is called when no one has used it for as long as
    :meth:`stop_after` says.
    """

    def __init__(self, monotonic: Callable[[], float], stop: Callable[[], None]) -> None:
        self.in_flight = 0
        self._pins = 0
        self._monotonic = monotonic
        self._used_at = monotonic()
        self._stop = stop
        self._after: float | None = None
        self._up = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Count a request under way."""
        self.in_flight += 1

    def end(self) -> None:
        """Note the end of a request, which counts as use."""
        self.in_flight -= 1
        self._used_at = self._monotonic()

    @contextmanager
    def keep_pinned(self) -> Generator[None]:
        """Let the connection stay up although no one makes requests."""
        self._pins += 1
        try:
            yield
        finally:
            self._pins -= 1
            self._used_at = self._monotonic()

    def stop_after(self, seconds: float | None) -> None:
        """Stop the connection whenever it has not been used for so long; None lets it stay."""
        if self._after != seconds:
            self._after = seconds
            self._set_timer()

    def note_up(self, up: bool) -> None:
        """Note whether there is something to stop; its start counts as use."""
        self._up = up
        self._used_at = self._monotonic()
        self._set_timer()

    def _set_timer(self) -> None:
        """Look again when the time may be over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._up and self._after is not None:
            rest = max(self._after - self._unused_for(), 0.01)
            self._timer = call_later_detached(rest, self._check_unused)

    def _check_unused(self) -> None:
        if self._after is not None and self._unused_for() >= self._after:
            self._stop()
        else:
            self._set_timer()

    def _unused_for(self) -> float:
        return 0.0 if self.in_flight or self._pins else self._monotonic() - self._used_at
