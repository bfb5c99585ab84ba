"""History: each text that the configuration had, and what people changed since a moment (P10, X4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.editing_page import to_proposal
from pegboard.console.pages.forms import kept_address, moment_of, text_of
from pegboard.console.sent_fields import number_of_version
from pegboard.console.templating import query
from pegboard.errors import UsageError
from pegboard.operators.history import changes_since

_HOME: Final = "/console/history"
DAYS: Final = {"1": "24 hours", "3": "3 days", "7": "7 days", "30": "30 days"}


async def history_page(context: Context, visit: OperatorRequest) -> Response:
    """Show what people changed since a moment, and for operators of every agent the versions of the file."""
    given = {name: visit.request.query_params.get(name, "").strip() for name in ("days", "since", "zone")}
    here = query(_HOME, **given)
    every = visit.operator.agents is None
    page = context.templates.page(
        "history.html",
        visit,
        versions=await context.history.versions() if every and context.board.editable.exists else (),
        every=every,
        changes=await changes_since(context.services, _parse_since(**given), agents=visit.operator.agents),
        given=given,
        choices=tuple(DAYS.items()),
        here=here,
    )
    return kept_address(page, here)


def _parse_since(days: str, since: str, zone: str) -> datetime:
    """Return the moment that is asked for, by default a week ago; raises ``UsageError`` where it is none."""
    found = moment_of("since", since, zone)
    if found is not None:
        return found
    if days and days not in DAYS:
        raise UsageError("`days` is not one of the known values.", hint=f"Choose one of {', '.join(DAYS)}.")
    return datetime.now(UTC) - timedelta(days=int(days or 7))


async def version_page(context: Context, visit: OperatorRequest) -> Response:
    """Show a version: what it changed, and what restoring it would change."""
    context.require_every_agent(visit)
    given = visit.request.query_params
    number = number_of_version(given["number"]) if "number" in given else None
    found = await (
        context.history.version(number) if number is not None else context.history.version_at(given.get("at", ""))
    )
    return context.templates.page("version.html", visit, found=found)


async def restore(context: Context, visit: OperatorRequest) -> Response:
    """Propose to put a version in the place of the file."""
    context.require_every_agent(visit)
    number = number_of_version(text_of(await visit.request.form(), "number"))
    return to_proposal(await context.history.restore(context.editor(visit), number), _HOME)


PAGES: Final = (
    Page(_HOME, history_page),
    Page(f"{_HOME}/version", version_page),
    Page(f"{_HOME}/restore", restore, "POST", "configure"),
)
"""The addresses of the history."""
