"""Apps beside the protocol, under paths of their own: the console.

One is built by the first request to it. It gets what all of HTTP has here: Host and Origin are checked, a body is
bounded and whole before the app runs, and its streams of events end when the gateway is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard.gateway.http.auth import OriginCheck, Refusal
from pegboard.support.mcp_constants import INTERNAL_ERROR

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

BODY_LIMIT: Final = 1024 * 1024
"""How large a request to a mounted app may be, in bytes."""
_EVENTS: Final = b"text/event-stream"


class GatewayApp(Protocol):
    """The app that serves the protocol, and the life of the server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        ...

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        ...


class MountedApp(Protocol):
    """An app under paths of its own; it is served no lifespan."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; its path is whole."""
        ...

    async def close(self) -> None:
        """Let go of everything; no request is running any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The paths of an app: each prefix itself and everything below it. ``build`` is called by the first request."""

    prefixes: tuple[str, ...]
    build: Callable[[], MountedApp]


class MountingApp:
    """An ASGI app that serves every mount, and hands every other request on to ``app``."""

    def __init__(self, app: GatewayApp, mounts: Sequence[Mount], *, host: str) -> None:
        self._app = app
        self._mounted = [_Mounted(mount, host) for mount in mounts]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the server."""
        if scope["type"] == "http":
            for mounted in self._mounted:
                if mounted.covers(scope["path"]):
                    await mounted.serve(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """End every stream; what else is in flight may go on for ``grace`` seconds."""
        await asyncio.gather(self._app.close(grace=grace), *(each.close(grace=grace) for each in self._mounted))


class _Mounted:
    """A mount, its app once that is built, and the requests that are open."""

    def __init__(self, mount: Mount, host: str) -> None:
        self._mount = mount
        self._app: MountedApp | None = None
        self._open: set[_OpenRequest] = set()
        self._closing = False
        self.serve = OriginCheck(self._serve, host=host)

    def covers(self, path: str) -> bool:
        return any(path == prefix or path.startswith(f"{prefix}/") for prefix in self._mount.prefixes)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._closing:
                raise Refusal(503, "The gateway is stopping.", code=INTERNAL_ERROR, Connection="close")
            body = await _body(scope, receive)
        except Refusal as refusal:
            await refusal(scope, receive, send)
            return
        if body is None:
            return
        if self._app is None:
            self._app = self._mount.build()
        request = _OpenRequest(body, receive, send)
        self._open.add(request)
        try:
            await request.run(self._app, scope)
        finally:
            self._open.discard(request)

    async def close(self, *, grace: float) -> None:
        self._closing = True
        for request in self._open:
            if request.streams:
                request.end()
        await self._ended(grace)
        for request in self._open:
            request.end()
        await self._ended(grace)
        if self._app is not None:
            await self._app.close()

    async def _ended(self, seconds: float) -> None:
        """Wait until every request has ended, for at most some seconds."""
        if tasks := {request.task for request in self._open}:
            await asyncio.wait(tasks, timeout=seconds)


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the whole body of a request, or None where its client went away; raises ``Refusal``."""
    too_large = Refusal(413, "A request here has at most 1 MiB.", Connection="close")
    length: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not length.isdigit() or len(length) > 9 or int(length) > BODY_LIMIT:
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise too_large
        if not message.get("more_body"):
            return bytes(body)


class _OpenRequest:
    """A request to a mounted app and its response, which can be ended from outside."""

    def __init__(self, body: bytes, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None  # a request is served in a task
        self.task: asyncio.Task[Any] = task
        self.streams = False
        self._body: bytes | None = body
        self._receive = receive
        self._send = send
        self._started = self._complete = self._ended = False

    async def run(self, app: MountedApp, scope: Scope) -> None:
        try:
            await app(scope, self._received, self._sent)
        except asyncio.CancelledError:
            if not self._ended:
                raise
            self.task.uncancel()
        if self._ended and not self._complete:
            await self._finish(scope)

    def end(self) -> None:
        """End the response where it is."""
        if not self._ended:
            self._ended = True
            self.task.cancel()

    async def _received(self) -> Any:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _sent(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.streams = any(n.lower() == b"content-type" and v.startswith(_EVENTS) for n, v in message["headers"])
        self._complete = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def _finish(self, scope: Scope) -> None:
        if self._started:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            refusal = Refusal(503, "The gateway is stopping.", code=INTERNAL_ERROR, Connection="close")
            await refusal(scope, self._receive, self._send)
