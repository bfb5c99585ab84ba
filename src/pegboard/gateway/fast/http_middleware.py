"""Calls over HTTP that go around the SDK, in both eras (see :mod:`pegboard.gateway.fast.tools_call`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from pegboard.gateway.fast.headers import Headers, Identify, headers_of, is_plain_json_post, replay_body
from pegboard.gateway.fast.tools_call import FastCall, FastToolCalls
from pegboard.gateway.protocol.jsonrpc import Message, dump_message, parse_message
from pegboard.gateway.protocol.message_values import has_too_many_values

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pegboard.gateway.handlers.server import Gateway
    from pegboard.gateway.protocol.board_port import Caller

WATCH_AFTER: Final = 0.005
"""After how many seconds it is watched whether the client goes away."""
MOST_EVENT_BYTES: Final = 512 * 1024
"""Above how many bytes an answer is JSON where the SDK sends an event: its clients read at most 1 MiB of one."""
PING: Final = 15.0
"""How long a stream may be silent, in seconds."""

_MODERN: Final = LATEST_MODERN_VERSION.encode()
_HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
_STREAM: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
CallKey = tuple[str | None, str | int]


class FastCallMiddleware:
    """An ASGI app that answers plain calls, and passes every other request on to ``app``."""

    def __init__(self, app: ASGIApp, gateway: Gateway, identify: Identify) -> None:
        self._app = app
        self._gateway = gateway
        self._identify = identify
        self._fast = FastToolCalls(gateway)
        self._calls: dict[CallKey, _ResponseStream] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers = headers_of(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        caller = self._caller(scope, headers) if headers is not None else None
        if headers is None or caller is None:
            await self._app(scope, receive, send)
            return
        first = await receive()
        if first["type"] != "http.request" or first.get("more_body"):
            await self._app(scope, replay_body(first, receive), send)
            return
        body: bytes = first.get("body", b"")
        if has_too_many_values(body):
            await self._app(scope, replay_body(first, receive), send)
            return
        message = parse_message(body)
        if self._fast.questions.open and self._fast.questions.resolve(message, caller):
            await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
            return
        found = await self._find_call(message, headers, caller)
        if found is None:
            self._cancel(message, caller)
            await self._app(scope, replay_body(first, receive), send)
            return
        call, connection = found
        stream = _ResponseStream(receive, send, modern=connection is None, session=caller.transport_session)
        await self._serve(stream, caller, call, connection)

    def _caller(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return who calls, or None where that is for the SDK or for a refusal."""
        version, transport = headers.get(b"mcp-protocol-version"), headers.get(b"mcp-session-id")
        if version == _MODERN:
            fits = headers.get(b"mcp-method") == b"tools/call" and b"mcp-name" in headers
        else:
            fits = version in _HANDSHAKE and transport is not None
        if not fits or not is_plain_json_post(headers) or self._gateway.closing.is_set():
            return None
        return self._identify(scope, headers)

    async def _find_call(
        self, message: Message | None, headers: Headers, caller: Caller
    ) -> tuple[FastCall, Connection | None] | None:
        """Return the call in a body that may be answered here, with its connection in the handshake era."""
        if headers[b"mcp-protocol-version"] == _MODERN:
            call = self._fast.parse(message, modern=True)
            if call is None or headers[b"mcp-name"] != call.name.encode(errors="replace"):
                return None
            if not call.name.isascii() or call.name != call.name.strip() or call.name.startswith("=?"):
                return None
            return None if await self._gateway.schemas.needed(caller, call.name) else (call, None)
        connection = self._gateway.connections.find(caller.transport_session, caller)
        if connection is None or connection.protocol_version.encode() != headers[b"mcp-protocol-version"]:
            return None
        call = self._fast.parse(message, modern=False)
        if call is None or (caller.transport_session, coerce_request_id(call.number)) in self._calls:
            return None
        return call, connection

    def _cancel(self, message: Message | None, caller: Caller) -> None:
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as number}}:
                stream = self._calls.get((caller.transport_session, coerce_request_id(number)))
                if stream is not None:
                    stream.cancel()
            case _:
                pass

    async def _serve(
        self, stream: _ResponseStream, caller: Caller, call: FastCall, connection: Connection | None
    ) -> None:
        """Run a call; in the new era it ends with its client, in the old one where it is cancelled."""
        key = caller.transport_session, coerce_request_id(call.number)
        if connection is not None:
            self._calls[key] = stream
        stream.watch()
        message: Message | None = None
        try:
            back = self._fast.ways_back(caller, stream.notify, stream.on_gone)
            message = await self._fast.answer(caller, call, connection, back)
        except asyncio.CancelledError:
            if not stream.cancelled:
                raise
        finally:
            stream.unwatch()
            if connection is not None:
                del self._calls[key]
        await stream.finish(message)


class _ResponseStream:
    """The answer to one request: JSON, or a stream of events once something comes before the answer."""

    def __init__(self, receive: Receive, send: Send, *, modern: bool, session: str | None) -> None:
        self._receive = receive
        self._send = send
        self._modern = modern
        self._session_header = [(b"mcp-session-id", session.encode())] if session is not None and not modern else []
        self._streams = self._gone = self.cancelled = False
        self._task = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._on_gone: list[Callable[[], object]] = []

    def watch(self) -> None:
        """Watch for the client to go away, if the call takes longer."""
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self._start_watching)

    def on_gone(self, gone: Callable[[], object]) -> None:
        """Call back once the client is gone."""
        self._on_gone.append(gone)
        if self._gone:
            gone()

    def cancel(self) -> None:
        """Cancel the call: no one waits for its answer."""
        if not self.cancelled and self._task is not None:
            self.cancelled = True
            self._task.cancel()

    def _start_watching(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch_client())

    async def _watch_client(self) -> None:
        """End the call of a client that goes away; keep the stream of one that waits alive."""
        gone = asyncio.get_running_loop().create_task(self._wait_for_disconnect())
        try:
            while not (await asyncio.wait({gone}, timeout=PING))[0]:
                await self._event(b": ping\r\n\r\n")
            self._gone = True
            for callback in self._on_gone:
                callback()
            if self._modern:
                self.cancel()
        finally:
            gone.cancel()

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def unwatch(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    async def notify(self, message: Message) -> None:
        """Send a notification before the answer."""
        await self._event(_frame(dump_message(message)))

    async def _event(self, event: bytes) -> None:
        await self._begin_stream()
        await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def _begin_stream(self) -> None:
        if not self._streams:
            self._streams = True
            await self._send(
                {"type": "http.response.start", "status": 200, "headers": [*_STREAM, *self._session_header]}
            )

    async def finish(self, message: Message | None) -> None:
        """Send the answer; None ends a call that is no longer answered."""
        if self._gone:
            return
        body = b"" if message is None else dump_message(message)
        if message is not None and not self._streams and (self._modern or len(body) > MOST_EVENT_BYTES):
            await self._send_whole(message, body)
            return
        await self._begin_stream()
        event = body and _frame(body)
        await self._send({"type": "http.response.body", "body": event, "more_body": False})

    async def _send_whole(self, message: Message, body: bytes) -> None:
        error = message.get("error") if self._modern else None
        status = 200 if error is None else ERROR_CODE_HTTP_STATUS.get(error["code"], 200)
        headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
            *self._session_header,
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _frame(body: bytes) -> bytes:
    return b"event: message\r\ndata: " + body + b"\r\n\r\n"
