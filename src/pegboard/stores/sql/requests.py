"""The records of calls and decisions: the audit trail, with what is kept of each call in its row (X4, S2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import (
    PART,
    AuditPart,
    AuditRecord,
    CallDetails,
    CallNumbers,
    NumberedRecord,
    SessionKey,
    is_mentioned,
)
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import condition_of_values, microseconds, not_open_error, where_clause
from pegboard.stores.sql.request_rows import milliseconds, names_key, record_of

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter
    from pegboard.stores.sql.database import Database, Row, Transaction

AT_ONCE: Final = 256
"""How many records are removed from memory at once: some milliseconds."""

_LINE: Final = ", ".join(AuditRecord._fields)
_ALL_BUT: Final = (
    "DELETE FROM main.request WHERE id IN (SELECT id FROM main.request"
    " WHERE id <= (SELECT max(id) FROM main.request) - ? ORDER BY id LIMIT ?)"
)
_WITH_NAMES: Final = (
    "FROM main.request CROSS JOIN main.request_session AS s CROSS JOIN main.request_names AS n"
    " WHERE s.id = of_session AND n.id = of_names"
)
"""Records and their names; SQLite goes over the records, as it is said here, and finds the names of each."""
_DETAILS: Final = (
    f"SELECT {', '.join(CallNumbers._fields)}, details, at + abs(days) * 86400000000 FROM main.request WHERE id = ?"  # noqa: S608
)
_OF_SESSION: Final = "of_session = (SELECT id FROM main.request_session WHERE key = ?)"
_EXTENT: Final = (
    "SELECT (SELECT min(id) FROM main.request), (SELECT max(id) FROM main.request),"  # noqa: S608 - constants
    f" (SELECT id FROM main.request WHERE id {{}} ? ORDER BY id {{}} LIMIT 1 OFFSET {PART - 1})"
)
_LAST: Final = 2**63 - 1
"""Behind every number."""


class StoredRequests(StoreBase):
    """The part of the store that keeps the records."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cleaning.pieces.extend((self._remove_surplus, self._records.old.remove_some))

    @property
    def lasts(self) -> bool:
        """Return whether what is stored outlives the process."""
        return self._db.lasts

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested."""
        return await self._secret("digest")

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, after the calls that wait, before returning."""
        self._require_open()
        for at, entry in enumerate(entries, start=1):
            self._records.add(entry, details if at == len(entries) else None, False)
        if self._db.lasts:
            await self._batches.flush()
        else:
            self._batches.schedule()

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch; where no loop runs, with the next that is written."""
        if not self._db.is_open:
            raise not_open_error(self._db.place)
        if details is not None and not details.text:
            self._records.rows.append((entry, details, True))
        else:
            self._records.add(entry, details, True)
        self._batches.schedule()

    async def _remove_surplus(self, transaction: Transaction) -> bool:
        """Remove the oldest records in memory, calls too, where there are too many."""
        if self._db.lasts:
            return False
        return await transaction.changed(_ALL_BUT, self._records.old.decisions_kept, AT_ONCE) == AT_ONCE

    async def _written_rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query once what waits is written."""
        await self._batches.flush()
        return await self._db.rows(sql, *values)

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return the newest records first."""
        conditions, values = _and_conditions(
            {"principal = ?": principal, "agent = ?": agent, "session = ?": session, "kind = ?": kind}
        )
        query = f"SELECT {_LINE} {_WITH_NAMES}{conditions} ORDER BY request.id DESC LIMIT ?"
        rows = await self._written_rows(query, *values, max(limit, 0))
        return [record for row in rows if (record := record_of(row)) is not None]

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next ``PART`` records."""
        beyond, order = ("<", "DESC") if after is None else (">", "ASC")
        bound = after if after is not None else _LAST if before is None else before
        ((oldest, newest, end),) = await self._written_rows(_EXTENT.format(beyond, order), bound)
        if oldest is None:
            return AuditPart([], None, after or 0)
        if after is not None:
            first, last = min(after, newest) + 1, newest if end is None else end
        else:
            first, last = oldest if end is None else end, min(bound - 1, newest)
        rows = await self._matching_rows(wanted, first, last, order, limit)
        records = _numbered_records(rows)
        end = last if after is not None else first
        seen = rows[-1][0] if rows and len(rows) == limit else end
        left = seen < newest if after is not None else seen > oldest
        return AuditPart(records, seen if left else None, newest, len(rows) - len(records))

    async def _matching_rows(self, wanted: AuditFilter, first: int, last: int, order: str, limit: int) -> list[Row]:
        """Return the rows of these numbers that are wanted; a text is looked for here, whatever its letters are."""
        conditions, values = _conditions(wanted)
        within = f"{_WITH_NAMES}{conditions} AND request.id BETWEEN ? AND ? ORDER BY request.id {order}"
        if not wanted.text:
            query = f"SELECT request.id, {_LINE} {within} LIMIT ?"
            return await self._db.rows(query, *values, first, last, limit)
        text = wanted.text.casefold()
        rows = await self._db.rows(f"SELECT request.id, subject, reason, by {within}", *values, first, last)
        found = [number for number, *cells in rows if is_mentioned(text, *filter(_is_text, cells))][:limit]
        condition, numbers = condition_of_values("request.id", found)
        query = f"SELECT request.id, {_LINE} {_WITH_NAMES} AND {condition} ORDER BY request.id {order}"
        return await self._db.rows(query, *numbers)

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number."""
        rows = await self._written_rows(f"SELECT {_LINE} {_WITH_NAMES} AND request.id = ?", number)
        return record_of(rows[0]) if rows else None

    async def call_details(self, number: int) -> CallDetails | None:
        """Return what a record has beside its line; a text that cannot be read is none."""
        rows = await self._written_rows(_DETAILS, number)
        if not rows:
            return None
        queued, waited, upstream, sent, received, text, end = rows[0]
        times = milliseconds(queued), milliseconds(waited), milliseconds(upstream)
        kept = _is_text(text) and end > microseconds(datetime.now(UTC))
        return CallDetails(CallNumbers(*times, sent, received), text if kept else "")

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session, newest first, or behind ``after`` oldest first."""
        own = names_key(key.principal, key.agent, key.session)
        conditions, values = _and_conditions({_OF_SESSION: own, "request.id < ?": before, "request.id > ?": after})
        if kinds:
            condition, wanted = condition_of_values("kind", kinds)
            conditions, values = f"{conditions} AND {condition}", [*values, *wanted]
        order = "DESC" if after is None else "ASC"
        query = f"SELECT request.id, {_LINE} {_WITH_NAMES}{conditions} ORDER BY request.id {order} LIMIT ?"
        return _numbered_records(await self._written_rows(query, *values, max(limit, 0)))


def _conditions(wanted: AuditFilter) -> tuple[str, list[Any]]:
    """Return what a row has to fulfil, without its text, and the values of it."""
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    conditions, values = _and_conditions(
        {
            **{f"{name} = ?": getattr(wanted, name) for name in names},
            "at >= ?": microseconds(wanted.since) if wanted.since is not None else None,
            "at < ?": microseconds(wanted.until) if wanted.until is not None else None,
        }
    )
    if wanted.agents is None:
        return conditions, values
    condition, agents = condition_of_values("agent", wanted.agents)
    return f"{conditions} AND {condition}", [*values, *agents]


def _and_conditions(conditions: dict[str, Any]) -> tuple[str, list[Any]]:
    """Return further conditions and their values; those of a value None are left out."""
    text, values = where_clause(conditions)
    return text.replace(" WHERE ", " AND ", 1), values


def _numbered_records(rows: Sequence[Row]) -> list[NumberedRecord]:
    found = ((number, record_of(cells)) for number, *cells in rows)
    return [NumberedRecord(number, record) for number, record in found if record is not None]


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str)
