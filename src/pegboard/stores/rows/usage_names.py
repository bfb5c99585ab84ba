"""Sums of usage as records, whatever they are told apart by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

from pegboard.ports import UsageCounts, UsageRecord
from pegboard.ports.usage import UsageName

_NAMES: Final = ("start", "agent", "server", "tool", "outcome")


def usage_of(by: Sequence[UsageName], names: Sequence[Any], counts: UsageCounts) -> UsageRecord:
    """Return the record of a sum, with the names that it is told apart by."""
    start, agent, server, tool, outcome = _in_order(tuple(by))((*names, 0, ""))
    return UsageRecord(start, agent, server, tool, outcome, counts)


@cache
def _in_order(by: tuple[UsageName, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what puts names into the order of a record; behind them are the start and text of what has none."""
    places = [by.index(name) if name in by else len(by) + (name != "start") for name in _NAMES]
    return itemgetter(*places)
