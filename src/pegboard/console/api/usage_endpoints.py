"""What needs a person, and what went on."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.attention import Attention
from pegboard.operators.masked import Name
from pegboard.operators.server_usage import ServerUsage
from pegboard.operators.server_usage import server_usage as read_server_usage
from pegboard.operators.usage import PERIODS, Usage, UsagePeriod, UsageQuery


@received
class UsageOf:
    """What is wanted of what went on."""

    period: UsagePeriod = "hour"
    """How far back it goes; a quarter is 90 days."""
    agent: Name = ""
    """Only what this agent did."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many agents, servers and tools there are at most, the busiest first."""


async def attention(context: Context, visit: OperatorRequest) -> Attention:
    """Return what needs a person, the most urgent first.

    Servers, edits and problems are there for operators of every agent.
    """
    return await context.attention(visit)


async def usage(context: Context, visit: OperatorRequest, *, query: UsageOf) -> Usage:
    """Return what went on: calls by outcome, how long they took, tokens; and what was busiest."""
    wanted = UsageQuery(
        seconds=PERIODS[query.period],
        agent=context.agent_of_list(visit, query.agent),
        agents=visit.operator.agents,
        limit=query.limit,
    )
    return await context.subjects.usage.usage(wanted)


async def usage_of_servers(context: Context, visit: OperatorRequest) -> tuple[ServerUsage, ...]:
    """Return what came of every server and plugin that was called in the last 24 hours, the busiest first."""
    context.require_every_agent(visit)
    return await read_server_usage(context.services)


_EVERY: Final = ("every_agent_required",)
ENDPOINTS: Final = (
    Endpoint("GET", "/api/attention", attention),
    Endpoint("GET", "/api/usage", usage, ("unknown_agent",)),
    Endpoint("GET", "/api/usage/servers", usage_of_servers, _EVERY),
)
