"""Requests whose bodies are whole, and their responses, which can be ended from outside."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pegboard.gateway.http.auth import HttpRefusal
from pegboard.support.mcp_constants import INTERNAL_ERROR

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_EVENTS: Final = b"text/event-stream"


async def whole_body(scope: Scope, receive: Receive, *, limit: int, too_large: HttpRefusal) -> bytes | None:
    """Return the whole body of a request, or None where its client went away.

    Raises ``too_large`` where it has more bytes than the limit.
    """
    length: bytes = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if not length.isdigit() or len(length) > 9 or int(length) > limit:
        raise too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise too_large
        if not message.get("more_body"):
            return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return what receives a body that was received already, then what else comes."""
    waiting = [body]

    async def replay() -> Any:
        if not waiting:
            return await receive()
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    return replay


def too_late() -> HttpRefusal:
    """Return the answer to a request that comes too late."""
    return HttpRefusal(503, "The gateway is stopping.", code=INTERNAL_ERROR, Connection="close", Retry_After="1")


class OpenRequests:
    """The requests to one app that are open, until they are closed."""

    def __init__(self) -> None:
        self._open: set[_OpenRequest] = set()
        self.closing = False

    async def serve(self, app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve a request whose body was received."""
        request = _OpenRequest(body, receive, send)
        self._open.add(request)
        try:
            await request.run(app, scope)
        finally:
            self._open.discard(request)

    async def close(self, *, grace: float) -> None:
        """End every stream; other requests may go on for ``grace`` seconds."""
        self.closing = True
        for request in self._open:
            if request.streams:
                request.end()
        await self._wait_until_ended(grace)
        for request in self._open:
            request.end()
        await self._wait_until_ended(grace)

    async def _wait_until_ended(self, seconds: float) -> None:
        """Wait until every request has ended, for at most some seconds."""
        if tasks := {request.task for request in self._open}:
            await asyncio.wait(tasks, timeout=seconds)


class _OpenRequest:
    """A request and its response, which can be ended from outside; a stream is one that a client only listens to."""

    def __init__(self, body: bytes, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None  # a request is served in a task
        self.task: asyncio.Task[Any] = task
        self.streams = False
        self._receive = receive
        self._received = replay_body(body, receive)
        self._send = send
        self._listens = self._started = self._complete = self._ended = False

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        self._listens = scope["method"] == "GET"
        try:
            await app(scope, self._received, self._note_sent)
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

    async def _note_sent(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            events = (n.lower() == b"content-type" and v.startswith(_EVENTS) for n, v in message["headers"])
            self.streams = self._listens and any(events)
        self._complete = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def _finish(self, scope: Scope) -> None:
        if self._started:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await too_late()(scope, self._receive, self._send)
