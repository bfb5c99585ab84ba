"""The configuration: which file is in force since when, and what is wrong with its newest edit (F5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.forms import Notice, after_form, text_of
from pegboard.errors import UsageError

MOST: Final = 100
"""How many problems are shown."""


async def configuration(context: Context, visit: OperatorRequest) -> Response:
    """Show what became of the newest reading of the configuration."""
    context.require_every_agent(visit)
    state = await context.subjects.problems.added_to(context.board.configuration_state)
    errors = sum(problem.severity == "error" for problem in state.problems)
    waiting = _waiting(context)
    return context.templates.page(
        "configuration.html",
        visit,
        state=state,
        errors=errors,
        most=MOST,
        edits=waiting,
        seen=_seen(waiting),
    )


async def accept(context: Context, visit: OperatorRequest) -> Response:
    """Accept the edits that wait, if they still are what the operator was shown."""
    context.require_every_agent(visit)
    form = await visit.request.form()
    shown = context.board.waiting
    if text_of(form, "seen") != _seen(_waiting(context)):
        raise UsageError(
            "What waits has changed since.", code="switch_changed", hint="Look at what it is now, and decide again."
        )
    accepted = await context.board.accept(shown, by=visit.operator.name)
    count = len(accepted)
    message = f"{count} {'change' if count == 1 else 'changes'} of the configuration accepted."
    return after_form(
        context, visit, Notice(message=message, hint="It counts from the next request on."), back=_ADDRESS
    )


def _waiting(context: Context) -> list[str]:
    mask = context.board.services.masker.text
    return [mask(str(change)) for change in context.board.waiting]


def _seen(waiting: Sequence[str]) -> str:
    """Return what tells one list of changes from another."""
    return hashlib.sha256(json.dumps(waiting).encode(errors="surrogatepass")).hexdigest()


_ADDRESS: Final = "/console/configuration"
PAGES: Final = (
    Page(_ADDRESS, configuration),
    Page("/console/configuration/accept", accept, "POST", "configure"),
)
"""The addresses of the configuration."""
