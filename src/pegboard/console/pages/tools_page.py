"""All tools, by search; and the clients that are connected (F5, G1)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import kept_address, offset_of
from pegboard.console.templating import query
from pegboard.operators.clients import connected_clients
from pegboard.operators.tool_list import list_tools

ROWS: Final = 50
_HOME: Final = "/console/tools"
LONGEST: Final = 200
"""How many characters of what is typed are looked for."""


async def tools_page(context: Context, visit: OperatorRequest) -> Response:
    """Show all tools, or what answers a text."""
    given = visit.request.query_params
    text, offset = given.get("q", "")[:LONGEST], offset_of(given)
    agents = [agent.name for agent in context.agents(visit)]
    found = await list_tools(
        context.services,
        context.subjects.search,
        agents,
        query=visit.names.meant(text),
        offset=offset,
        limit=ROWS,
    )
    here = query(_HOME, q=text, offset=offset or None)
    page = context.templates.page(
        "tools.html", visit, found=found, words=text, offset=offset, limit=ROWS, agents=len(agents), here=here
    )
    return kept_address(page, here)


async def clients_page(context: Context, visit: OperatorRequest) -> Response:
    """Show the clients that reached this process."""
    found = await connected_clients(context.services, visit.operator.sees)
    return context.templates.page("clients.html", visit, clients=found)


PAGES: Final = (Page(_HOME, tools_page), Page("/console/clients", clients_page))
"""The addresses of tools and clients."""
