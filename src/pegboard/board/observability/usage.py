"""Count calls by agent, tool and outcome, with how long they took, until the next bill takes the counts (F4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from pegboard.ports import AuditRecord, BillCounts, UsageCounts, UsageOutcome, UsageRecord
from pegboard.ports.usage import LATENCY_LIMITS

PluginOf = Callable[[str], str | None]
"""Gives the plugin of a tool by its wire name, or None where no tool has the name."""

MOST: Final = 10_000
"""How many combinations are told apart until the next bill; the name of a refused call may be any text."""
_OF: Final[Mapping[str, UsageOutcome]] = {"denied": "refused", "approval_asked": "waits"}
"""The events that are counted beside calls, with the outcome."""
_PLACES: Final = len(LATENCY_LIMITS) + 1


class UsageTally:
    """What was called since the last bill; counting takes about a microsecond, and nothing is looked up."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], list[int]] = {}

    def add(self, event: str, record: AuditRecord) -> bool:
        """Count an event of the audit trail, where it is about a call; return whether it is."""
        outcome = _OF.get(event)
        if outcome is None or record.kind == "load":  # a load that is refused is no call
            return False
        self._of(record.agent, record.subject, outcome)[0] += 1
        return True

    def add_calls(self, records: Iterable[AuditRecord]) -> None:
        """Count calls that ran, or whose arguments did not fit."""
        for _, _, _, agent, _, _, subject, decision, _, duration, came_to, _, _ in records:
            outcome: UsageOutcome = "ok" if came_to == "ok" else "refused" if decision == "refused" else "error"
            counts = self._counts.get((agent, subject, outcome)) or self._of(agent, subject, outcome)
            counts[0] += 1
            if duration is not None and outcome != "refused":
                counts[1 + bisect_left(LATENCY_LIMITS, duration)] += 1

    def _of(self, agent: str, subject: str, outcome: UsageOutcome) -> list[int]:
        key = agent, subject, outcome
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= MOST:
                key = agent, "", outcome
            counts = self._counts.setdefault(key, [0] * (1 + _PLACES))
        return counts

    def take(self, start: int, plugin_of: PluginOf) -> Iterator[UsageRecord]:
        """Yield what was counted since the last time, as of a stretch of time that begins at ``start``.

        What was refused or waits and is no tool has no name: a model's text makes no rows.
        """
        taken, self._counts = self._counts, {}
        for (agent, subject, outcome), counts in taken.items():
            plugin = plugin_of(subject)
            named = plugin is not None or outcome in ("ok", "error")
            of_calls = UsageCounts(counts[0], 0, 0, 0, *counts[1:])
            yield UsageRecord(start, agent, plugin or "", subject if named else "", outcome, of_calls)


def of_lists(start: int, agent: str, counts: BillCounts) -> UsageRecord | None:
    """Return what an agent's models were sent, as of a stretch of time, or None where that is nothing."""
    if not counts.requests:
        return None
    of_lists = UsageCounts(
        calls=counts.requests,
        tokens=counts.tokens,
        saved=counts.saved,
        unknown=counts.unknown,
        texts=counts.texts,
        written=counts.written,
        cached=counts.cached,
        saved_written=counts.saved_written,
        saved_cached=counts.saved_cached,
    )
    return UsageRecord(start, agent, "", "", "listed", of_lists)
