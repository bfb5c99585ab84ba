"""The ASGI app of the console: pages under ``/console``, JSON under ``/api``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pegboard.console.api.endpoints import addresses, with_undecoded_path
from pegboard.console.console_board import ConsoleBoard
from pegboard.console.context import Context, Handler, require_right
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.entry.own_requests import HEADERS, bears_csrf, cookie_name
from pegboard.console.exports import RunningExports
from pegboard.console.operator_request import EVENTS, OperatorRequest
from pegboard.console.operator_views import OperatorViews
from pegboard.console.pages.all_pages import PAGES
from pegboard.console.pages.logins_page import CALLBACK, called_back, finish_login
from pegboard.console.pages.sign_in_page import ask_for_code, sign_in_page, signed_in, signed_out
from pegboard.console.refusals import failure_of, is_api, refusal_response
from pegboard.console.templating import FOLDER, Templates
from pegboard.console.updates.changes import COUNTED, Changes, Streams
from pegboard.core.principals.bearer_tokens import Right
from pegboard.errors import PegboardError, StoreError
from pegboard.operators.adding_servers import AddingServers
from pegboard.operators.attention import HookFault
from pegboard.operators.editing import Editing
from pegboard.operators.history import ConfigurationHistory
from pegboard.operators.masked import ShownNames, shown_names
from pegboard.operators.subjects import make_subjects
from pegboard.support.browser_requests import SAFE, is_foreign

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = logging.getLogger("pegboard.console")

RequestHandler = Callable[[Request], Awaitable[Response]]
_STATIC: Final = "/console/static"


class ConsoleApp:
    """The console of one board; ``close`` ends its streams, and what it computes beside its answers."""

    def __init__(
        self, board: ConsoleBoard, access: OperatorAccess, hooks: Callable[[], Sequence[HookFault]] = tuple
    ) -> None:
        self._changes = Changes(board)
        editing = Editing(board.services, board.editable)
        counted = partial(self._changes.tell, COUNTED)
        self._context = Context(
            board=board,
            services=board.services,
            subjects=make_subjects(board.services, counted),
            editing=editing,
            history=ConfigurationHistory(board.services, board.editable, editing),
            adding=AddingServers(board.services, board.servers_to_add, editing),
            access=access,
            streams=Streams(self._changes),
            exports=RunningExports(board.services),
            templates=Templates([page.path for page in PAGES if page.method == "GET"]),
            hooks=hooks,
        )
        context = self._context
        self._views = OperatorViews(context, counted)
        guarded = partial(_guard_handler, context, self._views)
        self._app = Starlette(
            routes=[
                Route("/console/sign-in", _open(context, sign_in_page)),
                Route("/console/sign-in", _open(context, signed_in), methods=["POST"]),
                Route("/console/sign-out", _open(context, signed_out), methods=["POST"]),
                Route(CALLBACK, _open(context, called_back)),
                Route(CALLBACK, _open(context, finish_login), methods=["POST"]),
                Route("/console/codes", _open(context, ask_for_code), methods=["POST"]),
                Mount(_STATIC, StaticFiles(directory=FOLDER / "static")),
                *(Route(page.path, guarded(page.handler, page.right), methods=[page.method]) for page in PAGES),
                *(Route(path, guarded(handler), methods=methods) for path, (methods, handler) in addresses().items()),
            ],
            exception_handlers={HTTPException: _not_here},
        )
        self._app.state.context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with the headers that every answer has."""

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if message["status"] >= 400 or not scope["path"].startswith(_STATIC):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(with_undecoded_path(scope) if is_api(scope["path"]) else scope, receive, with_headers)

    async def close(self) -> None:
        """End every stream, and what is being computed for later."""
        self._changes.close()
        await self._views.aclose()
        await self._context.subjects.aclose()


def _open(context: Context, handler: Callable[[Context, Request], Awaitable[Response]]) -> RequestHandler:
    """Return an endpoint for those who are not signed in."""

    async def endpoint(request: Request) -> Response:
        if is_foreign(request.method, request.headers):
            return failure_of(context, request, None, 403, "This request came from another site, so nothing was done.")
        return await handler(context, request)

    return endpoint


def _guard_handler(context: Context, views: OperatorViews, handler: Handler, right: Right = "see") -> RequestHandler:
    """Return an endpoint for operators; what fails is said in one sentence."""

    async def endpoint(request: Request) -> Response:
        visit = _visit(context, request)
        if visit is None:
            return _sign_in_first(context, request)
        try:
            visit = replace(visit, names=await shown_names(context.board.services))
            if refusal := await _refusal(visit):
                return failure_of(context, request, visit, 403, refusal)
            require_right(visit, right)
            seen = await views.context_of(visit.operator)
            return await handler(seen, await _prepare_page(seen, visit))
        except PegboardError as error:
            return failure_of(context, request, visit, None, error)
        except HTTPException as error:
            return failure_of(context, request, visit, error.status_code, _why_failed(request, error))
        except Exception:
            log.exception("the console could not answer %s %s", request.method, request.url.path)
            return failure_of(context, request, visit, 500, "Internal error; see the gateway log.")

    return endpoint


async def _prepare_page(context: Context, visit: OperatorRequest) -> OperatorRequest:
    """Return the visit with what stands around a page, where a whole one is asked for."""
    path = visit.request.url.path
    if visit.partial or visit.request.method not in SAFE or is_api(path) or path == EVENTS:
        return visit
    if visit.request.method == "GET":
        # Before anything is read: what changes meanwhile comes with the stream.
        visit = replace(visit, stream=visit.stream + await context.streams.after_now())
    with suppress(StoreError):
        visit = replace(visit, attention=await context.attention(visit))
        return replace(visit, waiting=await context.subjects.approvals.waiting(visit.operator.sees))
    return visit


def _visit(context: Context, request: Request) -> OperatorRequest | None:
    access = context.access
    sign_in = None
    if request.headers.get("authorization") is not None:
        operator = access.bearer(request.headers["authorization"])
    else:
        sign_in = access.signed_in(request.cookies.get(cookie_name(request)))
        operator = sign_in.operator if sign_in is not None else None
    if operator is None:
        return None
    return OperatorRequest(
        request=request, operator=operator, sign_in=sign_in, names=ShownNames(context.board.services.masker)
    )


async def _refusal(visit: OperatorRequest) -> str:
    """Return why a request is not the operator's own, or nothing."""
    request, sign_in = visit.request, visit.sign_in
    if sign_in is None:
        return ""
    if is_foreign(request.method, request.headers):
        return "This request came from another site, so nothing was done."
    if request.method not in SAFE and not await bears_csrf(request, sign_in):
        return "This form is not from a page of this sign-in; nothing was done. Load the page again."
    return ""


def _sign_in_first(context: Context, request: Request) -> Response:
    if is_api(request.url.path):
        known = context.access.is_known(request.headers.get("authorization"))
        message = "A bearer token of an operator is required."
        hint = "Its entry under `tokens:` has `console: true`."
        return refusal_response(403 if known else 401, "operator_required", message, hint)
    target = "/console/sign-in"
    code = request.query_params.get("code")
    if request.headers.get("hx-request") == "true":
        return Response(status_code=401, headers={"HX-Redirect": target})
    if request.url.path == EVENTS:
        return Response(status_code=401)
    return RedirectResponse(f"{target}?code={code}" if code else target, status_code=303)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    context: Context = request.app.state.context
    visit = _visit(context, request)
    if visit is None:
        return _sign_in_first(context, request)
    response = failure_of(context, request, visit, error.status_code, _why_failed(request, error))
    response.headers.update(error.headers or {})
    return response


def _why_failed(request: Request, error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return "There is no such address."
        case 405:
            return f"{request.method} is not possible here."
        case _:
            return f"This form cannot be read: {error.detail}"
