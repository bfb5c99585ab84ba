"""Counts of calls by time, in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pegboard.ports import UsageCounts, UsageRecord, UsageSums, UsageUnit
from pegboard.ports.usage import UNITS, Names, UsageName, folded, start_of


class MemoryUsage:
    """The counts of each stretch of time, by unit and start."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[UsageUnit, dict[int, dict[Names, UsageCounts]]] = {unit: {} for unit in UNITS}

    def add(self, records: Iterable[UsageRecord]) -> None:
        """Add to what there is of every unit."""
        known = tuple(records)
        for unit, by_start in self._rows.items():
            for record in known:
                rows = by_start.setdefault(start_of(unit, record.start), {})
                names = record[1:5]
                rows[names] = rows.get(names, UsageCounts()).plus(record.counts)
            newest = max((start_of(UNITS[0], record.start) for record in known), default=0)
            for start in list(by_start):
                if start <= newest - unit.kept - unit.seconds:
                    del by_start[start]
                elif len(by_start[start]) > unit.most:
                    by_start[start] = folded(by_start[start], unit.most)

    def sums(
        self, unit: UsageUnit, since: int, until: int, by: Sequence[UsageName], agents: Collection[str] | None
    ) -> UsageSums:
        """Return the sums over a time."""
        found: dict[UsageRecord, UsageCounts] = {}
        for start, rows in self._rows[unit].items():
            for names, counts in rows.items():
                if since <= start < until and (agents is None or names[0] in agents):
                    record = UsageRecord(start, *names, UsageCounts())
                    key = UsageRecord(0, "", "", "", "", UsageCounts())._replace(
                        **{name: getattr(record, name) for name in by}
                    )
                    found[key] = found.get(key, UsageCounts()).plus(counts)
        return UsageSums([key._replace(counts=counts) for key, counts in found.items()])
