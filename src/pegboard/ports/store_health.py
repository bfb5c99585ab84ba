"""Whether a store can be reached that can be lost: its server, or the way to it, may be gone for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, runtime_checkable


class PendingCount(NamedTuple):
    """How many records and counts are not written yet, and how many were dropped since some were: too many waited."""

    waiting: int = 0
    dropped: int = 0


class StoreHealth(NamedTuple):
    """Whether a store can be reached; times are seconds since the epoch.

    ``lost_at`` is since when it cannot be, None while it can; ``until`` is until when calls go on without it, and
    ``why`` what is the matter. ``waiting`` records are written when it is back, ``dropped`` are not: too many waited.
    """

    lost_at: float | None = None
    until: float | None = None
    why: str = ""
    waiting: int = 0
    dropped: int = 0

    @property
    def reachable(self) -> bool:
        """Return whether it can be reached."""
        return self.lost_at is None


REACHABLE: Final = StoreHealth()
"""That of a store which can be reached, or cannot be lost."""


@runtime_checkable
class LosableStore(Protocol):
    """A store that can be lost, and comes back by itself."""

    @property
    def health(self) -> StoreHealth:
        """Return whether it can be reached now; nothing is waited for."""
        ...

    def on_health(self, call: Callable[[StoreHealth], None]) -> None:
        """Have a function called whenever the store is lost, and whenever it is back.

        Args:
            call: Takes what it is from then on.
        """
        ...
