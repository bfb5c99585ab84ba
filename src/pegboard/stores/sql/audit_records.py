"""The audit trail, and what is kept of calls under the numbers of their records (S2, X4)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pegboard.ports import (
    MOST_DETAILS,
    MOST_UNWRITTEN,
    PART,
    AuditPart,
    AuditRecord,
    CallDetails,
    NumberedRecord,
    SessionKey,
    TrailPage,
    mentions,
)
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Database, Transaction, insert, one_of, where

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter

MOST_WAITING: Final = 100_000
ENDED_AT_ONCE: Final = 1_000
"""How many details whose days are over go with one batch."""
TRIMMED_EVERY: Final = 16 * 1024 * 1024
"""After how many characters of details it is looked whether they are too many."""
_FIELDS: Final = ", ".join(AuditRecord._fields)
_PUT: Final = insert("audit", (*AuditRecord._fields, "moment"))
_PUT_DETAILS: Final = (
    "INSERT INTO main.call (id, until, size, text) VALUES ((SELECT max(id) FROM main.audit) - ?, ?, ?, ?)"
)
_ENDED: Final = "DELETE FROM main.call WHERE id IN (SELECT id FROM main.call WHERE until <= ? LIMIT ?)"
_TOO_LARGE: Final = (
    "DELETE FROM main.call WHERE id <= (SELECT max(id) FROM"
    " (SELECT id, sum(size) OVER (ORDER BY id DESC) AS newer FROM main.call) AS sizes WHERE newer > ?)"
)


class _Taken(NamedTuple):
    records: Sequence[AuditRecord]
    details: Mapping[int, CallDetails]
    """By the place of the record."""


class WaitingRecords:
    """Audit records that are not stored yet, with details of calls."""

    def __init__(self, records: AuditRecords) -> None:
        self._of = records
        self._records: list[AuditRecord] = []
        self._details: dict[int, CallDetails] = {}
        self._size = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._records)

    def add(self, *records: AuditRecord, details: CallDetails | None = None) -> None:
        """Take records, with the details of the last."""
        self._records.extend(records)
        if details is not None and self._size + len(details.text) <= MOST_UNWRITTEN:
            self._details[len(self._records) - 1] = details
            self._size += len(details.text)

    def take(self, most: int) -> _Taken:
        """Return the oldest records, with details."""
        taken = _Taken(self._records[:most], {at: one for at, one in self._details.items() if at < most})
        self._drop(len(taken.records))
        return taken

    def _drop(self, count: int) -> None:
        del self._records[:count]
        if self._details:
            self._details = {at - count: one for at, one in self._details.items() if at >= count}
            self._size = sum(len(one.text) for one in self._details.values())

    async def put(self, transaction: Transaction, taken: _Taken) -> None:
        """Write records and details."""
        await self._of.put_records(transaction, taken.records, taken.details)

    def written(self, taken: _Taken) -> None:
        """Do nothing more."""

    def drop_surplus(self) -> int:
        """Let the oldest go where too many wait."""
        surplus = max(0, len(self._records) - MOST_WAITING)
        self._drop(surplus)
        return surplus


class AuditRecords(StoreBase):
    """The part of the store that keeps the audit trail; ``audit_keep`` is about how many of the newest records stay."""

    audit_keep = 100_000

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._waiting_records = WaitingRecords(self)
        self._batches.kinds.append(self._waiting_records)
        self._added = self._untrimmed = 0

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store decisions, after the calls that wait, before returning."""
        self._require_open()
        self._waiting_records.add(*entries, details=details)
        if self._db.lasts:
            await self._batches.flush()
        else:
            self._batches.schedule()

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store a call within 50 ms, in a batch; where no loop runs, with the next operation that writes."""
        self._require_open()
        self._waiting_records.add(entry, details=details)
        self._batches.schedule()

    def _record_later(self, records: Sequence[AuditRecord]) -> None:
        self._waiting_records.add(*records)
        self._batches.schedule()

    async def _put_records(self, transaction: Transaction, records: Sequence[AuditRecord]) -> None:
        await self.put_records(transaction, records, {})

    async def put_records(
        self, transaction: Transaction, records: Sequence[AuditRecord], details: Mapping[int, CallDetails]
    ) -> None:
        """Write records in their order, and remove what is surplus."""
        if not records:
            return
        await transaction.in_order()
        await transaction.many(_PUT, [(one.at.isoformat(), *one[1:], one.at.timestamp()) for one in records])
        if details:
            last = len(records) - 1
            rows = [(last - at, one.until, len(one.text), one.text) for at, one in details.items()]
            await transaction.many(_PUT_DETAILS, rows)
            await transaction.run(_ENDED, time.time(), ENDED_AT_ONCE)
            self._untrimmed += sum(len(one.text) for one in details.values())
        self._added += len(records)
        if self._added > max(1, min(1024, self.audit_keep // 10)) or self._untrimmed > TRIMMED_EVERY:
            self._added = self._untrimmed = 0
            await transaction.run(
                "DELETE FROM main.audit WHERE id <= (SELECT max(id) FROM main.audit) - ?", self.audit_keep
            )
            await transaction.run("DELETE FROM main.call WHERE id < (SELECT min(id) FROM main.audit)")
            await transaction.run(_TOO_LARGE, MOST_DETAILS)

    async def digest_key(self) -> bytes:
        """Return the secret with which arguments are digested; made once, kept in the database."""
        return await self._secret("digest")

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return the newest records first; those that wait are written before."""
        wanted = {"principal = ?": principal, "agent = ?": agent, "session = ?": session, "kind = ?": kind}
        condition, values = where(wanted)
        rows = await self._records(f"{condition} ORDER BY id DESC LIMIT ?", *values, max(limit, 0))
        return [record for _, record in rows if record is not None]

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first; records that cannot be read are counted."""
        condition, values = where({"id > ?": after, "agent = ?": agent})
        rows = await self._records(f"{condition} ORDER BY id LIMIT ?", *values, limit)
        records = [record for _, record in rows if record is not None]
        return TrailPage(records, rows[-1][0] if rows and len(rows) == limit else None, len(rows) - len(records))

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number."""
        rows = await self._records(" WHERE id = ?", number)
        return rows[0][1] if rows else None

    async def call_details(self, number: int) -> str | None:
        """Return what is kept of a call."""
        await self._batches.flush()
        rows = await self._db.rows("SELECT text FROM main.call WHERE id = ? AND until > ?", number, time.time())
        return rows[0][0] if rows and isinstance(rows[0][0], str) else None

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session by the index, newest first, or behind ``after`` oldest first."""
        wanted = {"session = ?": key.session, "agent = ?": key.agent, "principal = ?": key.principal}
        condition, values = where({**wanted, "id < ?": before, "id > ?": after})
        if kinds:
            of_kinds, given = one_of("kind", kinds)
            condition, values = f"{condition} AND {of_kinds}", [*values, *given]
        order = "DESC" if after is None else "ASC"
        return _intact(await self._records(f"{condition} ORDER BY id {order} LIMIT ?", *values, max(limit, 0)))

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next ``PART`` records, newest first, or behind ``after`` oldest first."""
        await self._batches.flush()
        extent = "SELECT (SELECT min(id) FROM main.audit), (SELECT max(id) FROM main.audit)"
        oldest, newest = (await self._db.rows(extent))[0]
        if oldest is None:
            return AuditPart([], None, after or 0)
        if after is not None:
            first = max(min(after, newest) + 1, oldest)
            last, order = min(first + PART - 1, newest), "ASC"
        else:
            last = newest if before is None else min(before - 1, newest)
            first, order = max(last - PART + 1, oldest), "DESC"
        condition, values = _wanted(wanted, first, last)
        rows = await self._records(f"{condition} ORDER BY id {order} LIMIT ?", *values, PART if wanted.text else limit)
        found = [row for row in rows if _mentions(wanted.text, row[1])][:limit]
        records = _intact(found)
        seen = found[-1][0] if found and len(found) == limit else last if after is not None else first
        left = seen < newest if after is not None else seen > oldest
        return AuditPart(records, seen if left else None, newest, len(found) - len(records))

    async def _records(self, condition: str, *values: Any) -> list[tuple[int, AuditRecord | None]]:
        await self._batches.flush()
        rows = await self._db.rows(f"SELECT id, {_FIELDS} FROM main.audit{condition}", *values)  # noqa: S608 - constants
        return [(number, _record(cells)) for number, *cells in rows]


def _wanted(wanted: AuditFilter, first: int, last: int) -> tuple[str, list[Any]]:
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    condition, values = where(
        {
            "id >= ?": first,
            "id <= ?": last,
            **{f"{name} = ?": getattr(wanted, name) for name in names},
            "moment >= ?": None if wanted.since is None else wanted.since.timestamp(),
            "moment < ?": None if wanted.until is None else wanted.until.timestamp(),
        }
    )
    if wanted.agents is not None:
        of_agents, given = one_of("agent", wanted.agents)
        condition, values = f"{condition} AND {of_agents}", [*values, *given]
    return condition, values


def _mentions(text: str | None, record: AuditRecord | None) -> bool:
    if not text:
        return True
    return record is not None and mentions(text.casefold(), record.subject, record.reason, record.by)


def _record(cells: Sequence[Any]) -> AuditRecord | None:
    """Return a record, or None where a column holds what is never written."""
    try:
        record = AuditRecord(datetime.fromisoformat(cells[0]), *cells[1:])
        record.at.timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    texts = (record.kind, record.principal, record.agent, record.session, record.subject, record.decision)
    numbers = type(record.turn) is int and type(record.duration) in (int, float, type(None))
    return record if numbers and all(type(text) is str for text in texts) else None


def _intact(rows: Sequence[tuple[int, AuditRecord | None]]) -> list[NumberedRecord]:
    return [NumberedRecord(number, record) for number, record in rows if record is not None]
