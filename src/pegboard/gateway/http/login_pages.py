"""Logins of the principals of a gateway: a page asks who is there before it leads to the issuer (G11).

Whoever holds the address of someone's login could else log in to the server with an account of their own, and have
that bound to someone else; or be led to log in for someone else. So the page takes the bearer token of the principal
whose login it is, and the answer of the issuer counts only in the browser that gave it.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pegboard.board.login_addresses import CALLBACK, PAGES
from pegboard.core.principals.bearer_tokens import token_of
from pegboard.errors import PegboardError
from pegboard.operators.logins import OperatorLogins
from pegboard.operators.masked import shown_names
from pegboard.support.browser_requests import is_foreign
from pegboard.support.visible_text import visible

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pegboard.core.access.logins import PendingLogin
    from pegboard.gateway.protocol.board_port import BoardPort

MOST: Final = 1000
"""How many browsers may be on their way at once; the oldest gives way."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_PAGE: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><title>{title} · Pegboard</title></head>'
    "<body><main><h1>{title}</h1>{body}</main></body></html>"
)
_GONE: Final = "No login is pending under this address: it was completed, has expired, or belongs to another person."


@dataclass(frozen=True, slots=True)
class _BrowserAtIssuer:
    """A browser whose principal is known, and which is at the issuer; ``proof`` is the digest of its cookie."""

    proof: bytes
    until: float


class LoginPages:
    """The pages of the logins of one board."""

    def __init__(self, board: BoardPort) -> None:
        self._board = board
        self._logins = OperatorLogins(board.services)
        self._known: dict[str, _BrowserAtIssuer] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._answer_page(request)
        except PegboardError as error:
            response = await self._failure_page(error.message, 400)
        await response(scope, receive, send)

    async def close(self) -> None:
        """Let no one on who is on their way."""
        self._known.clear()

    async def _answer_page(self, request: Request) -> Response:
        """Return the page; whoever only looks, such as the preview of a chat program, uses nothing up."""
        path, method = request.url.path, request.method
        if path == CALLBACK and method in ("GET", "HEAD"):
            return await self._called_back(request) if method == "GET" else _page("Log in", "")
        if method not in ("GET", "HEAD", "POST") or path == CALLBACK:
            return await self._failure_page("This is not possible here.", 405)
        number = path.removeprefix(f"{PAGES}/")
        pending = await self._logins.pending(number) if number.isalnum() else None
        if pending is None:
            return await self._failure_page(_GONE, 404)
        return await (self._redirect_proven(request, pending) if method == "POST" else self._confirmation_page(pending))

    async def _confirmation_page(self, pending: PendingLogin, *, wrong: str = "") -> Response:
        """Return the page that asks who is there."""
        said = f'<p role="alert">{wrong}</p>' if wrong else ""
        body = (
            f"{said}<p>An agent of yours wants to use {await self._markup(pending.plugin)}, which wants a login.</p>"
            '<form method="post"><p><label for="token">Your token for this gateway</label> '
            '<input id="token" name="token" type="password" autocomplete="off" required autofocus></p>'
            '<p><button type="submit">Go on to log in</button></p></form>'
        )
        return _page("Log in", body, 403 if wrong else 200)

    async def _redirect_proven(self, request: Request, pending: PendingLogin) -> Response:
        """Send the browser on that gives the token of the principal whose login it is."""
        if is_foreign(request.method, request.headers):  # it would log in its own principal with this person's account
            return await self._failure_page("This request came from another site, so nothing was done.", 403)
        given = (await request.form()).get("token")
        token = token_of(given if isinstance(given, str) else "", self._board.configuration.tokens)
        if token is None or token.principal != pending.owner.principal:
            return await self._confirmation_page(
                pending, wrong="This is not the token of the person who has to log in."
            )
        proof = secrets.token_urlsafe(32)
        self._known.pop(pending.id, None)
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[pending.id] = _BrowserAtIssuer(_digest(proof), pending.expires_at)
        url = escape(pending.url)
        response = _page("Log in", f'<p><a href="{url}" rel="noreferrer">Go on to log in</a></p>')
        response.headers["Refresh"] = f"0; url={pending.url}"  # a form may lead to this site alone
        response.set_cookie(
            _cookie(pending.id),
            proof,
            max_age=max(1, round(pending.expires_at - time.time())),
            path=PAGES,
            httponly=True,
            samesite="lax",  # the issuer sends the browser back from another site
            secure=request.url.scheme == "https",
        )
        return response

    async def _called_back(self, request: Request) -> Response:
        """Complete a login in the browser whose principal is known."""
        pending = await self._logins.pending(request.query_params.get("state", ""))
        if pending is None or not self._is_known(request, pending):
            return await self._failure_page(_GONE, 403)
        del self._known[pending.id]
        await self._logins.finish(dict(request.query_params), pending.owner)
        body = f"<p>You are logged in to {await self._markup(pending.plugin)}. You can close this page and go back.</p>"
        response = _page("Logged in", body)
        response.delete_cookie(_cookie(pending.id), path=PAGES)
        return response

    def _is_known(self, request: Request, pending: PendingLogin) -> bool:
        known, cookie = self._known.get(pending.id), request.cookies.get(_cookie(pending.id), "")
        return known is not None and time.time() < known.until and secrets.compare_digest(known.proof, _digest(cookie))

    async def _failure_page(self, why: str, status: int) -> Response:
        masked = self._board.services.masker.text(why)
        return _page("The login did not work", f"<p>{escape(visible(masked))}</p>", status)

    async def _markup(self, name: str) -> str:
        return f"<bdi>{escape(visible((await shown_names(self._board.services)).shown(name)[:200]))}</bdi>"


def _page(title: str, body: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(title=title, body=body), status, _HEADERS)


def _cookie(number: str) -> str:
    return f"pegboard_login_{number}"


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="surrogatepass")).digest()
