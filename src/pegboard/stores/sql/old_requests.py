"""Old records are found by going over all of them now and then, so that no write keeps an index for it (X4, S2)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from pegboard.stores.sql.database import one_of

if TYPE_CHECKING:
    from pegboard.stores.sql.database import Transaction

EVERY: Final = 3600.0
"""After how many seconds all records are looked at again, where any was written."""
LEAST_WRITTEN: Final = 400
"""How many records are written at least before that is done earlier: a quarter of those that there were."""
LOOKED_AT_ONCE: Final = 2_000
REMOVED_AT_ONCE: Final = 256
"""Both take a millisecond or two."""

_NEXT: Final = "SELECT id, kept_until FROM main.request WHERE id > ? ORDER BY id LIMIT ?"


class _Seen(NamedTuple):
    """Up to which record it was looked, and how many records and decisions that were."""

    last: int = 0
    records: int = 0
    decisions: int = 0


class OldRequests:
    """Removes calls whose days are over, and the oldest decisions where there are too many.

    It goes from the oldest record to the newest, some of them in each transaction. How many decisions are too many is
    known once all are counted: those are removed when it goes over the records again, which is at once.
    """

    def __init__(self) -> None:
        self.decisions_kept = 100_000
        self.is_due = True
        """Whether all are to be looked at, although that was done a short time ago."""
        self._seen: _Seen | None = None
        self._surplus = 0
        """How many of the oldest decisions are too many."""
        self._written = 0
        self._most_written = LEAST_WRITTEN
        self._next = 0.0

    def written(self, records: int) -> None:
        """Note that so many records were written."""
        self._written += records
        if self._written >= self._most_written or time.monotonic() >= self._next:
            self.is_due = True

    async def remove_some(self, transaction: Transaction) -> bool:
        """Remove what is old among the next records; return whether there are more of them."""
        if self._seen is None and not self.is_due:
            return False
        if self._seen is None:
            self._written, self._next, self.is_due = 0, time.monotonic() + EVERY, False
        seen, now, old = self._seen or _Seen(), time.time(), list[int]()
        rows = await transaction.rows(_NEXT, seen.last, LOOKED_AT_ONCE)
        for number, until in rows:
            is_decision = until is None
            if (seen.decisions < self._surplus) if is_decision else until <= now:
                old.append(number)
            seen = _Seen(number, seen.records + 1, seen.decisions + is_decision)
            if len(old) == REMOVED_AT_ONCE:
                break
        if old:
            condition, values = one_of("id", old)
            await transaction.run(f"DELETE FROM main.request WHERE {condition}", *values)  # noqa: S608 - a constant
        if len(rows) == LOOKED_AT_ONCE or len(old) == REMOVED_AT_ONCE:
            self._seen = seen
            return True
        self._seen, self._most_written = None, max(LEAST_WRITTEN, seen.records // 4)
        self._surplus = max(0, seen.decisions - self._surplus - self.decisions_kept)
        self.is_due = self.is_due or self._surplus > 0
        return self.is_due
