"""Signing in and out: with the one-time code that `pegboard serve` prints, or with an operator's token (G2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from pegboard.console.context import Context
from pegboard.console.entry.own_requests import bears_csrf, cookie_name
from pegboard.console.refusals import failure_of

_HOME = "/console"


async def sign_in_page(context: Context, request: Request) -> Response:
    """Show how to sign in, by one button where the address has a code: what only looks uses no code up."""
    code = request.query_params.get("code", "") if context.access.by_code else ""
    if code and not context.access.codes.is_good(code):
        return _form(context, wrong="This code was used already, or is older than ten minutes.")
    return _form(context, code=code)


async def signed_in(context: Context, request: Request) -> Response:
    """Sign in with the code or the token of the form."""
    cookie = sign_in_with(context, await request.form())
    if cookie is not None:
        return _welcome_response(request, cookie)
    what = "This code is no longer valid." if context.access.by_code else "This token has no operator rights."
    return _form(context, wrong=what)


def sign_in_with(context: Context, form: Mapping[str, Any]) -> str | None:
    """Return the cookie of a new sign-in with the code or the token of a form, or None."""
    given = form.get("secret")
    secret = given.strip() if isinstance(given, str) else ""
    return context.access.with_code(secret) if context.access.by_code else context.access.with_token(secret)


async def signed_out(context: Context, request: Request) -> Response:
    """End the sign-in of this browser."""
    name = cookie_name(request)
    cookie = request.cookies.get(name)
    sign_in = context.access.signed_in(cookie)
    if sign_in is not None and not await bears_csrf(request, sign_in):
        return failure_of(context, request, None, 403, "This form is not from a page of this sign-in.")
    context.access.end(cookie)
    response = RedirectResponse("/console/sign-in", status_code=303)
    response.delete_cookie(name)
    return response


async def ask_for_code(context: Context, request: Request) -> Response:
    """Answer another process of the same user with a new one-time code."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not context.access.knows_secret(given.strip()):
        return JSONResponse({"error": {"code": "refused", "message": "This is not the right secret."}}, status_code=401)
    return JSONResponse({"code": context.access.codes.new()})


def _form(context: Context, *, wrong: str = "", code: str = "") -> Response:
    by_code, status = context.access.by_code, 401 if wrong else 200
    return context.templates.page("sign_in.html", None, status=status, wrong=wrong, by_code=by_code, code=code)


def _welcome_response(request: Request, cookie: str) -> Response:
    return keep_signed_in(request, RedirectResponse(_HOME, status_code=303), cookie)


def keep_signed_in(request: Request, response: Response, cookie: str) -> Response:
    """Return an answer after which the browser is signed in."""
    response.set_cookie(
        cookie_name(request),
        cookie,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response
