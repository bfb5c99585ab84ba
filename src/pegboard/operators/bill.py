"""The bill as operators read it: by day, agent, principal or session, in tokens and money, with its curve (F4)."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from heapq import nsmallest
from typing import Final, Literal, TypedDict

from pegboard.board.services import Services
from pegboard.core.model.agents import Agent
from pegboard.errors import StoreError
from pegboard.operators.counting import SOON
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.money import ASSUMED, AgentCosts, AgentWithoutPrices, Money, without_prices
from pegboard.ports import CountFilter, CountName, CountRecord, Counts, CountSums
from pegboard.ports.counts import HOUR, SESSION_DAY
from pegboard.support.background import BackgroundComputations

BillUnit = Literal["day", "agent", "principal", "session"]
"""What a row of a bill stands for."""
Unit = tuple[str | None, str | None, str | None, str | None]
"""Day, principal, agent and session, None where a row stands for all of them."""
MOST_KEPT: Final = 60.0
"""For how many seconds a bill is kept at most."""
MOST_DAYS_KEPT: Final = 300.0
"""For how many seconds the sums of days that are over are kept: a process that slept may still add to them."""
LATE: Final = 60.0
"""Seconds into a day in which nothing is kept of the day before: what was counted in its last seconds comes now."""
MOST_DAYS_BEFORE: Final = 100
"""Of how many periods and agents such sums are kept."""
MOST_STEPS: Final = 100
"""How many steps the curve of a bill has at most."""
_DAY: Final = SESSION_DAY.seconds
_ALWAYS: Final = 2**40
"""Behind every start."""
_NAMES: Final[Mapping[BillUnit, tuple[CountName, ...]]] = {
    "day": ("start", "agent"),
    "agent": ("agent",),
    "principal": ("principal", "agent"),
    "session": ("principal", "agent", "session"),
}
"""What the sums are told apart by from which the rows are made; prices are those of agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillRow:
    """What was sent and done in one day, by one agent, for one principal or in one session; a sum has no names.

    ``requests`` are the tool lists that a model was sent. In the library those are the surfaces or wire lists of its
    steps. A gateway does not see the requests of its clients' models: there they are the calls that came while no other
    of the session ran; the request that a model answers with text alone is not among them. ``tokens`` are those of
    their tools and texts, of which ``texts`` are no tools, ``saved`` what listing everything that the agent may use
    would have cost more; it is not known of ``unknown`` of the requests, which do not count in it. ``written`` and
    ``cached`` are how many of ``tokens`` a prompt cache took, ``saved_written`` and ``saved_cached`` how many more it
    would have. ``arguments`` are the tokens that models wrote to call, ``results`` those of what they were answered,
    ``estimated`` how many of both are an estimate. ``meta_calls`` are calls of meta-tools: each is a model call that
    discovery costs. ``money`` is what it cost, ``unpriced`` how many of the tokens have no price.
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
    texts: int
    written: int
    cached: int
    saved_written: int
    saved_cached: int
    arguments: int
    results: int
    estimated: int
    money: tuple[Money, ...] = ()
    unpriced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BillStep:
    """What came of the time from ``start`` to ``end``, in seconds since the epoch."""

    start: int
    end: int
    tokens: int
    saved: int
    arguments: int
    results: int
    money: tuple[Money, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The rows, newest day first or most tokens first, ``rest`` of them that are not listed, and what all came to.

    ``others`` is how many are not listed, ``damaged`` how many records of the store could not be read and do not count.
    ``steps`` are the curve, oldest first. ``assumed`` is what the money stands on, ``without_prices`` which agents have
    no prices.
    """

    by: BillUnit
    since: Verbatim | None
    until: Verbatim | None
    rows: tuple[BillRow, ...]
    others: int
    rest: BillRow
    totals: BillRow
    damaged: int
    steps: tuple[BillStep, ...]
    assumed: Verbatim
    without_prices: tuple[AgentWithoutPrices, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BillQuery:
    """What a bill is wanted of; both days count, in UTC; None is any. Of others than ``agents`` nothing is in it.

    ``step_hours`` is how many hours a step of the curve has, None as many days as make it short; hours are known of
    eight days and of agents only.
    """

    by: BillUnit = "day"
    since: date | None = None
    until: date | None = None
    principal: str | None = None
    agent: str | None = None
    agents: frozenset[str] | None = None
    session: str | None = None
    limit: int = 400
    step_hours: int | None = None


@dataclass(frozen=True, slots=True)
class _SumsOfDays:
    """The sums by day and agent of the days before ``day``, read at ``at`` (``time.monotonic()``)."""

    day: date
    at: float
    sums: CountSums


class BillReader:
    """The bill, read from the store; what an answer took long for is kept for a while."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bills: dict[BillQuery, tuple[float, Bill]] = {}
        self._days_before: dict[BillQuery, _SumsOfDays] = {}
        self._reading = BackgroundComputations[BillQuery, Bill]("read the bill", "the bill could not be read")

    async def aclose(self) -> None:
        """End what is being read for later."""
        await self._reading.aclose()

    async def bill(self, query: BillQuery, kept: float = 0.0) -> Bill:
        """Return the bill of what is stored, and of what this process has counted by now.

        An answer to the same of less than ``kept`` seconds ago is enough; one of less than a minute ago where reading
        it again takes long.

        Raises:
            StoreError: it cannot be read.
        """
        if not kept:
            return await self._read_bill(query)
        at, found = self._bills.get(query, (0.0, None))
        age, read = time.monotonic() - at, partial(self._read_and_keep, query)
        if found is None or age >= MOST_KEPT:
            return await self._reading.value_within(None, query, read) or await read()
        if age < kept:
            return found
        with suppress(StoreError):
            found = await self._reading.value_within(SOON, query, read) or found
        return found

    async def _read_and_keep(self, query: BillQuery) -> Bill:
        now = time.monotonic()
        found = await self._read_bill(query)
        self._bills = {one: answer for one, answer in self._bills.items() if now - answer[0] < MOST_KEPT}
        self._bills[query] = now, found
        return found

    async def _read_bill(self, query: BillQuery) -> Bill:
        services = self._services
        await services.billing.flush()
        by_hours = query.step_hours is not None and query.principal is None and query.session is None
        by_day = await (self._read_sums(query, ("agent",)) if by_hours else self._by_day(query))
        rows = whole = by_day
        if query.by == "principal" or (query.by == "day" and by_hours):
            rows = whole = await self._read_sums(query, _NAMES[query.by])
        elif query.by == "session":
            rows = await self._read_sums(query, _NAMES["session"], max(query.limit, 0))
            if any(count < 0 for count in _counts_left(whole, rows)):  # something came late of a day before
                self._days_before.clear()
                by_day = whole = await self._by_day(query)
        agents = services.world.agents
        found = Bill(
            by=query.by,
            since=_iso(query.since),
            until=_iso(query.until),
            **_list_rows(query, rows, whole.records, agents),
            damaged=max(rows.damaged, by_day.damaged),
            steps=await _bill_steps(services, query, by_day.records, by_hours=by_hours),
            assumed=ASSUMED,
            without_prices=without_prices(agents, (record.agent for record in by_day.records)),
        )
        return mask_value(found, await shown_names(services))

    async def _by_day(self, query: BillQuery) -> CountSums:
        """Return the sums by day and agent; of the days before today they are read again after ``MOST_DAYS_KEPT``."""
        today = _date_of_today()
        if query.until is not None or query.principal is not None or query.session is not None:
            return await self._read_sums(query, _NAMES["day"])
        whole = replace(query, by="day", limit=0, step_hours=None)
        known, now = self._days_before.get(whole), time.monotonic()
        if known is None or known.day != today or now - known.at >= MOST_DAYS_KEPT or _is_just_over(today):
            yesterday = today - timedelta(days=1)
            known = _SumsOfDays(today, now, await self._read_sums(replace(whole, until=yesterday), _NAMES["day"]))
            if len(self._days_before) >= MOST_DAYS_BEFORE:
                self._days_before.clear()
            self._days_before[whole] = known
        since = today if query.since is None else max(today, query.since)
        newest = await self._read_sums(replace(whole, since=since), _NAMES["day"])
        return CountSums([*known.sums.records, *newest.records], known.sums.damaged + newest.damaged)

    async def _read_sums(self, query: BillQuery, by: Sequence[CountName], greatest: int | None = None) -> CountSums:
        until = _ALWAYS if query.until is None else _start(query.until) + _DAY
        return await self._services.store.sums(
            SESSION_DAY,
            since=0 if query.since is None else _start(query.since),
            until=until,
            by=by,
            of=CountFilter(query.principal, query.agent, query.session, query.agents),
            greatest=greatest,
        )


def _counts_left(whole: CountSums, rows: CountSums) -> Counts:
    """Return what is left of the whole without some rows of it."""
    left = Counts()
    for record in whole.records:
        left = left.plus(record.counts)
    for record in rows.records:
        left = left.minus(record.counts)
    return left


def _is_just_over(today: date) -> bool:
    return time.time() - _start(today) < LATE


def _date_of_today() -> date:
    return datetime.fromtimestamp(time.time(), UTC).date()


def _unit(record: CountRecord, by: BillUnit) -> Unit:
    match by:
        case "day":
            return _day(record), None, None, None
        case "agent":
            return None, None, record.agent, None
        case "principal":
            return None, record.principal, None, None
        case "session":
            return None, record.principal, record.agent, record.session


def _list_rows(
    query: BillQuery, rows: CountSums, whole: Sequence[CountRecord], agents: Mapping[str, Agent]
) -> _BillRows:
    """Return the dearest or greatest rows, or the newest days, and what the others came to together."""
    sums: dict[Unit, Counts] = {}
    tills: dict[Unit, AgentCosts] = {}
    parts: dict[Unit, list[CountRecord]] = {}
    for record in rows.records:
        unit = _unit(record, query.by)
        sums[unit] = sums[unit].plus(record.counts) if unit in sums else record.counts
        tills.setdefault(unit, AgentCosts(agents)).add(record.agent, record.counts)
        parts.setdefault(unit, []).append(record)

    def place(unit: Unit) -> tuple[int, ...]:
        counts, day = sums[unit], unit[0]
        if day is not None:
            return (-date.fromisoformat(day).toordinal(),)
        return -tills[unit].total(), -counts.all_tokens, -counts.calls

    shown = nsmallest(max(query.limit, 0), sums, key=place)
    totals, rest = AgentCosts(agents), AgentCosts(agents)
    counts = Counts()
    for record in whole:
        counts = counts.plus(record.counts)
        totals.add(record.agent, record.counts)
        rest.add(record.agent, record.counts)
    left = counts
    for record in (record for unit in shown for record in parts[unit]):
        left = left.minus(record.counts)
        rest.add(record.agent, Counts().minus(record.counts))
    return _BillRows(
        rows=tuple(_row(unit, sums[unit], tills[unit]) for unit in shown),
        others=len(sums) - len(shown) + rows.more,
        rest=_row(_ALL, left, rest),
        totals=_row(_ALL, counts, totals),
    )


def _day(record: CountRecord) -> str:
    return datetime.fromtimestamp(record.start, UTC).date().isoformat()


class _BillRows(TypedDict):
    """The rows of a bill, and its sums."""

    rows: tuple[BillRow, ...]
    others: int
    rest: BillRow
    totals: BillRow


_ALL: Final[Unit] = (None, None, None, None)
_BILLED: Final = frozenset(Counts._fields) - {"waits"}
"""The counts that a row has: a person who is asked costs no tokens."""


def _row(unit: Unit, counts: Counts, till: AgentCosts) -> BillRow:
    day, principal, agent, session = unit
    return BillRow(
        day=day,
        principal=principal,
        agent=agent,
        session=session,
        **{name: count for name, count in counts._asdict().items() if name in _BILLED},
        money=till.money(),
        unpriced=till.without,
    )


async def _bill_steps(
    services: Services, query: BillQuery, days: Sequence[CountRecord], *, by_hours: bool
) -> tuple[BillStep, ...]:
    """Return the curve: by hours where that is wanted and known, else by days."""
    known = [(one.start, one.agent, one.counts) for one in days if one.start]
    until = _start(query.until or _date_of_today()) + _DAY
    since = _start(query.since) if query.since is not None else min((at for at, _, _ in known), default=until - _DAY)
    length = _DAY * max(1, math.ceil((until - since) / _DAY / MOST_STEPS))
    if by_hours and query.step_hours is not None:
        agents = query.agents if query.agent is None else frozenset({query.agent}) & (query.agents or {query.agent})
        of = CountFilter(agents=agents)
        sums = await services.store.sums(HOUR, since=since, until=until, by=("start", "agent"), of=of)
        counted = [(one.start, one.agent, one.counts) for one in sums.records]
        return _steps_of_curve(services, counted, since, until, 3_600 * query.step_hours)
    return _steps_of_curve(services, known, until - math.ceil((until - since) / length) * length, until, length)


def _steps_of_curve(
    services: Services,
    counted: Sequence[tuple[int, str, Counts]],
    since: int,
    until: int,
    length: int,
) -> tuple[BillStep, ...]:
    steps = [(start, AgentCosts(services.world.agents), [0, 0, 0, 0]) for start in range(since, until, length)]
    for start, agent, counts in counted:
        if since <= start < until:
            _, till, sums = steps[(start - since) // length]
            till.add(agent, counts)
            for at, one in enumerate((counts.tokens, counts.saved, counts.arguments, counts.results)):
                sums[at] += one
    return tuple(
        BillStep(
            start=start,
            end=start + length,
            tokens=tokens,
            saved=saved,
            arguments=arguments,
            results=results,
            money=till.money(),
        )
        for start, till, (tokens, saved, arguments, results) in steps
    )


def _start(day: date) -> int:
    return (day - _EPOCH) // timedelta(seconds=1)


_EPOCH: Final = date(1970, 1, 1)


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
