"""What changed in servers' tools, or is new, and waits for a person: how it differs, and the answer (A4)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.pages.forms import Notice, after_form, offset_of, text_of
from pegboard.console.templating import number, query
from pegboard.console.visits import Visit

LIMIT: Final = 20
"""How many tools a page shows."""
_HOME: Final = "/console/pins"


async def pins(context: Context, visit: Visit) -> Response:
    """Show what waits, with how it differs from what was first seen."""
    context.require_every_agent(visit)
    given = visit.request.query_params
    server, offset = given.get("server", ""), offset_of(given)
    found = await context.operations.pins.page(server, offset=offset, limit=LIMIT)
    return context.templates.page(
        "pins.html",
        visit,
        found=found,
        server=server,
        offset=offset,
        limit=LIMIT,
        here=query(_HOME, server=server or None, offset=offset or None),
    )


async def count(context: Context, visit: Visit) -> Response:
    """Show how many tools wait."""
    context.require_every_agent(visit)
    waiting = await context.operations.pins.waiting()
    return context.templates.page("pins_count.html", visit, waiting_tools=waiting)


async def accept(context: Context, visit: Visit) -> Response:
    """Let a tool or all of a server count as it was shown."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    server, seen = text_of(form, "server"), text_of(form, "seen")
    accepted = await context.operations.pins.accept_seen(server, seen, by=visit.operator.name)
    counting = [one.name for one in accepted if one.waits]
    if len(counting) == 1:
        message = f"'{counting[0]}' counts as it is now."
    else:
        message = f"{number(len(counting))} tools of server '{server}' count as they are now."
    return after_form(context, visit, Notice(message=message, hint="From the next request on."), back=_HOME)


PAGES: Final = (
    Page(_HOME, pins),
    Page(f"{_HOME}/count", count),
    Page(f"{_HOME}/accept", accept, "POST", "configure"),
)
"""The addresses of pins."""
