"""What went on in the last hour, day, week or longer: curves, and what was busiest (F4, F5)."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import nlargest
from typing import Final, Literal, TypeVar, get_args

from pegboard.board.services import Services
from pegboard.core.model.agents import Agent
from pegboard.errors import StoreError
from pegboard.operators.counting import SOON
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.money import ASSUMED, AgentCosts, Money
from pegboard.ports import CountFilter, CountRecord, CountUnit, UsageOutcome
from pegboard.ports.counts import DAY, HOUR, OTHER, STEP, Durations, added_up, milliseconds_of, start_of
from pegboard.support.background import BackgroundComputations

UsagePeriod = Literal["hour", "day", "week", "month", "quarter"]
"""How far back it may go."""
PERIODS: Final[Mapping[UsagePeriod, int]] = {
    "hour": 3_600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "quarter": 90 * 86_400,
}
"""How many seconds that is."""
MOST_STEPS: Final = 100
"""How many steps there are at most: a step of a longer time is that much longer."""
PART: Final = 25
"""How many stretches of time are read at once: at most some thousand rows, so that others may go on in between."""
FRESH: Final = 10.0
"""For how many seconds the answer for more than two hours is given again."""
STALE: Final = 120.0
"""For how many seconds it is given while it is read again, which takes up to a second."""
_COARSEST_OF: Final[Sequence[tuple[int, CountUnit, int]]] = (
    (2 * 3_600, STEP, 1),
    (2 * 86_400, HOUR, 1),
    (8 * 86_400, HOUR, 6),
)
"""Up to how many seconds which unit counts, and how many of it are a step; what is longer goes by days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStep:
    """What came of the time from ``start`` to ``end``, in seconds since the epoch.

    Attributes:
        start: when it begins.
        end: when it ends, which may be still to come.
        ok: the calls of tools that succeeded.
        errors: those that failed: also where the tool was too slow or could not run, or the caller gave up.
        refused: those that did not run: not permitted, not found, or arguments that do not fit.
        waits: how often a person was asked.
        p50: up to how many milliseconds half of the calls took that ran, as far as the counts tell; None without any.
        p95: the same of 95 in 100 of them.
        lists: the tool lists that models were sent.
        tokens: what those took.
        saved: what listing everything that the agent may use would have cost more.
        unknown: of how many lists that is not known.
        arguments: the tokens that models wrote to call.
        results: those of what they were answered.
        estimated: how many of both are an estimate.
    """

    start: int
    end: int
    ok: int
    errors: int
    refused: int
    waits: int
    p50: float | None
    p95: float | None
    lists: int
    tokens: int
    saved: int
    unknown: int
    arguments: int
    results: int
    estimated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What came of one agent, server or tool; of a tool ``server`` is what it is of. ``calls`` are those that ran.

    ``tokens`` and ``saved`` are of lists, which agents have; ``arguments`` and ``results`` of calls. ``money`` is what
    all of them cost, ``unpriced`` how many have no price.

    ``name`` is empty where what was refused is no tool, ``*`` of what was called too rarely to be told apart.
    """

    name: Name
    server: Name = ""
    calls: int
    errors: int
    refused: int
    waits: int
    p50: float | None
    p95: float | None
    tokens: int
    saved: int
    arguments: int
    results: int
    money: tuple[Money, ...] = ()
    unpriced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The steps of a time, oldest first, what they come to, and the busiest agents, servers and tools of it.

    Attributes:
        seconds: how long a step is.
        again_at: when it may be asked for anew, in seconds since the epoch, where it is of some seconds ago; else None.
        steps: what came of each step.
        totals: what came of all of them.
        money: what that cost.
        unpriced: how many tokens have no price.
        assumed: what the money stands on.
        agents: the busiest agents.
        servers: the busiest servers and plugins.
        tools: the busiest tools.
        more_agents: how many agents are not listed.
        more_servers: how many servers are not listed.
        more_tools: how many tools are not listed.
        damaged: how many rows of the store could not be read and do not count.
    """

    seconds: int
    again_at: float | None
    steps: tuple[UsageStep, ...]
    totals: UsageStep
    money: tuple[Money, ...]
    unpriced: int
    assumed: Verbatim
    agents: tuple[UsageRow, ...]
    servers: tuple[UsageRow, ...]
    tools: tuple[UsageRow, ...]
    more_agents: int
    more_servers: int
    more_tools: int
    damaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """What is wanted: the last so many seconds, of one agent or of some; ``limit`` rows of each kind at most."""

    seconds: int
    agent: str | None = None
    agents: frozenset[str] | None = None
    limit: int = 10


@dataclass(slots=True)
class _UsageSums:
    """What was read: by start and outcome, and by agent, server, tool and outcome, of each part of the time."""

    by_step: list[CountRecord] = field(default_factory=list[CountRecord])
    by_names: list[CountRecord] = field(default_factory=list[CountRecord])
    damaged: int = 0


class UsageReader:
    """Reads what went on; ``clock`` gives seconds since the epoch."""

    def __init__(self, services: Services, clock: Callable[[], float] = time.time) -> None:
        self._services = services
        self._clock = clock
        self._kept: dict[UsageQuery, tuple[float, Usage]] = {}
        self._reading = BackgroundComputations[UsageQuery, Usage]("read what went on", "what went on could not be read")

    async def aclose(self) -> None:
        """End what is being read for later."""
        await self._reading.aclose()

    async def usage(self, query: UsageQuery) -> Usage:
        """Return what went on by now; of more than two hours what was known within the last seconds.

        Raises:
            StoreError: it cannot be read.
        """
        now, read = self._clock(), partial(self._read_usage, query)
        if _steps_of(query.seconds)[0] is STEP:
            return await read()
        at, found = self._kept.get(query, (0.0, None))
        age = now - at
        if found is None or not 0 <= age < STALE:
            found = await self._reading.value_within(None, query, read)
        elif age >= FRESH:
            with suppress(StoreError):
                found = await self._reading.value_within(SOON, query, read) or replace(found, again_at=now + SOON)
        else:
            found = replace(found, again_at=at + FRESH)
        return found if found is not None else await read()

    async def _read_usage(self, query: UsageQuery) -> Usage:
        now = self._clock()
        await self._services.billing.flush()
        unit, count = _steps_of(query.seconds)
        length, until = unit.seconds * count, start_of(unit, now) + unit.seconds
        steps = max(1, math.ceil(query.seconds / length))
        # Steps of some hours begin at midnight (UTC); those of some days end with today.
        end = -(-until // length) * length if unit is HOUR else until
        since, agents = end - steps * length, query.agents
        if query.agent is not None:
            agents = frozenset({query.agent}) if agents is None else agents & {query.agent}
        sums = await self._read_sums(unit, since, until, agents)
        agents_now = self._services.world.agents
        found = mask_value(_usage(query, sums, since, length, steps, agents_now), await shown_names(self._services))
        self._kept = {one: kept for one, kept in self._kept.items() if 0 <= now - kept[0] < STALE}
        if unit is not STEP:
            self._kept[query] = now, found
        return found

    async def _read_sums(self, unit: CountUnit, since: int, until: int, agents: frozenset[str] | None) -> _UsageSums:
        store, part = self._services.store, PART * unit.seconds if unit is not DAY else 4 * unit.seconds
        sums = _UsageSums()
        for start in range(since, until, part):
            read = partial(store.sums, unit, since=start, until=min(start + part, until), of=CountFilter(agents=agents))
            sums.by_step += (await read(by=("start", "outcome"))).records
            named = await read(by=("agent", "server", "tool", "outcome"))
            sums.by_names += named.records
            sums.damaged += named.damaged
            await asyncio.sleep(0)
        return sums


def _steps_of(seconds: int) -> tuple[CountUnit, int]:
    """Return by which unit a time is shown, and how many of it are a step."""
    for most, unit, count in _COARSEST_OF:
        if seconds <= most:
            return unit, count
    return DAY, math.ceil(seconds / DAY.seconds / MOST_STEPS)


def _usage(
    query: UsageQuery, sums: _UsageSums, since: int, length: int, steps: int, configured: Mapping[str, Agent]
) -> Usage:
    by_step = _sums_by_outcome(sums.by_step, lambda one: (one.start - since) // length)
    totals = _sums_by_outcome(sums.by_step, lambda _: 0).get(0, {})
    whole = AgentCosts(configured)
    for one in sums.by_names:
        whole.add(one.agent, one.counts)
    of_calls = [one for one in sums.by_names if one.tool]
    agents, more_agents = _busiest_rows(query.limit, sums.by_names, lambda one: (one.agent, ""), configured)
    servers, more_servers = _busiest_rows(query.limit, of_calls, lambda one: (one.server, ""), configured)
    tools, more_tools = _busiest_rows(query.limit, of_calls, lambda one: (one.tool, one.server), configured)
    return Usage(
        seconds=length,
        again_at=None,
        steps=tuple(_step(since + at * length, length, by_step.get(at, {})) for at in range(steps)),
        totals=_step(since, steps * length, totals),
        money=whole.money(),
        unpriced=whole.without,
        assumed=ASSUMED,
        agents=agents,
        servers=servers,
        tools=tools,
        more_agents=more_agents,
        more_servers=more_servers,
        more_tools=more_tools,
        damaged=sums.damaged,
    )


_Key = TypeVar("_Key")
_Name = tuple[str, str]
"""What a row is of, and of a tool its server."""
_NONE: Final = CountRecord()
_REST: Final[_Name] = (OTHER, "")
_ByOutcome = Mapping[str, CountRecord]
_OUTCOMES: Final[tuple[UsageOutcome, ...]] = get_args(UsageOutcome)


def _sums_by_outcome(
    records: Iterable[CountRecord], key_of: Callable[[CountRecord], _Key]
) -> dict[_Key, dict[str, CountRecord]]:
    """Return what records come to by outcome, for each key."""
    parts: dict[tuple[_Key, str], list[CountRecord]] = {}
    for one in records:
        parts.setdefault((key_of(one), one.outcome), []).append(one)
    found: dict[_Key, dict[str, CountRecord]] = {}
    for (key, outcome), some in parts.items():
        found.setdefault(key, {})[outcome] = added_up(some)
    return found


def _busiest_rows(
    limit: int,
    records: Sequence[CountRecord],
    name_of: Callable[[CountRecord], _Name],
    configured: Mapping[str, Agent],
) -> tuple[tuple[UsageRow, ...], int]:
    """Return the rows of the busiest, what was too rare to be told apart behind them, and how many more there are."""

    def row_of(one: CountRecord) -> _Name:
        name = name_of(one)
        return _REST if name[0] == OTHER else name

    def busy(name: _Name) -> tuple[int, ...]:
        ok, error, refused, waits, listed = (found[name].get(one, _NONE).counts for one in _OUTCOMES)
        return ok.times + error.times, refused.times + waits.times, listed.tokens

    found = _sums_by_outcome((one for one in records if name_of(one)[0]), row_of)
    names = [name for name in found if name != _REST]
    shown = nlargest(limit, names, key=busy)
    more = len(names) - len(shown)
    shown += found.keys() & {_REST}
    tills = {name: AgentCosts(configured) for name in shown}
    for one in records:
        if (till := tills.get(row_of(one))) is not None:
            till.add(one.agent, one.counts)
    return tuple(_row(*name, found[name], tills[name]) for name in shown), more


def _row(name: str, server: str, counts: _ByOutcome, till: AgentCosts) -> UsageRow:
    step = _step(0, 0, counts)
    return UsageRow(
        name=name,
        server=server,
        calls=step.ok + step.errors,
        errors=step.errors,
        refused=step.refused,
        waits=step.waits,
        p50=step.p50,
        p95=step.p95,
        tokens=step.tokens,
        saved=step.saved,
        arguments=step.arguments,
        results=step.results,
        money=till.money(),
        unpriced=till.without,
    )


def _step(start: int, length: int, by_outcome: _ByOutcome) -> UsageStep:
    ok, errors, listed = (by_outcome.get(name, _NONE) for name in ("ok", "error", "listed"))
    durations = ok.plus(errors).durations
    return UsageStep(
        start=start,
        end=start + length,
        ok=ok.counts.times,
        errors=errors.counts.times,
        refused=by_outcome.get("refused", _NONE).counts.times,
        waits=by_outcome.get("waits", _NONE).counts.times,
        p50=percentile(durations, 0.50),
        p95=percentile(durations, 0.95),
        lists=listed.counts.requests,
        tokens=listed.counts.tokens,
        saved=listed.counts.saved,
        unknown=listed.counts.unknown,
        arguments=sum(one.counts.arguments for one in by_outcome.values()),
        results=sum(one.counts.results for one in by_outcome.values()),
        estimated=sum(one.counts.estimated for one in by_outcome.values()),
    )


def percentile(durations: Durations, share: float) -> float | None:
    """Return up to how many milliseconds a share of calls took, within 5%; None where there are none."""
    wanted, below = share * sum(durations.values()), 0
    for bucket in sorted(durations):
        below += durations[bucket]
        if below >= wanted:
            return milliseconds_of(bucket)
    return None
