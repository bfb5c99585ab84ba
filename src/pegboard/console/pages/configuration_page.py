"""The configuration: which file is in force since when, and what is wrong with its newest edit (F5)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.visits import Visit

MOST: Final = 100
"""How many problems are shown."""


async def configuration(context: Context, visit: Visit) -> Response:
    """Show what became of the newest reading of the configuration."""
    context.require_every_agent(visit)
    state = context.board.configuration_state
    errors = sum(problem.severity == "error" for problem in state.problems)
    return context.templates.page("configuration.html", visit, state=state, errors=errors, most=MOST)


PAGES: Final = (Page("/console/configuration", configuration),)
"""The address of the configuration."""
