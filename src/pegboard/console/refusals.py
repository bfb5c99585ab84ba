"""How a request fails: one sentence on the page, or one JSON object, with what would be right."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.errors import PegboardError, StoreBusyError, StoreError
from pegboard.support.browser_requests import SAFE

STATUSES: Final = {
    "approval_changed": 409,
    "approval_ended": 409,
    "bad_request": 422,
    "body_too_large": 413,
    "confirmation_required": 409,
    "edit_refused": 409,
    "every_agent_required": 403,
    "file_changed": 409,
    "file_exists": 409,
    "not_again": 409,
    "name_taken": 409,
    "not_json": 415,
    "operator_required": 401,
    "right_required": 403,
    "server_exists": 409,
    "switch_changed": 409,
    "pin_changed": 409,
    "too_many_exports": 429,
    "too_many_pages": 503,
    "unknown_agent": 404,
    "unknown_approval": 404,
    "unknown_call": 404,
    "unknown_edit": 404,
    "unknown_name": 404,
    "unknown_session": 404,
    "unknown_version": 404,
}
"""The HTTP status of an error by its code; 503 of the store's, 400 of any other."""
_GONE: Final = {"unknown_agent", "unknown_approval", "unknown_call", "unknown_name", "unknown_session"}
"""What an open page may find when it asks for a part again: no fault, which a browser would write into its console."""
_CODES: Final = {403: "forbidden", 404: "not_found", 405: "method_not_allowed", 500: "internal_error"}
"""What a program reads where nothing but the status says what is wrong."""
AS_NOTICE: Final = {"HX-Retarget": "#notices", "HX-Reswap": "innerHTML", "HX-Reselect": ".notice"}
"""What makes a script show an answer as a notice, whatever it was asked for; ``HX-Trigger: done`` closes the dialog."""


def status_of(code: str) -> int:
    """Return the HTTP status that stands for the code of an error."""
    return STATUSES.get(code, 503 if code.startswith("store_") else 400)


def is_api(path: str) -> bool:
    """Return whether an address is answered with JSON."""
    return path == "/api" or path.startswith("/api/")


def refusal_response(status: int, code: str, message: str, hint: str = "") -> Response:
    """Return what a program reads of a request that failed."""
    headers = {"WWW-Authenticate": 'Bearer realm="pegboard"'} if status == 401 else {}
    error = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def failure_of(
    context: Context, request: Request, visit: OperatorRequest | None, status: int | None, error: PegboardError | str
) -> Response:
    """Return the answer to a request that failed; a script gets it as a notice, a program as JSON."""
    mask = context.board.services.masker.text
    code, message, hint = _CODES.get(status or 400, "refused"), str(error), ""
    if isinstance(error, PegboardError):
        status, code, message, hint = status or _status(error), error.code, error.message, error.hint
    if isinstance(error, StoreBusyError):
        hint = hint or "Another process keeps the store locked; try again."
    known = {"code": code, "message": mask(message), "hint": mask(hint)}
    answered = status or 400
    if is_api(request.url.path):
        return refusal_response(answered, **known)
    if visit is not None and visit.partial:
        text = context.templates.text("notice.html", notice={"kind": "error", "undo": None, **known}, csrf="")
        if request.method in SAFE:
            return HTMLResponse(text, 200 if code in _GONE else answered, AS_NOTICE)
        return HTMLResponse(text, answered, {**AS_NOTICE, "HX-Trigger": "done"})
    return context.templates.page("failure.html", visit, status=answered, **known)


def _status(error: PegboardError) -> int:
    return 503 if isinstance(error, StoreError) else status_of(error.code)
