"""Calls that wait for a person: what they would do, and the answers to them (A1–A3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast, get_args

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.pages.forms import Notice, Undo, after_form, offset_of, text_of
from pegboard.console.sent_fields import FIELD, filled_in, meant_fields
from pegboard.console.visits import Visit
from pegboard.core.access.approvals.approval import ApprovalStatus, Lasting
from pegboard.errors import UsageError
from pegboard.operators.approvals import ApprovalOverview

LIMIT: Final = 20
"""How many calls that wait, or rows, a page shows."""
_HOME: Final = "/console/approvals"


async def approvals(context: Context, visit: Visit) -> Response:
    """Show what waits, and what was allowed and still counts."""
    offset = offset_of(visit.request.query_params)
    found = await context.operations.approvals.open(visit.operator.sees, offset=offset, limit=LIMIT)
    return context.templates.page("approvals.html", visit, found=found, offset=offset, limit=LIMIT)


async def ended(context: Context, visit: Visit) -> Response:
    """Show what was refused, is used or has expired."""
    offset = offset_of(visit.request.query_params)
    found = await context.operations.approvals.ended(visit.operator.sees, offset=offset, limit=LIMIT)
    return context.templates.page("ended_approvals.html", visit, found=found, offset=offset, limit=LIMIT)


async def waiting(context: Context, visit: Visit) -> Response:
    """Show how many calls wait."""
    found = await context.operations.approvals.waiting(visit.operator.sees)
    return context.templates.page("waiting.html", visit, waiting=found)


async def approval(context: Context, visit: Visit) -> Response:
    """Show one approval, with all of its arguments."""
    found = await context.operations.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    return context.templates.page("approval.html", visit, one=found)


async def allow_form(context: Context, visit: Visit) -> Response:
    """Show what a call can be allowed for, and the fields that it asks for."""
    found = await context.operations.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    return _allow_form(context, visit, found)


async def refuse_form(context: Context, visit: Visit) -> Response:
    """Show where the words for the model go."""
    found = await context.operations.approvals.one(visit.request.query_params.get("id", ""), visit.operator.sees)
    return context.templates.page("refuse.html", visit, one=found)


async def allow(context: Context, visit: Visit) -> Response:
    """Allow a call as the form says."""
    form = await visit.request.form()
    found = await context.operations.approvals.one(text_of(form, "id"), visit.operator.sees)
    fields = meant_fields(found.fields, filled_in(found.fields, form), visit.names)
    if found.fields:
        problems = await context.operations.approvals.field_problems(found.id, fields, visit.operator.sees)
        if problems:
            wrong = {problem.name: problem.text for problem in reversed(problems)}
            return _allow_form(context, visit, found, given=form, wrong=wrong)
    allowed = await context.board.approvals.allow(
        found.id,
        by=visit.operator.name,
        lasts=cast("Lasting", text_of(form, "lasts")),  # the board refuses any other
        fields=fields if found.fields else None,
        expected=_expected(form),
    )
    undo = Undo(action=f"{_HOME}/refuse", fields={"id": found.id, "expected": "allowed"})
    notice = Notice(message=f"'{found.tool}': {_meaning(found, allowed.lasts)}.", undo=undo)
    return after_form(context, visit, notice, back=_HOME)


async def refuse(context: Context, visit: Visit) -> Response:
    """Refuse a call, or take back what was allowed."""
    form = await visit.request.form()
    found = await context.operations.approvals.one(text_of(form, "id"), visit.operator.sees)
    reason, expected = str(form.get("reason") or ""), _expected(form)
    await context.board.approvals.refuse(found.id, by=visit.operator.name, reason=reason, expected=expected)
    if found.lasts == "once":
        return after_form(context, visit, Notice(message=f"'{found.tool}' is refused."), back=_HOME)
    fields = {"id": found.id, "lasts": found.lasts, "expected": "refused"}
    notice = Notice(
        message=f"'{found.tool}': a call of it needs an approval again.",
        undo=Undo(action=f"{_HOME}/allow", fields=fields),
    )
    return after_form(context, visit, notice, back=_HOME)


def _allow_form(
    context: Context,
    visit: Visit,
    found: ApprovalOverview,
    *,
    given: Mapping[str, Any] | None = None,
    wrong: Mapping[str, str] | None = None,
) -> Response:
    texts = {one.name: str((given or {}).get(FIELD + one.name, one.text)) for one in found.fields}
    status = 422 if wrong else 200
    return context.templates.page(
        "allow.html", visit, status=status, one=found, texts=texts, wrong=wrong or {}, prefix=FIELD
    )


def _meaning(found: ApprovalOverview, lasts: Lasting) -> str:
    """Return what an answer lets through, for people."""
    match lasts:
        case "once":
            return "this call may run once"
        case "session":
            return f"every call of it may run in session '{found.session}' of agent '{found.agent}'"
        case "always":
            return f"every call of it by agent '{found.agent}' for '{found.principal}' may run"


def _expected(form: Mapping[str, Any]) -> ApprovalStatus:
    """Return what the page showed; raises ``UsageError`` where the form does not say it."""
    text = text_of(form, "expected")
    for status in get_args(ApprovalStatus):
        if text == status:
            return status
    raise UsageError("`expected` is none of the states of an approval.", hint="Load the page again.")


PAGES: Final = (
    Page(_HOME, approvals),
    Page(f"{_HOME}/ended", ended),
    Page(f"{_HOME}/waiting", waiting),
    Page(f"{_HOME}/one", approval),
    Page(f"{_HOME}/allow", allow_form),
    Page(f"{_HOME}/refuse", refuse_form),
    Page(f"{_HOME}/allow", allow, "POST", "approve"),
    Page(f"{_HOME}/refuse", refuse, "POST", "approve"),
)
"""The addresses of approvals."""
