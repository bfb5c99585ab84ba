"""Logging in to a server and out of it, as the principal that the operator is (G11).

The issuer sends the browser back from another site: the cookie of the sign-in does not come along then, so that the
page which it comes to has a button, and that asks again from here. Its form carries no proof of a sign-in: the address
itself is one, for it holds the ``state`` that only the browser which began the login was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response

from pegboard.console.context import Context, Page
from pegboard.console.entry.own_requests import cookie_name
from pegboard.console.pages.forms import Notice, after_form, keep_notice, text_of
from pegboard.console.pages.sign_in_page import keep_signed_in, sign_in_with
from pegboard.console.refusals import failure_of
from pegboard.console.templating import query
from pegboard.core.access.instances import LoginOwner
from pegboard.errors import PegboardError, UsageError
from pegboard.operators.masked import shown_names

if TYPE_CHECKING:
    from starlette.requests import Request

    from pegboard.console.entry.operator_access import Operator, SignIn
    from pegboard.console.operator_request import OperatorRequest
    from pegboard.core.access.logins import PendingLogin

CALLBACK: Final = "/console/login/callback"
_GONE: Final = "No login is pending under this address: it was completed, has expired, or belongs to another person."


async def start_login(context: Context, visit: OperatorRequest, server: str) -> PendingLogin:
    """Begin a login of the operator; the browser comes back to the console as it was asked here.

    Raises:
        UsageError: no agent of theirs may use such a server, or it wants no login of theirs.
        ToolUnavailableError: it does not answer, or no login can be made.
    """
    logins, operator, request = context.subjects.logins, visit.operator, visit.request
    logins.require_used(server, operator.agents)
    back = f"{request.url.scheme}://{request.headers['host']}{CALLBACK}"
    pending = await logins.begin(server, LoginOwner(operator.name), redirect=back)
    if pending is None:
        raise UsageError(f"'{visit.names.shown(server)}' requires no login, or you have a valid one.")
    return pending


async def forget_login(context: Context, visit: OperatorRequest, server: str) -> bool:
    """Forget the login of the operator; return whether there was one."""
    context.subjects.logins.require_used(server, visit.operator.agents)
    return await context.subjects.logins.end(server, LoginOwner(visit.operator.name))


async def log_in(context: Context, visit: OperatorRequest) -> Response:
    """Begin a login, and send the browser on; a form may lead to this site alone, so that a page does it."""
    server = visit.names.meant(text_of(await visit.request.form(), "name"))
    pending = await start_login(context, visit, server)
    issuer = urlsplit(pending.url).netloc.rpartition("@")[2]
    response = context.templates.page(
        "login_begun.html", visit, server=visit.names.shown(server), issuer=issuer, url=pending.url
    )
    response.headers["Refresh"] = f"0; url={pending.url}"
    return response


async def log_out(context: Context, visit: OperatorRequest) -> Response:
    """Forget the login of the operator; ask first."""
    form = await visit.request.form()
    server = visit.names.meant(text_of(form, "name"))
    shown = visit.names.shown(server)
    if "sure" not in form:
        context.subjects.logins.require_used(server, visit.operator.agents)
        response = context.templates.page("login_end.html", visit, server=shown)
        response.headers.update({"HX-Retarget": "#dialog", "HX-Reswap": "innerHTML", "HX-Reselect": "#login-end"})
        return response
    was = await forget_login(context, visit, server)
    message = f"You are logged out of '{shown}'." if was else f"You had no login to '{shown}'."
    return after_form(context, visit, Notice(message=message), back=_page_after_login(visit.operator, shown))


async def called_back(context: Context, request: Request) -> Response:
    """Show the button that completes a login; whoever only looks uses nothing up."""
    try:
        pending = await context.subjects.logins.pending(request.query_params.get("state", ""))
    except PegboardError as error:
        return failure_of(context, request, None, None, error)
    sign_in = _signed_in(context, request)
    theirs = sign_in is None or pending is None or pending.owner == LoginOwner(sign_in.operator.name)
    if pending is None or not theirs:
        return failure_of(context, request, None, 403 if pending else 404, _GONE)
    names = await shown_names(context.board.services)
    return context.templates.page(
        "login_finish.html",
        None,
        server=names.shown(pending.plugin),
        principal=names.shown(pending.owner.principal) or "Pegboard",
    )


async def finish_login(context: Context, request: Request) -> Response:
    """Complete a login as the operator who is signed in, or signs in with this form first."""
    sign_in, cookie, form = _signed_in(context, request), None, await request.form()
    if sign_in is None:
        cookie = sign_in_with(context, form)
        sign_in = context.access.signed_in(cookie)
    if sign_in is None:
        wrong = "This cannot be used to sign in." if "secret" in form else ""
        known = {"wrong": wrong, "by_code": context.access.by_code, "stays": True}
        return context.templates.page("sign_in.html", None, status=401 if wrong else 200, **known)
    response = await _complete_login(context, request, sign_in)
    return response if cookie is None else keep_signed_in(request, response, cookie)


async def _complete_login(context: Context, request: Request, sign_in: SignIn) -> Response:
    try:
        done = await context.subjects.logins.finish(dict(request.query_params), LoginOwner(sign_in.operator.name))
    except PegboardError as error:
        return failure_of(context, request, None, 403 if error.code == "login_failed" else None, error)
    names = await shown_names(context.board.services)
    shown = names.shown(done.plugin)
    keep_notice(sign_in, names, Notice(message=f"You are logged in to '{shown}'."))
    return RedirectResponse(_page_after_login(sign_in.operator, shown), status_code=303)


def _signed_in(context: Context, request: Request) -> SignIn | None:
    return context.access.signed_in(request.cookies.get(cookie_name(request)))


def _page_after_login(operator: Operator, server: str) -> str:
    """Return the server's page for those who see it, else the start."""
    return query("/console/server", name=server) if operator.agents is None else "/console"


PAGES: Final = (
    Page("/console/login", log_in, "POST"),
    Page("/console/login/end", log_out, "POST"),
)
"""The addresses of logins; each operator begins and ends their own, which takes no right but to see."""
