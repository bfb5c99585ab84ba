"""The records of calls and decisions that are not written yet, and how they are written (X4, S2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.ports import MOST_UNWRITTEN, AuditRecord, CallDetails
from pegboard.stores.sql.old_requests import OldRequests
from pegboard.stores.sql.request_rows import (
    ADD,
    ADD_IF_KNOWN,
    ADD_NAMES,
    ADD_SESSION,
    names_row,
    request_row,
    session_row,
)

if TYPE_CHECKING:
    from pegboard.stores.sql.cleaning import Cleaning
    from pegboard.stores.sql.database import Database, Transaction

MOST_PENDING: Final = 100_000
"""How many are pending at most while they cannot be written; the oldest are dropped."""

_FEW: Final = 4
"""Of how many records it is tried first whether their names are stored, where no message has to be sent for that."""
_NO_DETAILS: Final = CallDetails()
PendingRecord = tuple[AuditRecord, CallDetails, bool]
"""A record, what is kept beside it, and whether it is a call, which goes with its days."""


class PendingRecords:
    """The records that are not written yet."""

    def __init__(self, database: Database, cleaning: Cleaning) -> None:
        self._tries_few: Final = not database.answers_get_lost
        self._cleaning: Final = cleaning
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
        decisions = len(taken) - sum([call for _, _, call in taken])
        self.old.written(decisions, sum([len(details.text) for _, details, _ in taken]))
        self._cleaning.schedule(len(taken))

    async def put(self, transaction: Transaction, taken: Sequence[PendingRecord]) -> None:
        """Write records in their order."""
        await transaction.in_order()
        rows, done = [request_row(*one) for one in taken], 0
        if self._tries_few and len(rows) <= _FEW:
            while done < len(rows) and await transaction.changed(ADD_IF_KNOWN, *rows[done]):
                done += 1
        if done < len(rows):
            records = [record for record, _, _ in taken[done:]]
            await transaction.many(ADD_SESSION, dict.fromkeys(map(session_row, records)))
            await transaction.many(ADD_NAMES, dict.fromkeys(map(names_row, records)))
            await transaction.many(ADD, rows[done:])
