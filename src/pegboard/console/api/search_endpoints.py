"""Search over the whole catalog, why an agent can or cannot call a tool, and what the palette finds."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.finding import FoundPages, find
from pegboard.console.operator_request import OperatorRequest
from pegboard.core.access.permissions import LOCAL
from pegboard.operators.explain import OperatorExplanation, explain_for_operator
from pegboard.operators.masked import Name
from pegboard.operators.search import SearchAnswer


@request_class
class CatalogSearch:
    """What is searched for, and for whom."""

    agent: Name
    """The agent whose model would search."""
    query: Name
    """A need in words, or a name."""
    principal: Name = LOCAL
    """The user (principal) of the session."""
    session: Name = ""
    """Its id; without it a new one."""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    """How many hits there are at most."""


@request_class
class Question:
    """Which tool is asked about, and for whom."""

    agent: Name
    """The agent."""
    name: Name
    """A tool or plugin; one that does not exist is explained, too."""
    principal: Name = LOCAL
    """The user (principal) of the session."""
    session: Name = ""
    """Its id; without it a new one."""
    sub_app: Name = ""
    """What the session was opened with."""


async def search(context: Context, visit: OperatorRequest, *, query: CatalogSearch) -> SearchAnswer:
    """Return what answers a text: what the agent's model would find, with what the scores are made of, and what else.

    It leaves no trace, so that it can be asked while someone types.
    """
    agent = context.agent(visit, query.agent).name
    return await context.subjects.search.for_agent(
        agent, query.query, principal=query.principal, session=query.session, limit=query.limit
    )


async def explain(context: Context, visit: OperatorRequest, *, query: Question) -> OperatorExplanation:
    """Return whether an agent can call a tool, every reason with its place, and what would make it callable."""
    agent = context.agent(visit, query.agent).name
    return await explain_for_operator(
        context.services,
        agent,
        query.name,
        principal=query.principal,
        session=query.session,
        sub_app=query.sub_app or None,
    )


_CODES: Final = ("unknown_agent", "usage")


@request_class
class FindQuery:
    """What is looked for."""

    query: Annotated[Name, Field(max_length=200)] = ""
    """A page, an agent, a tool, a session or a server, or an agent and what it should do."""


async def find_all(context: Context, visit: OperatorRequest, *, query: FindQuery) -> FoundPages:
    """Return the pages, agents, tools, sessions and servers that answer a text, and what can be done with them.

    Each has the address of its page in the console; a page that would change something asks first.
    """
    return await find(context, visit, visit.names.shown(query.query))


ENDPOINTS: Final = (
    Endpoint("GET", "/api/search", search, _CODES),
    Endpoint("GET", "/api/explain", explain, ("unknown_agent",)),
    Endpoint("GET", "/api/find", find_all),
)
