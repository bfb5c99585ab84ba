"""What the model of a session sees: the list as it is sent next, what each part costs, and what differs from before."""

from __future__ import annotations

from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operated_sessions import sent_to_model
from pegboard.console.pages.sessions_page import key_of
from pegboard.console.sent_forms import SentForm, in_form
from pegboard.console.templating import query
from pegboard.console.visits import Visit
from pegboard.errors import UsageError

TOOLS: Final = 200
"""How many tools have a row; the JSON has all of them."""
FORMS: Final[dict[SentForm, str]] = {
    "mcp": "MCP client",
    "anthropic": "Anthropic Messages",
    "responses": "OpenAI Responses",
    "chat": "OpenAI Chat",
}


async def sent_page(context: Context, visit: Visit) -> Response:
    """Show what the model sees, as rows and as JSON."""
    form = _form(visit.request.query_params.get("form", ""))
    key = key_of(context, visit, visit.request.query_params)
    sent = await sent_to_model(context, visit, key)
    names = {"principal": sent.principal, "agent": sent.agent, "session": sent.session}
    return context.templates.page(
        "sent.html",
        visit,
        sent=sent,
        json=in_form(sent, form),
        form=form,
        forms=FORMS,
        most=TOOLS,
        session=query("/console/session", **names),
        addresses={one: query("/console/session/sent", **names, form=one) for one in FORMS},
        here=query("/console/session/sent", **names, form=form),
    )


def _form(text: str) -> SentForm:
    match text:
        case "mcp" | "anthropic" | "responses" | "chat":
            return text
        case "":
            return "mcp"
        case _:
            raise UsageError("There is no such form.", hint=f"Forms: {', '.join(get_args(SentForm))}.")


PAGES: Final = (Page("/console/session/sent", sent_page),)
