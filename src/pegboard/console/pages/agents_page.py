"""The agents, and the switches of one of them."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.visits import Visit


async def agents(context: Context, visit: Visit) -> Response:
    """Show the agents that the operator sees."""
    return context.templates.page("agents.html", visit, agents=context.agents(visit))


PAGES: Final = (Page("/console/agents", agents),)
