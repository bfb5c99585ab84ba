"""How a request fails: one sentence on the page, or one JSON object, with what would be right."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pegboard.console.context import Context
from pegboard.console.visits import Visit
from pegboard.errors import PegboardError, StoreBusyError, StoreError, UnknownAgentError

STATUSES: Final = {
    "approval_ended": 409,
    "switch_changed": 409,
    "unknown_approval": 404,
    "unknown_name": 404,
    "unknown_server": 404,
    "unknown_session": 404,
}
"""The HTTP status of an error by its code; 400 of any other."""


def status_of(error: PegboardError) -> int:
    """Return the HTTP status that stands for an error."""
    if isinstance(error, UnknownAgentError):
        return 404
    if isinstance(error, StoreError):
        return 503
    return STATUSES.get(error.code, 400)


def failure_of(
    context: Context, request: Request, visit: Visit | None, status: int | None, error: PegboardError | str
) -> Response:
    """Return the answer to a request that failed; a script gets it as a notice, a program as JSON."""
    mask = context.board.services.masker.text
    code, message, hint = "refused", error if isinstance(error, str) else error.message, ""
    if isinstance(error, PegboardError):
        status, code, hint = status or status_of(error), error.code, error.hint
    if isinstance(error, StoreBusyError):
        hint = hint or "Another process keeps the store locked; try again."
    known = {"code": code, "message": mask(message), "hint": mask(hint)}
    answered = status or 400
    if request.url.path.startswith("/api"):
        return JSONResponse({"error": known}, status_code=answered)
    if visit is not None and visit.partial:
        text = context.templates.text("notice.html", notice={"kind": "error", "undo": None, **known}, csrf="")
        return Response(text, answered, {"HX-Retarget": "#notices", "HX-Reswap": "innerHTML", "HX-Reselect": ".notice"})
    return context.templates.page("failure.html", visit, status=answered, **known)
