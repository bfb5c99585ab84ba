"""What each agent came to, and two agents beside each other: use, cost, tools, budget (F4, F5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.core.model.agents import Agent
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.sessions import DEFAULT
from pegboard.operators.counting import count_ahead
from pegboard.operators.masked import Name, mask_value, shown_names
from pegboard.operators.money import AgentCosts, Money
from pegboard.ports import CountFilter, CountRecord
from pegboard.ports.counts import HOUR, added_up, start_of

DAYS: Final = 7
"""Of how many days the figures are."""
MOST_NAMES: Final = 200
"""How many tools are named that only one of two agents has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """What an agent came to in the last week, and what it has.

    Attributes:
        agent: its name.
        calls: the calls that ran.
        errors: how many of them failed.
        tokens: those of lists, arguments and results.
        money: what they cost.
        unpriced: how many of the tokens have no price.
        last_at: when it was heard of last, to the hour, in seconds since the epoch; None where that is longer ago.
        loaded: how many tools it has from the start.
        loaded_tokens: those of these.
        allowed: how many tools it may use.
    """

    agent: Name
    calls: int
    errors: int
    tokens: int
    money: tuple[Money, ...]
    unpriced: int
    last_at: float | None
    loaded: int
    loaded_tokens: int
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSide:
    """One of two agents: its figures, how it is configured, and the tools that the other one may not use."""

    figures: AgentFigures
    dialect: str
    loadout: Name
    model: Name
    budget_tools: int | None
    budget_tokens: int | None
    toolkits: tuple[Name, ...]
    alone: tuple[Name, ...]
    more_alone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAgents:
    """Two agents beside each other; ``common`` is how many tools both may use."""

    one: AgentSide
    two: AgentSide
    common: int


async def agent_figures(
    services: Services, agents: Sequence[str], clock: Callable[[], float] = time.time
) -> tuple[AgentFigures, ...]:
    """Return the figures of agents, in their order; raises ``StoreError``."""
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    await services.billing.flush()
    until = start_of(HOUR, clock()) + HOUR.seconds
    since, of = until - DAYS * 86_400, CountFilter(agents=frozenset(agents))
    sums = await services.store.sums(HOUR, since=since, until=until, by=("start", "agent", "outcome"), of=of)
    by_agent: dict[str, list[CountRecord]] = {}
    for record in sums.records:
        by_agent.setdefault(record.agent, []).append(record)
    live: dict[str, float] = {}
    for info, at in services.live:
        live[info.key.agent] = max(at, live.get(info.key.agent, 0.0))
    loaded = {
        agent: tuple(active_tools(services.compiler.permissions_of_agent(agent), DEFAULT).values()) for agent in agents
    }
    await count_ahead(services, [one.tool for tools in loaded.values() for one in tools])
    found = tuple(
        _figures_of(services, agent, by_agent.get(agent, []), live.get(agent), [one.tool for one in loaded[agent]])
        for agent in agents
    )
    return mask_value(found, await shown_names(services))


def _figures_of(
    services: Services, agent: str, records: Sequence[CountRecord], live: float | None, loaded: Sequence[Tool]
) -> AgentFigures:
    till, whole = AgentCosts(services.world.agents), added_up(records)
    till.add(agent, whole.counts)
    last = max((record.start for record in records), default=None)
    return AgentFigures(
        agent=agent,
        calls=whole.counts.calls,
        errors=sum(record.counts.calls for record in records if record.outcome == "error"),
        tokens=whole.counts.all_tokens,
        money=till.money(),
        unpriced=till.without,
        last_at=live if live is not None else float(last) if last is not None else None,
        loaded=len(loaded),
        loaded_tokens=services.prices(tuple(loaded)),
        allowed=len(services.compiler.permissions_of_agent(agent).permitted),
    )


async def compare_agents(services: Services, one: Agent, two: Agent) -> ComparedAgents:
    """Return two agents beside each other; raises ``StoreError``."""
    figures = await agent_figures(services, [one.name, two.name])
    permitted = [
        {tool.id: tool.wire for tool in services.compiler.permissions_of_agent(agent.name).permitted}
        for agent in (one, two)
    ]
    first, second = permitted
    names = await shown_names(services)
    sides = [
        _side_of(agent, known, [wire for tool_id, wire in own.items() if tool_id not in other])
        for agent, known, own, other in zip((one, two), figures, permitted, (second, first), strict=True)
    ]
    found = ComparedAgents(one=sides[0], two=sides[1], common=len(first.keys() & second.keys()))
    return mask_value(found, names)


def _side_of(agent: Agent, figures: AgentFigures, alone: Sequence[str]) -> AgentSide:
    return AgentSide(
        figures=figures,
        dialect=agent.dialect,
        loadout=agent.loadout or "",
        model=agent.model,
        budget_tools=agent.budget.tools,
        budget_tokens=agent.budget.tokens,
        toolkits=agent.allowed_toolkits,
        alone=tuple(alone[:MOST_NAMES]),
        more_alone=max(0, len(alone) - MOST_NAMES),
    )
