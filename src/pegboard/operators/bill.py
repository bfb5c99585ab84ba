"""The bill as operators read it: by day, by agent or by session, with what remains beside the greatest (F4)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import date
from heapq import nsmallest
from typing import Literal

from pegboard.board.services import Services
from pegboard.operators.masked import Name, Verbatim, masked, shown_names
from pegboard.ports import BillCounts, BillRecord

BillUnit = Literal["day", "agent", "session"]
"""What a row of a bill stands for."""
Unit = tuple[str | None, str | None, str | None, str | None]
"""Day, principal, agent and session, None where a row stands for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRow:
    """What was sent and done in one day, by one agent or in one session; a sum has None in place of the names.

    ``requests`` are the tool lists that a model was sent. In the library those are the surfaces or wire lists of its
    steps. A gateway does not see the requests of its clients' models: there they are the calls that came while no other
    of the session ran; the request that a model answers with text alone is not among them. ``tokens`` are those of
    their tools and texts, ``saved`` what listing everything that the agent may use would have cost more; it is not
    known of ``unknown`` of the requests, which do not count in it. ``meta_calls`` are calls of meta-tools: each is a
    model call that discovery costs.
    """

    day: Verbatim | None = None
    principal: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    requests: int
    tokens: int
    saved: int
    unknown: int
    loads: int
    unloads: int
    searches: int
    calls: int
    meta_calls: int
    denials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The rows, newest day first or most tokens first, ``rest`` of them that are not listed, and what all came to.

    ``others`` is how many are not listed, ``damaged`` how many records of the store could not be read and do not count.
    """

    by: BillUnit
    since: Verbatim | None
    until: Verbatim | None
    rows: tuple[BillRow, ...]
    others: int
    rest: BillRow
    totals: BillRow
    damaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BillQuery:
    """What a bill is wanted of; both days count, in UTC; None is any. Of others than ``agents`` nothing is in it."""

    by: BillUnit = "day"
    since: date | None = None
    until: date | None = None
    principal: str | None = None
    agent: str | None = None
    agents: frozenset[str] | None = None
    session: str | None = None
    limit: int = 400


async def bill(services: Services, query: BillQuery) -> Bill:
    """Return the bill of what is stored, and of what this process has counted by now."""
    await services.billing.flush()
    sums: dict[Unit, BillCounts] = {}
    since, until = _iso(query.since), _iso(query.until)
    after: Hashable = None
    damaged = 0
    while True:
        page = await services.store.bill(
            since=since,
            until=until,
            principal=query.principal,
            agent=query.agent,
            session=query.session,
            after=after,
        )
        for record in page.records:
            if query.agents is not None and record.agent not in query.agents:
                continue
            unit = _unit(record, query.by)
            sums[unit] = sums[unit].plus(record.counts) if unit in sums else record.counts
        damaged += page.damaged
        after = page.next
        if after is None:
            return masked(_listed(query, sums, damaged), await shown_names(services))
        await asyncio.sleep(0)


def _unit(record: BillRecord, by: BillUnit) -> Unit:
    match by:
        case "day":
            return record.day, None, None, None
        case "agent":
            return None, None, record.agent, None
        case "session":
            return None, record.principal, record.agent, record.session


def _listed(query: BillQuery, sums: Mapping[Unit, BillCounts], damaged: int) -> Bill:
    """Return the greatest, or the newest days, and what the others came to together."""

    def place(unit: Unit) -> tuple[int, ...]:
        counts, day = sums[unit], unit[0]
        return (-date.fromisoformat(day).toordinal(),) if day is not None else (-counts.tokens, -counts.calls)

    shown = nsmallest(max(query.limit, 0), sums, key=place)
    totals, rest = BillCounts(), BillCounts()
    for counts in sums.values():
        totals = totals.plus(counts)
    rest = totals
    for unit in shown:
        rest = BillCounts(*(all_ - one for all_, one in zip(rest, sums[unit], strict=True)))
    return Bill(
        by=query.by,
        since=_iso(query.since),
        until=_iso(query.until),
        rows=tuple(_row(unit, sums[unit]) for unit in shown),
        others=len(sums) - len(shown),
        rest=_row(_ALL, rest),
        totals=_row(_ALL, totals),
        damaged=damaged,
    )


_ALL: Unit = (None, None, None, None)


def _row(unit: Unit, counts: BillCounts) -> BillRow:
    day, principal, agent, session = unit
    return BillRow(day=day, principal=principal, agent=agent, session=session, **counts._asdict())


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
