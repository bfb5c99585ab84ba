"""The records of calls and decisions that are not written yet, and how they are written (X4, S2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import MOST_UNWRITTEN, AuditRecord, CallDetails, CallNumbers
from pegboard.stores.sql.database import insert, key_of
from pegboard.stores.sql.old_requests import OldRequests

if TYPE_CHECKING:
    from pegboard.stores.sql.cleaning import Cleaning
    from pegboard.stores.sql.database import Transaction

MOST_PENDING: Final = 100_000
"""How many are pending at most while they cannot be written; the oldest are dropped."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_MICROSECOND: Final = timedelta(microseconds=1)
_NO_DETAILS: Final = CallDetails()
_COLUMNS: Final = (
    "of_session", *AuditRecord._fields, *CallNumbers._fields, "kept_until", "details_until", "size", "details",
)  # fmt: skip
_INSERT: Final = insert("request", _COLUMNS)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400
PendingRecord = tuple[AuditRecord, CallDetails, bool]
"""A record, what is kept beside it, and whether it is a call, which goes with its days."""


class PendingRecords:
    """The records that are not written yet."""

    def __init__(self, cleaning: Cleaning) -> None:
        self._cleaning = cleaning
        self.old: Final = OldRequests()
        self.rows: list[PendingRecord] = []
        self._pending_size = 0

    @staticmethod
    def of(decisions: Sequence[AuditRecord]) -> list[PendingRecord]:
        """Return decisions as they are written, without details."""
        return [(entry, _NO_DETAILS, False) for entry in decisions]

    def add(self, entry: AuditRecord, details: CallDetails | None, call: bool) -> None:
        """Take a record; of one whose details are too much to keep in memory, the numbers alone are kept."""
        if details is not None and details.text:
            if self._pending_size + len(details.text) > MOST_UNWRITTEN:
                details = details._replace(text="")
            self._pending_size += len(details.text)
        self.rows.append((entry, details or _NO_DETAILS, call))

    def take(self, most: int) -> list[PendingRecord]:
        """Return the oldest, which are pending no longer."""
        taken, self.rows = self.rows[:most], self.rows[most:]
        if self._pending_size:
            self._pending_size -= sum(len(details.text) for _, details, _ in taken)
        return taken

    def drop_surplus(self) -> int:
        """Drop the oldest where there are too many; return how many."""
        return len(self.take(max(0, len(self.rows) - MOST_PENDING)))

    def written(self, taken: Sequence[PendingRecord]) -> None:
        """Remove some old records where it is time to."""
        self.old.written(len(taken))
        self._cleaning.schedule(len(taken))

    async def put(self, transaction: Transaction, taken: Sequence[PendingRecord]) -> None:
        """Write records in their order."""
        await transaction.in_order()
        await transaction.many(_INSERT, [request_row(*one) for one in taken])


@lru_cache(maxsize=1024)
def session_number(principal: str, agent: str, session: str) -> int:
    """Return a number of a session that an index finds quickly; another session may have the same."""
    return int.from_bytes(bytes.fromhex(key_of(principal, agent, session))[:4], signed=True)


def microseconds(at: datetime) -> int:
    """Return a moment in microseconds since the epoch."""
    return (at - EPOCH) // _MICROSECOND


def request_row(record: AuditRecord, details: CallDetails, call: bool) -> tuple[Any, ...]:
    """Return the values of a row, in the order of its columns."""
    moment, kind, principal, agent, session, turn, subject, decision, reason, duration, *rest = record
    (queued, waited, upstream, sent, received), text, days = details
    at = microseconds(moment)
    until = at // _SECOND + days * _DAY
    times = [None if one is None else round(one * 1000) for one in (duration, queued, waited, upstream)]  # microseconds
    return (
        session_number(principal, agent, session), at, kind, principal, agent, session, turn, subject, decision, reason,
        times[0], *rest, *times[1:], sent, received, until if call else None, until if text else None, len(text), text,
    )  # fmt: skip
