"""The HTTP client that the SDK's transports use: a failing request fails alone and says why.

In the SDK a request that meets a network error ends the whole connection, with every other request
under way, and an HTTP status reaches the caller as "Server returned an error response". Here both
become the JSON-RPC error of that one request, marked with :data:`MARK`. Imports the SDK: import late.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import httpx2
from pydantic_core import from_json

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError
from pegboard.sources.mcp.certificates import tls_for
from pegboard.sources.mcp.proxies import ProxiedClient, ProxyUnusableError
from pegboard.sources.mcp.wire.open_connection import LoginChallenge, OpenConnection, ShownLogin
from pegboard.sources.mcp.wire.redirects import MOST_REDIRECTS, RedirectError, Redirects, too_many_redirects
from pegboard.sources.mcp.wire.request_outcomes import TooLargeError, too_large_clause
from pegboard.support import odd_json

MARK = "pegboard/http"
# Kinds of marked errors: nothing arrived; something may have; the session is over; a status; over the limit; a login;
# a login that cannot be renewed for now; a redirect that is not followed.
UNREACHED, BROKEN, SESSION, STATUS, TOO_LARGE = "unreached", "broken", "session", "status", "too_large"
LOGIN, RENEWAL, REDIRECT = "login", "renewal", "redirect"

GONE = (404, 410)
"""Statuses of an address that requests are no longer redirected to."""
_FOR_A_LOGIN = (401, 403)
_SESSION_HEADER = "mcp-session-id"
_NAMED = r"(?:the |your )?(?:mcp[- ])?session(?:[- ]id)?\b"
_SESSION_OVER = re.compile(
    r"\W*(?:(?:error|bad request|not found)\W+)?"
    rf"(?:(?:no such|no valid|no|invalid|unknown|expired|missing)\s+{_NAMED}"
    rf"|{_NAMED}.{{0,100}}?\b(?:not found|not exist|unknown|invalid|expired|terminated|closed|over|gone)\b)",
    re.IGNORECASE,
)
_WANTED_LOGIN = "pegboard/login"
"""The extension of a response that has the login which its server wants; other requests are under way meanwhile."""
# Servers keep idle connections for 5 s (uvicorn, Node): leave before them.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=3.0)
# How long a request may take is the caller's affair: no limit on reading.
_TIMEOUT = httpx2.Timeout(connect=10.0, read=None, write=30.0, pool=None)
_FAREWELL = httpx2.Timeout(2.0).as_dict()
_NOTIFICATION = b'"method":"notifications/'
_INITIALIZED = b'"method":"notifications/initialized"'
_UNREACHED = (
    ProxyUnusableError,
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)
_FRAMING = {"content-encoding", "content-length", "transfer-encoding"}


class WatchedClient(ProxiedClient):
    """An HTTP client that answers a failed POST with a JSON-RPC error that says how it failed.

    No answer that is read whole may be larger than the connection's ``message_limit``, inflated. ``lasting``:
    the connection cannot outlive a failed request (the older SSE transport).
    """

    def __init__(self, spec: ServerSpec, live: OpenConnection, *, lasting: bool = True) -> None:
        headers = dict(spec.headers)
        super().__init__(headers=headers, timeout=_TIMEOUT, limits=_LIMITS, verify=tls_for(spec.url or ""))
        self.redirects = Redirects()
        self._live = live
        self._lasting = lasting

    def reaches_directly(self, url: httpx2.URL) -> bool:
        """Return whether no proxy stands between."""
        return self._transport_for_url(url) is self._transport

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request; a POST never raises for what the network or the server did.

        Redirects within the origin are followed here, whoever sends. Raises ``RedirectError`` for others.
        """
        content = await request.aread()
        if request.method == "DELETE" or _NOTIFICATION in content[:100]:
            # The transport sends nothing else until a notification is answered.
            request.extensions["timeout"] = _FAREWELL
        if request.method != "POST":
            response = await self._send_with_login(request, **options)
            return response if stream else await self._read_whole(response)
        try:
            response = await self._send_with_login(request, **options)
            if not stream or response.status_code >= 400 or _is_json(response):
                response = await self._read_whole(response)
                if _is_json(response):
                    response = self._readable(response)
        except httpx2.TransportError as error:
            kind = UNREACHED if isinstance(error, _UNREACHED) else BROKEN
            return self._fail_request(request, 502, kind, describe(error))
        except TooLargeError:
            return self._fail_request(request, 502, TOO_LARGE, too_large_clause(self._live.message_limit))
        except RedirectError as error:
            return self._fail_request(request, 502, REDIRECT, str(error))
        return self._note_response(request, response)

    async def _send_with_login(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request with the login of its connection, and once more where that could be renewed."""
        login = self._live.login
        if login is None:
            return await self._follow_redirects(request, **options)
        try:
            return await self._send_with_header(login, request, **options)
        except PegboardError as error:
            return self._fail_request(request, 503, RENEWAL, error.message)

    async def _send_with_header(self, login: ShownLogin, request: httpx2.Request, **options: Any) -> httpx2.Response:
        shown = await login.header()
        if shown is not None:
            request.headers["authorization"] = shown
        response = await self._follow_redirects(request, **options)
        refused = await _noted_login(login, response)
        if not refused or shown is None or response.status_code != 401:
            return response
        try:
            renewed = await login.header_after_refusal(shown)
        except PegboardError:
            await response.aclose()
            raise
        if renewed is None:
            return response
        await response.aclose()
        request.headers["authorization"] = renewed
        response = await self._follow_redirects(request, **options)
        if await _noted_login(login, response) and response.status_code == 401:
            login.reject_login(renewed)
        return response

    async def _follow_redirects(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request to where its server redirects it within its origin, with method, body and headers.

        Raises ``RedirectError`` for a redirect that leads elsewhere, or one too many.
        """
        method, url, redirects = request.method, request.url, self.redirects
        target = redirects.target(method, url)
        for _ in range(MOST_REDIRECTS + 1):
            sent = request if target == url else self._redirect_request(request, target)
            response = await super().send(sent, stream=True, **options)
            if not response.has_redirect_location:
                if response.status_code in GONE:
                    redirects.forget(method, url)
                return response
            await response.aclose()
            target = redirects.follow(method, url, target, response.headers["location"])
        redirects.forget(method, url)
        raise too_many_redirects(target)

    def _redirect_request(self, request: httpx2.Request, target: httpx2.URL) -> httpx2.Request:
        """Return a request of which the body was read, to another address; cookies are those of the client now."""
        headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() != "cookie"]
        return self.build_request(
            request.method, target, headers=headers, content=request.content, extensions=request.extensions
        )

    def _note_response(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Note what a response says of the session, and return it, or the error that it stands for."""
        live = self._live
        if session := response.headers.get(_SESSION_HEADER):
            live.http_session = live.http_session or session
        closes = response.http_version == "HTTP/1.0" or response.headers.get("connection", "").lower() == "close"
        live.http_closes = closes and not live.http_session
        if _INITIALIZED in request.content[:100]:
            live.http_initialized = True
        if response.status_code < 400:
            return response
        wanted: LoginChallenge | None = response.extensions.get(_WANTED_LOGIN)
        if wanted is not None:
            return self._fail_request(request, response.status_code, LOGIN, "it requires a login", scopes=wanted.scopes)
        return self._error_of_response(request, response)

    async def _read_whole(self, response: httpx2.Response) -> httpx2.Response:
        """Return a response that is read; raises ``TooLargeError`` as soon as it is over the limit.

        The decoders give a body in pieces of at most 1 MiB, however small it is on the wire.
        """
        parts: list[bytes] = []
        count = 0
        try:
            async for part in response.aiter_bytes():
                count += len(part)
                if count > self._live.message_limit:
                    raise TooLargeError
                parts.append(part)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _FRAMING]
        extensions: dict[str, Any] = {
            "reason_phrase": response.reason_phrase.encode("ascii", errors="ignore"),
            "http_version": response.http_version.encode("ascii"),
        }
        if (wanted := response.extensions.get(_WANTED_LOGIN)) is not None:
            extensions[_WANTED_LOGIN] = wanted
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=b"".join(parts),
            request=response.request,
            extensions=extensions,
        )

    def _readable(self, response: httpx2.Response) -> httpx2.Response:
        """Return a response that the SDK's reader takes, its result set aside where that alone would not."""
        try:
            from_json(response.content)
        except ValueError:
            pass
        else:
            return response
        try:
            message: Any = odd_json.parse_odd_json(response.content)
        except ValueError:
            return response
        result = cast("dict[str, Any]", message).get("result") if isinstance(message, dict) else None
        if isinstance(result, dict):
            self._live.set_aside[message.get("id")] = result
            message["result"] = {}
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _FRAMING]
        content = odd_json.write(message)
        return httpx2.Response(response.status_code, headers=headers, content=content, request=response.request)

    def _error_of_response(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return an HTTP error as the JSON-RPC error that it carries, or as one that names its status."""
        refused = http_refusal(
            response.status_code,
            response.reason_phrase,
            response.headers.get("content-type", "").lower(),
            response.content,
            in_session=_SESSION_HEADER in request.headers,
            carries_errors=self._lasting,
        )
        return response if refused is None else self._fail_request(request, response.status_code, *refused)

    def _fail_request(
        self, request: httpx2.Request, status: int, kind: str, text: str, *, scopes: tuple[str, ...] = ()
    ) -> httpx2.Response:
        if not self._lasting:
            self._live.oversized = self._live.oversized or kind == TOO_LARGE
            self._live.close(f"HTTP {status}: {text}" if kind == STATUS else text)
        data = {MARK: kind, "status": status, **({"scopes": scopes} if scopes else {})}
        error = {"code": -32603, "message": text, "data": data}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        headers = {"content-type": "application/json"}
        return httpx2.Response(status, headers=headers, content=json.dumps(body).encode(), request=request)


async def _noted_login(login: ShownLogin, response: httpx2.Response) -> bool:
    """Return whether a response refuses its request for want of a login, and note on it which."""
    wanted = await login.refused(response.status_code, response.headers)
    if wanted is not None:
        response.extensions[_WANTED_LOGIN] = wanted
    return wanted is not None


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def http_refusal(
    status: int, reason: str, kind: str, body: bytes, *, in_session: bool, carries_errors: bool = True
) -> tuple[str, str] | None:
    """Return kind and text of an HTTP error, or None where its body is the error that the protocol has."""
    message = _rpc_error(kind, body)
    text = body[:2000].decode("utf-8", errors="replace")
    if in_session and status not in _FOR_A_LOGIN:
        about_session = status == 400 and message is not None and "session" in message.lower()
        if status in GONE or about_session or ends_session(text if message is None else message):
            return SESSION, "its session is over"
    if message is not None and carries_errors:
        return None
    return STATUS, one_line(text, limit=200) if text else reason


def ends_session(text: str) -> bool:
    """Return whether the text of an error says that the server does not know the session of the connection.

    >>> [ends_session(text) for text in ("Session not found", "Bad Request: No valid session ID provided")]
    [True, True]
    >>> ends_session("Browser session not found")
    False
    """
    return _SESSION_OVER.match(text) is not None


def _rpc_error(kind: str, body: bytes) -> str | None:
    """Return the message of the JSON-RPC error in a body, or None where there is none."""
    if not kind.startswith("application/json"):
        return None
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or "jsonrpc" not in answer:
        return None
    error: Any = cast("dict[str, Any]", answer).get("error")
    return str(cast("dict[str, Any]", error).get("message", "")) if isinstance(error, dict) else None


def describe(error: httpx2.TransportError) -> str:
    """Return what went wrong on the network, in words."""
    match error:
        case ProxyUnusableError():
            return str(error)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return "no connection within 10 s"
        case httpx2.ConnectError():
            return f"no connection ({one_line(str(error), limit=200) or 'refused'})"
        case httpx2.UnsupportedProtocol():
            return "its URL must begin with http:// or https://"
        case httpx2.TimeoutException():
            return "it stopped reading"
        case _:
            return f"the connection broke ({one_line(str(error), limit=200) or type(error).__name__})"
