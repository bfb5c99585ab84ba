"""The audit trail in memory: the newest records of one process."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pegboard.ports import (
    MOST_DETAILS,
    PART,
    AuditPart,
    AuditRecord,
    CallDetails,
    NumberedRecord,
    SessionKey,
    TrailPage,
    mentions,
)

if TYPE_CHECKING:
    from pegboard.ports import AuditFilter


class MemoryTrail:
    """The part of a store that keeps the audit trail; ``audit_keep`` is how many of the newest records are kept."""

    __slots__ = ("_audit", "_audited", "_details", "_kept")

    def __init__(self, *, audit_keep: int) -> None:
        self._audit: deque[AuditRecord] = deque(maxlen=audit_keep)
        self._audited = 0
        self._details: OrderedDict[int, CallDetails] = OrderedDict()
        self._kept = 0

    async def record(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Store entries, with the details of the last."""
        self._append(entries)
        self._keep(details)

    def record_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Store an entry; in memory, later is now."""
        self._append((entry,))
        self._keep(details)

    def _append(self, entries: Sequence[AuditRecord]) -> None:
        self._audit.extend(entries)
        self._audited += len(entries)

    def _keep(self, details: CallDetails | None) -> None:
        """Keep the details of the newest record; the oldest go where their record has, or they are too many."""
        if details is not None:
            self._details[self._audited] = details
            self._kept += len(details.text)
        gone = self._audited - len(self._audit)
        while self._details:
            oldest, (text, until) = next(iter(self._details.items()))
            if oldest > gone and self._kept <= MOST_DETAILS and until > time.time():
                return
            del self._details[oldest]
            self._kept -= len(text)

    async def numbered(self, number: int) -> AuditRecord | None:
        """Return a record by its number."""
        at = number - (self._audited - len(self._audit)) - 1
        return self._audit[at] if 0 <= at < len(self._audit) else None

    async def call_details(self, number: int) -> str | None:
        """Return what is kept of a call."""
        found = self._details.get(number)
        return found.text if found is not None and found.until > time.time() else None

    async def session_trail(
        self,
        key: SessionKey,
        *,
        before: int | None = None,
        after: int | None = None,
        kinds: Collection[str] = (),
        limit: int = 100,
    ) -> Sequence[NumberedRecord]:
        """Return records of one session."""
        found = (
            one
            for one in self._all_numbered(newest_first=after is None)
            if (one.record.principal, one.record.agent, one.record.session) == (key.principal, key.agent, key.session)
            and (before is None or one.number < before)
            and (after is None or one.number > after)
            and (not kinds or one.record.kind in kinds)
        )
        return list(islice(found, max(limit, 0)))

    def _all_numbered(self, *, newest_first: bool) -> Iterator[NumberedRecord]:
        if newest_first:
            return map(NumberedRecord, range(self._audited, 0, -1), reversed(self._audit))
        return map(NumberedRecord, range(self._audited - len(self._audit) + 1, self._audited + 1), self._audit)

    async def entries(
        self,
        *,
        principal: str | None = None,
        agent: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """Return the newest entries first."""
        found = (
            entry
            for entry in reversed(self._audit)
            if principal in (None, entry.principal)
            and agent in (None, entry.agent)
            and session in (None, entry.session)
            and kind in (None, entry.kind)
        )
        return list(islice(found, max(limit, 0)))

    async def trail(self, *, after: int = 0, agent: str | None = None, limit: int = 5000) -> TrailPage:
        """Return a part of the trail, oldest first."""
        gone = self._audited - len(self._audit)
        start = max(after - gone, 0)
        part = list(islice(self._audit, start, start + limit))
        end = gone + start + len(part)
        entries = [entry for entry in part if agent in (None, entry.agent)]
        return TrailPage(entries, end if end < self._audited else None)

    async def part(
        self, wanted: AuditFilter, *, before: int | None = None, after: int | None = None, limit: int = 100
    ) -> AuditPart:
        """Return what is wanted of the next records."""
        return _part_of(list(self._audit), self._audited, wanted, before=before, after=after, limit=limit)


def _part_of(
    trail: Sequence[AuditRecord],
    newest: int,
    wanted: AuditFilter,
    *,
    before: int | None,
    after: int | None,
    limit: int,
) -> AuditPart:
    """Return what is wanted of the next ``PART`` records of a trail, the last of which has the number ``newest``."""
    oldest = newest - len(trail) + 1
    if not trail:
        return AuditPart([], None, newest if after is None else max(after, newest))
    if after is not None:
        first = max(after + 1, oldest)
        numbers = range(first, min(first + PART, newest + 1))
    else:
        last = newest if before is None else min(before - 1, newest)
        numbers = range(last, max(last - PART, oldest - 1), -1)
    records: list[NumberedRecord] = []
    seen = numbers[-1] if numbers else None
    for number in numbers:
        if _is_wanted(trail[number - oldest], wanted):
            records.append(NumberedRecord(number, trail[number - oldest]))
        if len(records) == limit:
            seen = number
            break
    left = seen is not None and (seen < newest if after is not None else seen > oldest)
    return AuditPart(records, seen if left else None, newest)


def _is_wanted(record: AuditRecord, wanted: AuditFilter) -> bool:
    """Return whether a record is among what is wanted."""
    names = ("principal", "agent", "session", "kind", "decision", "outcome")
    return (
        all(getattr(wanted, name) in (None, getattr(record, name)) for name in names)
        and (wanted.agents is None or record.agent in wanted.agents)
        and (wanted.since is None or record.at >= wanted.since)
        and (wanted.until is None or record.at < wanted.until)
        and (not wanted.text or mentions(wanted.text.casefold(), record.subject, record.reason, record.by))
    )
