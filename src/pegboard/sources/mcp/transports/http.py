"""HTTP as a transport of the SDK, where one failing request fails alone and says why.

In the SDK a request that meets a network error ends the whole connection, with every other request
under way, and an HTTP status reaches the caller as "Server returned an error response". Here both
become the JSON-RPC error of that one request, marked with :data:`MARK`. Imports the SDK: import late.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, cast

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.wire.observed import ConnectionRecord

MARK = "pegboard/http"
# Kinds of marked errors: nothing arrived; something may have; the session is over; a status.
UNREACHED, BROKEN, SESSION, STATUS = "unreached", "broken", "session", "status"

_SESSION_HEADER = "mcp-session-id"
# Servers hold idle connections for 5 s (uvicorn, Node): leave before them.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=3.0)
# How long a request may take is the caller's affair: no limit on reading.
_TIMEOUT = httpx2.Timeout(connect=10.0, read=None, write=30.0, pool=None)
_FAREWELL = httpx2.Timeout(2.0).as_dict()
_NOTIFICATION = b'"method":"notifications/'
_INITIALIZED = b'"method":"notifications/initialized"'
_UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@cache
def tls() -> Any:
    """Return what is trusted, read once."""
    return httpx2.create_ssl_context()


class WatchedClient(httpx2.AsyncClient):
    """Send requests, and answer those that fail with a JSON-RPC error that says how.

    ``lasting``: the connection cannot outlive a failed request (the older SSE transport).
    """

    def __init__(self, spec: ServerSpec, link: ConnectionRecord, *, lasting: bool = True) -> None:
        headers = dict(spec.headers)
        super().__init__(headers=headers, timeout=_TIMEOUT, limits=_LIMITS, verify=tls())
        self._link = link
        self._lasting = lasting

    def reaches_directly(self, url: httpx2.URL) -> bool:
        """Return whether no proxy stands between."""
        return self._transport_for_url(url) is self._transport

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; a POST never raises for what the network or the server did."""
        if request.method == "DELETE":
            request.extensions["timeout"] = _FAREWELL
        if request.method != "POST":
            return await super().send(request, **options)
        if _NOTIFICATION in request.content[:100]:  # the transport sends nothing else until this is answered
            request.extensions["timeout"] = _FAREWELL
        try:
            response = await super().send(request, **options)
            if response.status_code >= 400 or _is_json(response):
                await response.aread()
        except httpx2.TransportError as error:
            kind = UNREACHED if isinstance(error, _UNREACHED) else BROKEN
            return self._failed(request, 502, kind, describe(error))
        if session := response.headers.get(_SESSION_HEADER):
            self._link.session_id = self._link.session_id or session
        if _INITIALIZED in request.content[:100]:
            self._link.initialized = True
        if response.status_code < 400:
            return response
        return self._refused(request, response)

    def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return an HTTP error as the JSON-RPC error that it carries, or as one that names its status."""
        refused = refusal(
            response.status_code,
            response.reason_phrase,
            response.headers.get("content-type", "").lower(),
            response.content,
            in_session=_SESSION_HEADER in request.headers,
            carries_errors=self._lasting,
        )
        return response if refused is None else self._failed(request, response.status_code, *refused)

    def _failed(self, request: httpx2.Request, status: int, kind: str, text: str) -> httpx2.Response:
        if not self._lasting:
            self._link.close(f"HTTP {status}: {text}" if kind == STATUS else text)
        error = {"code": -32603, "message": text, "data": {MARK: kind, "status": status}}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        headers = {"content-type": "application/json"}
        return httpx2.Response(status, headers=headers, content=json.dumps(body).encode(), request=request)


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("application/json")


def refusal(
    status: int, reason: str, kind: str, body: bytes, *, in_session: bool, carries_errors: bool = True
) -> tuple[str, str] | None:
    """Return kind and text of an HTTP error, or None where its body is the error that the protocol has."""
    said = _rpc_error(kind, body)
    about_session = status == 400 and said is not None and "session" in said.lower()
    if in_session and (status == 404 or about_session):
        return SESSION, "its session is over"
    if said is not None and carries_errors:
        return None
    text = body.decode("utf-8", errors="replace")
    return STATUS, one_line(text, limit=200) if text else reason


def _rpc_error(kind: str, body: bytes) -> str | None:
    """Return the message of the JSON-RPC error in a body, or None where there is none."""
    if not kind.startswith("application/json"):
        return None
    try:
        said: Any = json.loads(body)
    except ValueError:
        return None
    if not isinstance(said, dict) or "jsonrpc" not in said:
        return None
    error: Any = cast("dict[str, Any]", said).get("error")
    return str(cast("dict[str, Any]", error).get("message", "")) if isinstance(error, dict) else None


def describe(error: httpx2.TransportError) -> str:
    """Return what went wrong on the network, in words."""
    match error:
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


@asynccontextmanager
async def http_transport(spec: ServerSpec, link: ConnectionRecord) -> AsyncGenerator[Any]:
    """Open a connection to a server at a URL."""
    url = spec.url or ""
    if spec.transport == "sse":

        def factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> WatchedClient:  # noqa: ARG001
            return WatchedClient(spec, link, lasting=False)

        async with sse_client(url, httpx_client_factory=factory) as streams:
            yield streams
        return
    from pegboard.sources.mcp.fast.http_calls import HttpFastPath

    async with (
        WatchedClient(spec, link) as client,
        # The SDK refuses events over 1 MiB by default: an image is soon larger.
        streamable_http_client(url, http_client=client, max_sse_event_size=None) as (read, write),
        anyio.create_task_group() as group,
    ):
        # What a server sends with an answer of the lane and is not of that call joins what the session reads.
        send, joined = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

        async def join() -> None:
            with send:
                async for item in read:
                    send.send_nowait(item)

        def inject(message: SessionMessage) -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                send.send_nowait(message)

        group.start_soon(join)
        lane = link.lane = HttpFastPath(link, client, url, inject)
        try:
            yield joined, write
        finally:
            lane.close()
            group.cancel_scope.cancel()
