"""The end of a connection that nobody uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class IdleTimer:
    """A timer that stops a connection once it has not been used for ``seconds``; None lets it stay.

    ``unused_for`` returns for how long nobody has used it, ``stop`` stops it.
    """

    def __init__(self, unused_for: Callable[[], float], stop: Callable[[], None]) -> None:
        self.seconds: float | None = None
        self._unused_for = unused_for
        self._stop = stop
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look again when the time may be over; call it when the connection is up, or ``seconds`` has changed."""
        self.cancel()
        if self.seconds is not None:
            rest = max(self.seconds - self._unused_for(), 0.01)
            self._timer = asyncio.get_running_loop().call_later(rest, self._look)

    def cancel(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self.seconds is not None and self._unused_for() >= self.seconds:
            self._stop()
        else:
            self.start()
