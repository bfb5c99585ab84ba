"""All tools, what they and agents came to, two agents beside each other, and the clients that are connected."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.agent_figures import AgentFigures, ComparedAgents, agent_figures, compare_agents
from pegboard.operators.clients import ClientOverview, connected_clients
from pegboard.operators.masked import Name
from pegboard.operators.tool_figures import FigureUnit, ToolFigures, tool_figures
from pegboard.operators.tool_list import ToolPage, list_tools


@request_class
class ToolsQuery:
    """Which tools are listed."""

    query: Annotated[Name, Field(max_length=200)] = ""
    """A need in words, or a name."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """How many there are at most."""


@request_class
class FiguresQuery:
    """What the rows stand for, and of how many days."""

    by: FigureUnit = "tool"
    """Toolkit, server or tool."""
    days: Annotated[int, Field(ge=1, le=400)] = 7
    """How many days back, today among them."""


@request_class
class TwoAgents:
    """Which agents are compared."""

    one: Name
    """The one."""
    two: Name
    """The other."""


async def tools(context: Context, visit: OperatorRequest, *, query: ToolsQuery) -> ToolPage:
    """Return tools with their servers, tokens, calls, failures, and how many agents may use each."""
    agents = [agent.name for agent in context.agents(visit)]
    return await list_tools(
        context.services, context.subjects.search, agents, query=query.query, offset=query.offset, limit=query.limit
    )


async def figures(context: Context, visit: OperatorRequest, *, query: FiguresQuery) -> tuple[ToolFigures, ...]:
    """Return what tools, servers or toolkits came to, what cost most first."""
    return await tool_figures(context.services, query.by, days=query.days, agents=visit.operator.agents)


async def figures_of_agents(context: Context, visit: OperatorRequest) -> tuple[AgentFigures, ...]:
    """Return what each agent came to in the last week, and how many tools it has."""
    return await agent_figures(context.services, [agent.name for agent in context.agents(visit)])


async def compared(context: Context, visit: OperatorRequest, *, query: TwoAgents) -> ComparedAgents:
    """Return two agents beside each other."""
    return await compare_agents(context.services, context.agent(visit, query.one), context.agent(visit, query.two))


async def list_clients(context: Context, visit: OperatorRequest) -> tuple[ClientOverview, ...]:
    """Return the clients that reached this process, the one heard of last first."""
    return await connected_clients(context.services, visit.operator.sees)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/tools", tools),
    Endpoint("GET", "/api/tool-figures", figures),
    Endpoint("GET", "/api/agent-figures", figures_of_agents),
    Endpoint("GET", "/api/agent-figures/compare", compared, ("unknown_agent",)),
    Endpoint("GET", "/api/connected-clients", list_clients),
)
