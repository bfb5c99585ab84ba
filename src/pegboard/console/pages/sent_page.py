"""What the model of a session sees: the list as it is sent next or was sent, what it costs, and what differs."""

from __future__ import annotations

from typing import Final, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operated_sessions import sent_to_model
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.calls_page import DIGITS
from pegboard.console.pages.sessions_page import key_of
from pegboard.console.sent_forms import SentForm, in_form
from pegboard.console.templating import query
from pegboard.errors import UsageError

TOOLS: Final = 200
"""How many tools have a row; the JSON has all of them."""
FORMS: Final[dict[SentForm, str]] = {
    "mcp": "MCP client",
    "anthropic": "Anthropic Messages",
    "responses": "OpenAI Responses",
    "chat": "OpenAI Chat",
}


async def sent_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what the model sees, or what it was sent, as rows and as JSON."""
    given = visit.request.query_params
    form, step = _form(given.get("form", "")), _step(given.get("step", ""))
    sent = await sent_to_model(context, visit, key_of(context, visit, given), step)
    names = {"principal": sent.principal, "agent": sent.agent, "session": sent.session}
    shown = {**names, **({"step": step} if step is not None else {})}
    return context.templates.page(
        "sent.html",
        visit,
        sent=sent,
        json=in_form(sent, form),
        form=form,
        forms=FORMS,
        most=TOOLS,
        session=query("/console/session", **names),
        addresses={one: query("/console/session/sent", **shown, form=one) for one in FORMS},
        steps={one.number: query("/console/session/sent", **names, step=one.number, form=form) for one in sent.before},
        newest=query("/console/session/sent", **names, form=form),
        here=query("/console/session/sent", **shown, form=form),
    )


def _step(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= DIGITS):
        raise UsageError("A list that was sent is named by its number.", hint="Use the links of the page.")
    return int(text)


def _form(text: str) -> SentForm:
    match text:
        case "mcp" | "anthropic" | "responses" | "chat":
            return text
        case "":
            return "mcp"
        case _:
            raise UsageError("There is no such form.", hint=f"Forms: {', '.join(get_args(SentForm))}.")


PAGES: Final = (Page("/console/session/sent", sent_page),)
