"""The records of calls and decisions: the audit trail, with what is kept of each call in its row (X4, S2)."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pegboard.ports import (
    MOST_DETAILS,
    PART,
    AuditPart,
    AuditRecord,
    CallDetails,
    CallNumbers,
    NumberedRecord,
    SessionKey,
    TrailPage,
    mentions,
)
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import not_open, one_of, where
from pegboard.stores.sql.pending_records import EPOCH, microseconds, session_number

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter
    from pegboard.stores.sql.database import Database, Row, Transaction

AT_ONCE: Final = 256
"""How many records lose their details, or in memory are removed, at once: some milliseconds."""

_FIELDS: Final = AuditRecord._fields
_LINE: Final = ", ".join(_FIELDS)
_NUMBERS: Final = CallNumbers._fields
_ALL_BUT: Final = (
    "DELETE FROM main.request WHERE id IN (SELECT id FROM main.request"
    " WHERE id <= (SELECT max(id) FROM main.request) - ? ORDER BY id LIMIT ?)"
)
_EMPTY: Final = "UPDATE main.request SET details_until = NULL, size = 0, details = '' WHERE "
_DETAILS: Final = "SELECT id, size FROM main.request WHERE details_until IS NOT NULL ORDER BY details_until LIMIT ?"
_DETAILS_OVER: Final = (
    f"{_EMPTY}id IN (SELECT id FROM main.request WHERE details_until <= ? ORDER BY details_until LIMIT ?)"  # noqa: S608
)
_SIZE: Final = "SELECT sum(size) FROM main.request WHERE details_until IS NOT NULL"
_EXTENT: Final = (
    "SELECT (SELECT min(id) FROM main.request), (SELECT max(id) FROM main.request),"  # noqa: S608 - constants
    f" (SELECT id FROM main.request WHERE id {{}} ? ORDER BY id {{}} LIMIT 1 OFFSET {PART - 1})"
)
_LAST: Final = 2**63 - 1
"""Behind every number."""
_TEXT: Final = frozenset({str})
_TYPES: Final = tuple(
    {"at": frozenset({int}), "turn": frozenset({int}), "duration": frozenset({int, type(None)})}.get(name, _TEXT)
    for name in _FIELDS
)


class StoredRequests(StoreBase):
    """The part of the store that keeps the records."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cleaning.pieces.extend((self._remove_details, self._remove_surplus, self._records.old.remove_some))

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
            raise not_open(self._db.place)
        self._records.add(entry, details, True)
        self._batches.schedule()

    async def _remove_details(self, transaction: Transaction) -> bool:
        """Remove the details of decisions whose days are over, and those that end first where all are too much."""
        if await transaction.changed(_DETAILS_OVER, int(time.time()), AT_ONCE) == AT_ONCE:
            return True
        surplus = ((await transaction.rows(_SIZE))[0][0] or 0) - MOST_DETAILS
        gone: list[int] = []
        for number, size in await transaction.rows(_DETAILS, AT_ONCE) if surplus > 0 else ():
            if surplus <= 0:
                break
            gone.append(number)
            surplus -= size
        if gone:
            condition, values = one_of("id", gone)
            await transaction.run(f"{_EMPTY}{condition}", *values)
        return surplus > 0

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
        conditions, values = where(
            {"principal = ?": principal, "agent = ?": agent, "session = ?": session, "kind = ?": kind}
        )
        query = f"SELECT {_LINE} FROM main.request{conditions} ORDER BY id DESC LIMIT ?"  # noqa: S608 - constants
        rows = await self._written_rows(query, *values, max(limit, 0))
        return [record for row in rows if (record := _record(row)) is not None]

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first; records that cannot be read are counted."""
        conditions, values = where({"id > ?": after, "agent = ?": agent})
        query = f"SELECT id, {_LINE} FROM main.request{conditions} ORDER BY id LIMIT ?"  # noqa: S608 - constants
        rows = await self._written_rows(query, *values, limit)
        records = _numbered(rows)
        next_part = rows[-1][0] if rows and len(rows) == limit else None
        return TrailPage([one.record for one in records], next_part, len(rows) - len(records))

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
        rows = await self._wanted(wanted, first, last, order, limit)
        records = _numbered(rows)
        end = last if after is not None else first
        seen = rows[-1][0] if rows and len(rows) == limit else end
        left = seen < newest if after is not None else seen > oldest
        return AuditPart(records, seen if left else None, newest, len(rows) - len(records))

    async def _wanted(self, wanted: AuditFilter, first: int, last: int, order: str, limit: int) -> list[Row]:
        """Return the rows of these numbers that are wanted; a text is looked for here, whatever its letters are."""
        conditions, values = _conditions(wanted)
        within = f"FROM main.request{conditions} AND id BETWEEN ? AND ? ORDER BY id {order}"
        if not wanted.text:
            query = f"SELECT id, {_LINE} {within} LIMIT ?"
            return await self._db.rows(query, *values, first, last, limit)
        text = wanted.text.casefold()
        rows = await self._db.rows(f"SELECT id, subject, reason, by {within}", *values, first, last)
        found = [number for number, *cells in rows if mentions(text, *filter(_is_text, cells))][:limit]
        condition, numbers = one_of("id", found)
        query = f"SELECT id, {_LINE} FROM main.request WHERE {condition} ORDER BY id {order}"  # noqa: S608 - constants
        return await self._db.rows(query, *numbers)

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number."""
        rows = await self._written_rows(f"SELECT {_LINE} FROM main.request WHERE id = ?", number)  # noqa: S608
        return _record(rows[0]) if rows else None

    async def call_details(self, number: int) -> CallDetails | None:
        """Return what a record has beside its line; a text that cannot be read is none."""
        query = f"SELECT {', '.join(_NUMBERS)}, details, details_until FROM main.request WHERE id = ?"  # noqa: S608
        rows = await self._written_rows(query, number)
        if not rows:
            return None
        queued, waited, upstream, sent, received, text, until = rows[0]
        times = _milliseconds(queued), _milliseconds(waited), _milliseconds(upstream)
        kept = until is not None and until > time.time() and _is_text(text)
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
        names = key.principal, key.agent, key.session
        given = dict(zip(("principal = ?", "agent = ?", "session = ?"), names, strict=True))
        conditions, values = where(
            {"of_session = ?": session_number(*names), **given, "id < ?": before, "id > ?": after}
        )
        if kinds:
            condition, wanted = one_of("kind", kinds)
            conditions, values = f"{conditions} AND {condition}", [*values, *wanted]
        order = "DESC" if after is None else "ASC"
        query = f"SELECT id, {_LINE} FROM main.request{conditions} ORDER BY id {order} LIMIT ?"  # noqa: S608 - constants
        return _numbered(await self._written_rows(query, *values, max(limit, 0)))


def _conditions(wanted: AuditFilter) -> tuple[str, list[Any]]:
    """Return what a row has to fulfil, without its text, and the values of it."""
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    conditions, values = where(
        {
            "id > ?": 0,
            **{f"{name} = ?": getattr(wanted, name) for name in names},
            "at >= ?": microseconds(wanted.since) if wanted.since is not None else None,
            "at < ?": microseconds(wanted.until) if wanted.until is not None else None,
        }
    )
    if wanted.agents is None:
        return conditions, values
    condition, agents = one_of("agent", wanted.agents)
    return f"{conditions} AND {condition}", [*values, *agents]


def _record(row: Sequence[Any]) -> AuditRecord | None:
    """Return a record, or None where a column holds what :func:`_row` never writes."""
    if any(type(cell) not in types for cell, types in zip(row, _TYPES, strict=True)):
        return None
    try:
        moment = EPOCH + timedelta(microseconds=row[0])
        return AuditRecord(moment, *row[1:])._replace(duration=_milliseconds(row[_FIELDS.index("duration")]))
    except OverflowError:
        return None


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def _numbered(rows: Sequence[Row]) -> list[NumberedRecord]:
    found = ((number, _record(cells)) for number, *cells in rows)
    return [NumberedRecord(number, record) for number, record in found if record is not None]


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str)
