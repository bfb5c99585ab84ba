"""What operators are in the middle of, kept in memory: by id, for a time, and for each of them only so much."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pegboard.support.tasks import call_later_detached

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptItem(Generic[T]):
    by: str
    value: T = field(repr=False)
    until: float


class KeptForOperators(Generic[T]):
    """Values under ids that cannot be guessed, each for the operator alone who keeps it.

    What is over time goes by itself: there may be secrets in it. Of who has too much the oldest gives way; over all
    operators it is that of who has the most, so that no one drives out what is of others.

    Args:
        seconds: for how long each is kept.
        most: how many are kept over all operators.
        most_of_one: how many of one operator.
        now: the time, in seconds.
    """

    def __init__(
        self, *, seconds: float, most: int, most_of_one: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._most = most
        self._most_of_one = most_of_one
        self._now = now
        self._kept: OrderedDict[str, _KeptItem[T]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Return how many are kept."""
        self._drop_expired()
        return len(self._kept)

    def keep(self, by: str, value: T, *, identity: str = "") -> str:
        """Keep a value of an operator, and return its id: a new one where none is given."""
        identity = identity or secrets.token_urlsafe(16)
        self._kept.pop(identity, None)
        self._kept[identity] = _KeptItem(by=by, value=value, until=self._now() + self._seconds)
        self._drop_expired()
        counts = Counter(kept.by for kept in self._kept.values())
        if counts[by] > self._most_of_one:
            self._without_oldest(by)
        elif len(self._kept) > self._most:
            self._without_oldest(max(counts, key=counts.__getitem__))
        return identity

    def find_kept(self, by: str, identity: str) -> T | None:
        """Return what an operator keeps under an id, None where there is nothing of theirs any longer."""
        self._drop_expired()
        kept = self._kept.get(identity)
        return kept.value if kept is not None and kept.by == by else None

    def kept_by(self, by: str) -> Iterator[T]:
        """Yield what an operator keeps, the oldest first."""
        self._drop_expired()
        yield from [kept.value for kept in self._kept.values() if kept.by == by]

    def change(self, identity: str, value: T) -> None:
        """Put another value in the place of one for the rest of its time; nothing where it is gone meanwhile."""
        if (kept := self._kept.get(identity)) is not None:
            self._kept[identity] = replace(kept, value=value)

    def forget(self, identity: str) -> None:
        """Keep a value no more, if it still is."""
        self._kept.pop(identity, None)

    def _without_oldest(self, by: str) -> None:
        self.forget(next(identity for identity, kept in self._kept.items() if kept.by == by))

    def _drop_expired(self) -> None:
        """Let go what is over time, and do so again when the next one is."""
        now = self._now()
        while self._kept and (oldest := next(iter(self._kept.items())))[1].until <= now:
            self.forget(oldest[0])
        if self._timer is None and self._kept:
            left = next(iter(self._kept.values())).until - now
            self._timer = call_later_detached(left, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._drop_expired()
