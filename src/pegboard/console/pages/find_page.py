"""The palette as a page: one field over pages, agents, tools, sessions, servers and what can be done with them."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.finding import find
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import query

_ADDRESS: Final = "/console/find"
LONGEST: Final = 200
"""How many characters of what is typed are looked for."""


async def find_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what answers a text; for the palette the list alone."""
    text = visit.request.query_params.get("q", "")[:LONGEST]
    found = await find(context, visit, text)
    page = context.templates.page("find.html", visit, found=found, here=query(_ADDRESS, q=text))
    if found.indexing and not visit.partial:
        page.headers["Refresh"] = "1"
    return page


PAGES: Final = (Page(_ADDRESS, find_page),)
"""The address of the palette."""
