"""How busy each server was in the last day, how often it failed, and how long its calls took, hour by hour."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.board.services import Services
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.usage import percentile
from pegboard.ports import CountRecord
from pegboard.ports.counts import HOUR, OTHER, added_up, start_of

HOURS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUsage:
    """What came of one server or plugin in the last 24 hours.

    Attributes:
        name: the server or plugin.
        calls: the calls that ran.
        errors: how many of them failed.
        p50: up to how many milliseconds half of them took; None without any.
        p95: the same of 95 in 100 of them.
        hourly: the p95 of each hour, oldest first; None where nothing ran.
        results: how many tokens their results had.
    """

    name: Name
    calls: int
    errors: int
    p50: float | None
    p95: float | None
    hourly: tuple[float | None, ...]
    results: int


async def server_usage(services: Services, clock: Callable[[], float] = time.time) -> tuple[ServerUsage, ...]:
    """Return what came of every server and plugin that was called, the busiest first; raises ``StoreError``."""
    await services.billing.flush()
    until = start_of(HOUR, clock()) + HOUR.seconds
    since = until - HOURS * HOUR.seconds
    sums = await services.store.sums(HOUR, since=since, until=until, by=("start", "server", "outcome"))
    ran: dict[str, list[CountRecord]] = {}
    for one in sums.records:
        if one.server and one.server != OTHER and one.outcome in ("ok", "error"):
            ran.setdefault(one.server, []).append(one)
    found = [_usage_of(name, since, records) for name, records in ran.items()]
    found.sort(key=lambda one: (-one.calls, one.name))
    return mask_value(tuple(found), await shown_names(services))


def _usage_of(name: str, since: int, records: Sequence[CountRecord]) -> ServerUsage:
    whole = added_up(records)
    hours: list[list[CountRecord]] = [[] for _ in range(HOURS)]
    for one in records:
        hours[(one.start - since) // HOUR.seconds].append(one)
    return ServerUsage(
        name=name,
        calls=whole.counts.calls,
        errors=sum(one.counts.calls for one in records if one.outcome == "error"),
        p50=percentile(whole.durations, 0.50),
        p95=percentile(whole.durations, 0.95),
        hourly=tuple(percentile(added_up(some).durations, 0.95) for some in hours),
        results=whole.counts.results,
    )
