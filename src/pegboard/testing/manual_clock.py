"""A clock that a test moves."""

from __future__ import annotations


class ManualClock:
    """A callable clock that stands until it is moved: for ``serving(clock=…)``, which ends turns by pauses.

    >>> clock = ManualClock()
    >>> clock.advance(30)
    >>> clock()
    30.0
    """

    def __init__(self, now: float = 0.0) -> None:
        """Set the clock.

        Args:
            now: The first reading, in seconds.
        """
        self._now = now

    def __call__(self) -> float:
        """Return the time.

        Returns:
            Seconds, as ``time.monotonic()`` gives them.
        """
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward.

        Args:
            seconds: By how much; not negative.

        Raises:
            ValueError: The clock would go backward.
        """
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._now += seconds
