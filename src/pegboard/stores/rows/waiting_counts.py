"""Counts that wait to be added to those of a database in a batch (F4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from pegboard.ports import BillCounts, BillRecord, UsageCounts, UsageRecord, UsageUnit
from pegboard.ports.usage import UNITS, start_of

BillKey = tuple[str, str, str, str]
UsageKey = tuple[int, str, str, str, str]


class WaitingBill:
    """The part of the bill that is not written yet, one record for each day and session, however long it waits."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[BillKey, BillCounts] = {}
        """Whether there is any is asked with every write."""

    def add(self, records: Iterable[BillRecord]) -> None:
        """Take records; the caller flushes."""
        for record in records:
            key = record.day, record.principal, record.agent, record.session
            self.waiting[key] = self.waiting.get(key, BillCounts()).plus(record.counts)

    def drop(self) -> None:
        """Forget what waits: it is committed, and nothing can have come since."""
        self.waiting = {}


class WaitingUsage:
    """The counts that are not written yet, one for each step and names, however long they wait."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: dict[UsageKey, UsageCounts] = {}
        """Whether there is any is asked with every write."""

    def add(self, records: Iterable[UsageRecord]) -> None:
        """Take records; the caller flushes."""
        for start, agent, server, tool, outcome, counts in records:
            key = start_of(UNITS[0], start), agent, server, tool, outcome
            self.waiting[key] = self.waiting.get(key, UsageCounts()).plus(counts)

    def drop(self) -> None:
        """Forget what waits: it is committed, and nothing can have come since."""
        self.waiting = {}


def of_unit(unit: UsageUnit, waiting: dict[UsageKey, UsageCounts]) -> dict[UsageKey, UsageCounts]:
    """Return what counts come to in a unit."""
    found: dict[UsageKey, UsageCounts] = {}
    for (start, *names), counts in waiting.items():
        key = cast("UsageKey", (start_of(unit, start), *names))
        found[key] = found.get(key, UsageCounts()).plus(counts)
    return found
