"""Count what sessions do, by tool and outcome, with how long it took, until the counts are handed to the store (F4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pegboard.ports import CountRecord, Counts, UsageOutcome
from pegboard.ports.counts import bucket_of

Key = tuple[str, str, str]
"""Principal, agent and session id."""
PluginOf = Callable[[str], str | None]
"""Gives the plugin of a tool by its wire name, or None where no tool has the name."""

MOST: Final = 10_000
"""How many combinations are told apart until the next hand-over; the name of a refused call may be any text."""


@dataclass(slots=True, eq=False)
class _TallyRow:
    counts: dict[str, int] = field(default_factory=dict[str, int])
    durations: dict[int, int] = field(default_factory=dict[int, int])


class Tally:
    """What was done since the last hand-over; counting takes about a microsecond, and nothing is looked up."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[tuple[Key, str, UsageOutcome | None], _TallyRow] = {}

    def add(self, key: Key, name: str, *, tool: str = "", outcome: UsageOutcome | None = None) -> None:
        """Count one more of a name of ``Counts``; what has no outcome is no call."""
        counts = self._row(key, tool, outcome).counts
        counts[name] = counts.get(name, 0) + 1

    def add_calls(self, key: Key, tool: str, outcome: UsageOutcome, durations: Sequence[float | None]) -> None:
        """Count calls of one tool by what each took, in milliseconds; those that did not run took nothing."""
        row = self._row(key, tool, outcome)
        row.counts["calls"] = row.counts.get("calls", 0) + len(durations)
        if outcome != "refused":
            for duration in durations:
                if duration is not None:
                    bucket = bucket_of(duration)
                    row.durations[bucket] = row.durations.get(bucket, 0) + 1

    def _row(self, key: Key, tool: str, outcome: UsageOutcome | None) -> _TallyRow:
        row = self._rows.get((key, tool, outcome))
        if row is None:
            name = tool if len(self._rows) < MOST else ""
            row = self._rows.setdefault((key, name, outcome), _TallyRow())
        return row

    def take(self, start: int, plugin_of: PluginOf) -> Iterator[CountRecord]:
        """Yield what was counted since the last time, as of a stretch of time that begins at ``start``.

        What was refused or waits and is no tool has no name: a model's text makes no rows.
        """
        taken, self._rows = self._rows, {}
        for (key, tool, outcome), row in taken.items():
            plugin = plugin_of(tool)
            named = tool if plugin is not None or outcome in ("ok", "error") else ""
            yield CountRecord(start, *key, plugin or "", named, outcome or "", Counts(**row.counts), row.durations)
