"""The agents, and the switches of one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.visits import Visit


async def agents(context: Context, visit: Visit) -> Response:
    """Show the agents that the operator sees."""
    mask = context.board.services.masker.text
    seen = [replace(one, display_name=mask(one.display_name), role=mask(one.role)) for one in context.agents(visit)]
    return context.templates.page("agents.html", visit, agents=seen)


PAGES: Final = (Page("/console/agents", agents),)
