"""Requests that belong to another replica are sent on to it, whole and once, and its response comes back as it comes.

The other one serves them as if the client had come to it: headers go as they came, so that it authenticates the client
itself. Imports its HTTP client late: few requests are at the wrong replica.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pegboard.errors import StoreError
from pegboard.gateway.replicas.credential import ASKS, HEADER, Credentials
from pegboard.gateway.replicas.heartbeat import Heartbeat
from pegboard.support.mcp_constants import INTERNAL_ERROR

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Request, Response
    from starlette.types import Receive, Scope, Send

    from pegboard.ports import Replica

log = logging.getLogger("pegboard")

MISDIRECTED: Final = 421
"""The status by which a replica says that a request was for one that listened at its address before."""
REACHED_WITHIN: Final = 3.0
"""How long a replica may take to accept a connection, in seconds."""
_ALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""When a connection counts as broken whose other end has gone without a word."""
_OF_A_CONNECTION: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
        b"transfer-encoding", b"upgrade", b"expect",
    }
)  # fmt: skip
_NOT_SENT_ON: Final = _OF_A_CONNECTION | {b"content-length", HEADER.encode(), ASKS.encode()}
_NOT_SENT_BACK: Final = _OF_A_CONNECTION | {b"date"}


class ForwardError(Exception):
    """A request that its owner has not answered: the status and the text of the answer that says so."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Forwarder:
    """The way from this replica to the others."""

    def __init__(self, heartbeat: Heartbeat, credentials: Credentials) -> None:
        self._heartbeat = heartbeat
        self._credentials = credentials
        self._clients: dict[str, AsyncClient] = {}

    async def forward(self, owner: str, scope: Scope, body: bytes, receive: Receive, send: Send) -> bool:
        """Send a request on, and its response back; return False, with nothing sent, where its owner has ended.

        The owner sees where the client goes away. Raises ``ForwardError`` where the owner lives and gives no answer.
        """
        work = asyncio.create_task(self._forward(owner, scope, body, send))
        gone = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else True
        finally:
            tasks = [task for task in (work, gone) if not task.done()]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def ask(self, replica: Replica, target: bytes, body: bytes, credential: str) -> Response:
        """Return the response to a question of this replica's own, whose body is still to come; the caller closes it.

        Raises ``httpx2.TransportError``.
        """
        headers = [(b"content-type", b"application/json"), (ASKS.encode(), credential.encode())]
        request = _request_to(replica, "POST", target, headers, body)
        return await self._client(replica.address).send(request, stream=True)

    async def close(self) -> None:
        """Let go of the connections to the others."""
        for client in self._clients.values():
            await client.aclose()

    async def _forward(self, owner: str, scope: Scope, body: bytes, send: Send) -> bool:
        import httpx2

        try:
            replica = await self._heartbeat.find(owner)
            if replica is None:
                return False
            if replica.address == self._heartbeat.own.address:  # it listened there before, or on another machine
                if not await self._heartbeat.lives(owner):
                    return False
                raise _unreachable_error(replica)
            request = self._request(replica, scope, body)
            try:
                response = await self._client(replica.address).send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not await self._heartbeat.lives(owner):
                    return False
                raise _unreachable_error(replica) from None
            except httpx2.TransportError:
                raise _broken_off() from None
        except StoreError as error:
            text = f"The replica that serves this is unknown: {error.message}"
            raise ForwardError(503, text) from None
        try:
            if response.status_code == MISDIRECTED and HEADER in response.headers:
                return False
            await _send_back(response, scope, body, send)
        finally:
            await response.aclose()
        return True

    def _request(self, replica: Replica, scope: Scope, body: bytes) -> Request:
        target = target_of(scope)
        credential = self._credentials.issue(replica.id, scope["method"], target, body)
        headers = [*_without_headers(scope["headers"], _NOT_SENT_ON), (HEADER.encode(), credential.encode())]
        return _request_to(replica, scope["method"], target, headers, body)

    def _client(self, address: str) -> AsyncClient:
        """Return the client for addresses of one scheme: only https needs certificates, which take long to load."""
        import httpx2

        scheme = urlsplit(address).scheme
        client = self._clients.get(scheme)
        if client is None:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=5.0)
            transport = httpx2.AsyncHTTPTransport(
                verify=scheme == "https", limits=limits, socket_options=_keepalive(), trust_env=False
            )
            client = self._clients[scheme] = httpx2.AsyncClient(transport=transport, trust_env=False)
        return client


def _request_to(
    replica: Replica, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes
) -> Request:
    import httpx2

    if method == "POST":
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    return httpx2.Request(
        method,
        replica.address,
        headers=headers,
        content=body or None,
        extensions={"target": urlsplit(replica.address).path.encode() + target, "timeout": _TIMEOUT},
    )


_TIMEOUT: Final = {"connect": REACHED_WITHIN, "read": None, "write": 30.0, "pool": None}


def target_of(scope: Scope) -> bytes:
    """Return the path of a request with its query, as it stood on the wire."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    return path + b"?" + query if query else path


def _keepalive() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _ALIVE:
        if hasattr(socket, name):  # not everywhere
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _without_headers(headers: Iterable[tuple[bytes, bytes]], names: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """Return headers, but for some and for those that the connection alone is about."""
    given = [(name.lower(), value) for name, value in headers]
    own = {part.strip().lower() for name, value in given if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in given if name not in names and name not in own]


async def _send_back(response: Response, scope: Scope, body: bytes, send: Send) -> None:
    """Send a response back as it comes; of one that breaks off the client is told, where it can be."""
    import httpx2

    headers = _without_headers(response.headers.raw, _NOT_SENT_BACK)
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    try:
        async for part in response.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except httpx2.TransportError:
        log.debug("a replica went away while it answered")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            return  # the connection is closed before its time, which says that the response is not whole
        if scope["method"] == "POST":
            await send({"type": "http.response.body", "body": _last_event(body), "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _last_event(body: bytes) -> bytes:
    """Return the event that ends the stream of a request whose answer will not come."""
    try:
        number: Any = json.loads(body)["id"]
    except (ValueError, TypeError, KeyError):
        return b""
    error = {"code": INTERNAL_ERROR, "message": _broken_off().text}
    text = json.dumps({"jsonrpc": "2.0", "id": number, "error": error})
    return f"\r\n\r\nevent: message\r\ndata: {text}\r\n\r\n".encode()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unreachable_error(replica: Replica) -> ForwardError:
    text = (
        f"Replica {replica.id} serves this, and cannot be reached at {replica.address} now. Try again; if it stays so, "
        "check its --address."
    )
    return ForwardError(503, text)


def _broken_off() -> ForwardError:
    return ForwardError(502, "The replica running this server stopped before answering; the tool may have run.")
