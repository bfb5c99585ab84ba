"""The records of calls and decisions that are not written yet, and how they are written (X4, S2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import MOST_DETAILS, MOST_UNWRITTEN, AuditRecord, CallDetails, CallNumbers
from pegboard.stores.sql.database import insert, key_of, one_of

if TYPE_CHECKING:
    from pegboard.stores.sql.database import Transaction

AUDIT_KEPT: Final = 100_000
"""About how many of the newest records are kept."""
AT_ONCE: Final = 256
"""How many old rows are removed, or lose their details, with one batch: some milliseconds."""
LOOKED_AT_AFTER: Final = 16 * 1024 * 1024
"""After how many characters of details it is looked whether they are too many."""
MOST_PENDING: Final = 100_000
"""How many are pending at most while they cannot be written; the oldest are dropped."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_MICROSECOND: Final = timedelta(microseconds=1)
_NO_DETAILS: Final = CallDetails()
_COLUMNS: Final = ("of_session", *AuditRecord._fields, *CallNumbers._fields, "ends", "size", "details")
_INSERT: Final = insert("request", _COLUMNS)
_SURPLUS: Final = (
    "DELETE FROM main.request WHERE id IN (SELECT id FROM main.request"
    " WHERE id <= (SELECT max(id) FROM main.request) - ? ORDER BY id LIMIT ?)"
)
_EMPTY: Final = "UPDATE main.request SET ends = NULL, size = 0, details = '' WHERE "
_ENDED: Final = f"{_EMPTY}id IN (SELECT id FROM main.request WHERE ends <= ? ORDER BY ends LIMIT ?)"  # noqa: S608
_SIZE: Final = "SELECT sum(size) FROM main.request WHERE ends IS NOT NULL"
_ENDING_FIRST: Final = "SELECT id, size FROM main.request WHERE ends IS NOT NULL ORDER BY ends, id LIMIT ?"
PendingRecord = tuple[AuditRecord, CallDetails]


class PendingRecords:
    """The records that are not written yet; ``keep`` is about how many are kept of all."""

    def __init__(self) -> None:
        self.keep = AUDIT_KEPT
        self._pending: list[PendingRecord] = []
        self._pending_size = 0
        self._added = 0  # since old ones were removed
        self._added_size = 0  # since it was looked whether details are too many

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._pending)

    def extend(self, entries: Sequence[AuditRecord]) -> None:
        """Take records without details."""
        self._pending += [(entry, _NO_DETAILS) for entry in entries]

    def add(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Take a record; of one whose details are too much to keep in memory, the numbers alone are kept."""
        if details is not None and details.text:
            if self._pending_size + len(details.text) > MOST_UNWRITTEN:
                details = CallDetails(details.numbers)
            self._pending_size += len(details.text)
        self._pending.append((entry, details or _NO_DETAILS))

    def take(self, most: int) -> list[PendingRecord]:
        """Return the oldest, which are pending no longer."""
        taken, self._pending = self._pending[:most], self._pending[most:]
        self._pending_size -= sum(len(details.text) for _, details in taken)
        return taken

    def drop_surplus(self) -> int:
        """Drop the oldest where there are too many; return how many."""
        return len(self.take(max(0, len(self._pending) - MOST_PENDING)))

    def written(self, taken: Sequence[PendingRecord]) -> None:
        """Do nothing more."""

    async def put(self, transaction: Transaction, taken: Sequence[PendingRecord]) -> None:
        """Write records in their order, and remove some old ones where there are too many."""
        await transaction.in_order()
        await transaction.many(_INSERT, [request_row(record, details) for record, details in taken])
        self._added += len(taken)
        size = sum(len(details.text) for _, details in taken)
        self._added_size += size
        if size:
            await transaction.run(_ENDED, time.time(), AT_ONCE)
        if self._added >= min(AT_ONCE // 2, max(self.keep // 10, 1)):
            await transaction.run(_SURPLUS, self.keep, max(AT_ONCE, 2 * self._added))
            self._added = 0
        if self._added_size > LOOKED_AT_AFTER:
            await self._shrink(transaction)

    async def put_at_once(self, transaction: Transaction, entries: Sequence[AuditRecord]) -> None:
        """Write records without details that are stored with what they are about."""
        await self.put(transaction, [(entry, _NO_DETAILS) for entry in entries])

    async def _shrink(self, transaction: Transaction, most: int = MOST_DETAILS) -> None:
        """Remove details that end first, where all of them are too much; the rest of it with the next batch."""
        surplus = ((await transaction.rows(_SIZE))[0][0] or 0) - most
        gone: list[int] = []
        if surplus > 0:
            for number, size in await transaction.rows(_ENDING_FIRST, AT_ONCE):
                gone.append(number)
                surplus -= size
                if surplus <= 0:
                    break
            condition, values = one_of("id", gone)
            await transaction.run(f"{_EMPTY}{condition}", *values)
        if surplus <= 0:
            self._added_size = 0


@lru_cache(maxsize=1024)
def session_number(principal: str, agent: str, session: str) -> int:
    """Return a number of a session that an index finds quickly; another session may have the same."""
    return int.from_bytes(bytes.fromhex(key_of(principal, agent, session))[:8], signed=True)


def microseconds(at: datetime) -> int:
    """Return a moment in microseconds since the epoch."""
    return (at - EPOCH) // _MICROSECOND


def request_row(record: AuditRecord, details: CallDetails) -> tuple[Any, ...]:
    """Return the values of a row, in the order of its columns."""
    numbers, text, ends = details
    of_session = session_number(record.principal, record.agent, record.session)
    return of_session, microseconds(record.at), *record[1:], *numbers, ends if text else None, len(text), text
