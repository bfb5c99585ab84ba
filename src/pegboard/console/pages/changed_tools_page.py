"""What changed in servers' tools, or is new, and waits for a person: how it differs, and the answer (A4)."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, UndoForm, after_form, offset_of, text_of
from pegboard.console.pages.servers_page import server_head
from pegboard.console.templating import format_number, query

LIMIT: Final = 20
"""How many tools a page shows."""
_HOME: Final = "/console/changed-tools"


async def pins(context: Context, visit: OperatorRequest) -> Response:
    """Show what waits, with how it differs from what was first seen."""
    context.require_every_agent(visit)
    given = visit.request.query_params
    server, offset = given.get("server", ""), offset_of(given)
    found = await context.subjects.pins.page(server, offset=offset, limit=LIMIT)
    one, standing = await server_head(context, visit.names.meant(server)) if server else (None, None)
    return context.templates.page(
        "changed_tools.html",
        visit,
        found=found,
        one=one,
        standing=standing,
        server=server,
        offset=offset,
        limit=LIMIT,
        here=query(_HOME, server=server or None, offset=offset or None),
    )


async def accept(context: Context, visit: OperatorRequest) -> Response:
    """Let a tool or all of a server count as it was shown."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    server, seen = text_of(form, "server"), text_of(form, "seen")
    confirm = text_of(form, "confirm").strip() if "confirm" in form else ""
    accepted = await context.subjects.pins.accept_seen(server, seen, by=visit.operator.name, confirm=confirm)
    counting = [one.name for one in accepted.tools if one.waits]
    if len(counting) == 1:
        message = f"'{counting[0]}' is accepted in its current form."
    else:
        message = f"{format_number(len(counting))} tools of server '{server}' are accepted in their current form."
    undo = UndoForm(action=f"{_HOME}/undo", fields={"mark": accepted.mark})
    return after_form(
        context, visit, Notice(message=message, hint="This applies from the next request.", undo=undo), back=_HOME
    )


async def take_back(context: Context, visit: OperatorRequest) -> Response:
    """Let the pins count again that an acceptance has replaced."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    count = await context.subjects.pins.take_back(text_of(form, "mark"), by=visit.operator.name)
    message = f"{format_number(count)} {'tool is' if count == 1 else 'tools are'} again as pinned before."
    return after_form(context, visit, Notice(message=message, hint="This applies from the next request."), back=_HOME)


PAGES: Final = (
    Page(_HOME, pins),
    Page(f"{_HOME}/accept", accept, "POST", "configure"),
    Page(f"{_HOME}/undo", take_back, "POST", "configure"),
)
"""The addresses of pins."""
