"""What the palette finds, for programs."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.finding import FoundPages, find
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name


@received
class FindQuery:
    """What is looked for."""

    query: Annotated[Name, Field(max_length=200)] = ""
    """A page, an agent, a tool, a session or a server, or an agent and what it should do."""


async def find_all(context: Context, visit: OperatorRequest, *, query: FindQuery) -> FoundPages:
    """Return the pages, agents, tools, sessions and servers that answer a text, and what can be done with them.

    Each has the address of its page in the console; a page that would change something asks first.
    """
    return await find(context, visit, visit.names.shown(query.query))


ENDPOINTS: Final = (Endpoint("GET", "/api/find", find_all),)
"""The address of the palette."""
