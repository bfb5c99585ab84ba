"""Calls over HTTP that go around the SDK, with the same outcomes. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2
from mcp import MCPError
from mcp.shared.inbound import encode_header_value
from mcp.shared.message import SessionMessage
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, JSONRPCError

from pegboard.sources.mcp.certificates import tls
from pegboard.sources.mcp.fast.fast_path import CallAroundSdk, FastPath, cancellation
from pegboard.sources.mcp.fast.http_answer import EventStream, HttpAnswer
from pegboard.sources.mcp.fast.http_connection import ConnectionPool, HttpConnection
from pegboard.sources.mcp.wire.http_client import GONE, MARK, SESSION, STATUS, UNREACHED, WatchedClient, http_refusal
from pegboard.sources.mcp.wire.messages import (
    STREAM_ENDED,
    Message,
    as_answer,
    is_plain_answer,
    parse_by_model,
    parse_message,
    unread_because,
)
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.sources.mcp.wire.redirects import RedirectError
from pegboard.sources.mcp.wire.request_outcomes import (
    ConnectionEndedError,
    InvalidAnswerError,
    ListUnreadError,
    TooLargeError,
    UseSdkError,
)
from pegboard.support.tasks import BackgroundTasks

Inject = Callable[[SessionMessage], None]

_ATTEMPTS = 2
_RETRY = 1.0
_FAREWELL = 2.0
_OWN_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class HttpFastPath(FastPath):
    """The calls over HTTP, posted over connections of their own.

    Left to the SDK are URLs with credentials in them or behind a proxy, servers that set cookies or
    redirect elsewhere, a call that is redirected, and servers that cannot be reached.
    """

    def __init__(self, live: OpenConnection, client: WatchedClient, url: str, inject: Inject) -> None:
        super().__init__(live, self._send)
        self.inject = inject
        self._client = client
        request = client.build_request("POST", url, headers={**_OWN_HEADERS, "accept-encoding": "gzip, deflate"})
        target = request.url
        self._usable = client.reaches_directly(target) and not target.userinfo
        secure = target.scheme == "https"
        port = target.port or (443 if secure else 80)
        self._pool = ConnectionPool(
            target.host, port, tls() if secure else None, live.message_limit, self._server_ended
        )
        if client.reaches_directly(target):
            live.watch_server = self._watch_server
        self._url = target
        self._headers = [(name.lower(), value) for name, value in request.headers.raw]
        if any(b"\r" in value or b"\n" in value for _, value in self._headers):
            self._usable = False
        self._head = b""
        self._shown: str | None = None
        self.tasks = BackgroundTasks()

    def _server_ended(self) -> None:
        """Have the list read again before the next call: with a session a new process is noticed by that (A4)."""
        if not self.live.http_session:
            self.live.forget_list()

    def _watch_server(self) -> None:
        """Keep a connection where nothing else shows the end of the server, and it keeps connections itself."""
        if not (self.live.http_closes or self.live.http_session):
            self.tasks.start(self._keep_connection())

    async def _keep_connection(self) -> None:
        try:
            await self._pool.keep_one()
        except (OSError, ValueError):  # it has ended
            self.live.forget_list()

    def takes(self, name: str) -> bool:
        """Return whether a call may go here."""
        if not (self._usable and super().takes(name)) or self._client.cookies or not self._login_at_hand():
            return False
        return self.modern or self.live.http_initialized

    def _login_at_hand(self) -> bool:
        """Return whether nothing has to be awaited for the login; the head of requests is made again for a new one."""
        login = self.live.login
        if login is None:
            return True
        shown = login.header_if_at_hand()
        if shown != self._shown:
            self._head, self._shown = b"", shown
        return shown is not None or login.owner is None

    def close(self) -> None:
        """End every call under way, and all connections."""
        super().close()
        self.tasks.cancel()
        self._pool.close()

    def head(self, verb: str, more: list[tuple[bytes, bytes]]) -> bytes:
        """Return the head of a request without the empty line at its end."""
        if not self._head:
            own = [(b"mcp-protocol-version", self.live.version.encode())]
            if self.live.http_session:
                own.append((b"mcp-session-id", self.live.http_session.encode()))
            names = {name for name, _ in own} | {b"content-length", b"transfer-encoding"}
            if self._shown is not None:
                own.append((b"authorization", self._shown.encode()))
                names.add(b"authorization")
            kept = [(name, value) for name, value in self._headers if name not in names]
            self._head = _header_lines([*kept, *own])
        path = self.target(verb).raw_path
        return b"%b %b HTTP/1.1\r\n%b%b" % (verb.encode(), path, self._head, _header_lines(more))

    def target(self, verb: str) -> httpx2.URL:
        """Return the address that a request is sent to."""
        return self._client.redirects.target(verb, self._url)

    def note_redirect(self, verb: str, asked: httpx2.URL, answer: HttpAnswer) -> None:
        """Note where the answer of an address leads; outside of the origin all calls are left to the SDK."""
        redirects = self._client.redirects
        if answer.status in GONE:
            redirects.forget(verb, self._url)
        elif 300 <= answer.status < 400:
            try:
                redirects.follow(verb, self._url, asked, answer.headers.get("location", ""))
            except RedirectError:
                self.is_open = False

    def _post(self, body: bytes, name: str | None) -> bytes:
        more = [(b"content-length", b"%d" % len(body))]
        if name is not None and self.modern:
            more += [(b"mcp-method", b"tools/call"), (b"mcp-name", encode_header_value(name).encode())]
        return self.head("POST", more) + b"\r\n" + body

    async def _send(self, pending: CallAroundSdk, body: bytes) -> Message:
        """Post a request and return the answer; the server is notified when no one waits any longer."""
        connection = await self._connection()
        if pending.call.forgotten != self.live.forgotten:
            self._pool.put(connection)
            raise ListUnreadError
        request = self._post(body, pending.call.name)
        call = _CallReceiver(self, pending, connection, self.target("POST"))
        pending.in_flight.sent = True
        connection.send(request, call)
        try:
            message = await pending.wait()
        except asyncio.CancelledError:
            self._abandon_call(call)
            raise
        except BaseException:
            call.connection.release(call)
            raise
        call.connection.release(call)
        return message

    async def _connection(self) -> HttpConnection:
        try:
            return await self._pool.take()
        except TimeoutError:
            raise MCPError(INTERNAL_ERROR, "no connection within 10 s", {MARK: UNREACHED, "status": 502}) from None
        except (OSError, ValueError):
            raise UseSdkError from None

    def _abandon_call(self, call: _CallReceiver) -> None:
        """Tell the server in the way of its era: the end of the connection, or a notification."""
        if self.modern or call.pending.outcome is not None:
            call.connection.abort(call)
        else:
            self.tasks.start(self._cancel(call))

    async def _cancel(self, call: _CallReceiver) -> None:
        posted = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(_FAREWELL):
                connection = await self._pool.take()
                connection.send(self._post(cancellation(call.pending.number), None), _IgnoringReceiver(posted))
                await posted
        except (OSError, ValueError):
            pass
        finally:
            call.connection.abort(call)

    async def resume(self, call: _CallReceiver, events: EventStream) -> None:
        """Ask for the rest of a stream that ended too early."""
        await asyncio.sleep(_RETRY if events.retry is None else events.retry)
        more = [(b"last-event-id", events.last_id.encode())]
        try:
            call.connection = await self._pool.take()
        except (OSError, ValueError):
            call.retry(events)
        else:
            call.asked = self.target("GET")
            call.connection.send(self.head("GET", more) + b"\r\n", call)


class _CallReceiver:
    """The receiver of one call's answer, which makes of it what the SDK makes of it."""

    def __init__(
        self, fast_path: HttpFastPath, pending: CallAroundSdk, connection: HttpConnection, asked: httpx2.URL
    ) -> None:
        self.pending = pending
        self.connection = connection
        self.asked = asked
        self._fast_path = fast_path
        self._resumed: EventStream | None = None
        self._attempts = 0

    def event(self, data: bytes) -> None:
        """Take a message of the stream; what is not of this call goes to the session."""
        if not data:
            return
        message = parse_message(data)
        if message is not None and is_plain_answer(message):
            self.pending.finish(message)
            return
        if (
            message is not None
            and "method" in message
            and self._fast_path.pass_notification(message, self.pending.call)
        ):
            return
        try:
            read = parse_by_model(data.decode("utf-8", errors="replace"))
        except ValueError as error:
            self.pending.finish(InvalidAnswerError(unread_because(error)))
            return
        answer = as_answer(read)
        if answer is not None:
            self.pending.finish(answer)
        elif not self._fast_path.live.server_requests.takes(read, self.pending.call):
            self._fast_path.inject(SessionMessage(read))

    def take_answer(self, answer: HttpAnswer) -> None:
        """Take an answer that is no stream."""
        self._fast_path.note_redirect("POST" if self._resumed is None else "GET", self.asked, answer)
        if "set-cookie" in answer.headers:  # the SDK keeps them
            self._fast_path.is_open = False
        if self._resumed is not None:
            self.retry(self._resumed)
        elif answer.status >= 300:
            self.pending.finish(self._error_of_answer(answer))
        elif answer.status == 202:
            self.pending.finish(MCPError(INVALID_REQUEST, "server answered a request with 202 Accepted"))
        elif answer.kind.startswith("application/json"):
            self._take_json(answer.body)
        else:
            self.pending.finish(MCPError(INVALID_REQUEST, f"Unexpected content type: {answer.kind}"))

    def _take_json(self, body: bytes) -> None:
        message = parse_message(body)
        if message is None or not is_plain_answer(message):
            try:
                message = as_answer(parse_by_model(body))
            except ValueError as error:
                self.pending.finish(InvalidAnswerError(unread_because(error)))
                return
        if message is None or self._fast_path.find(message["id"]) is not self.pending:
            self.pending.finish(InvalidAnswerError("it answered another request"))
        else:
            self.pending.finish(message)

    def _error_of_answer(self, answer: HttpAnswer) -> Exception:
        refused = answer.status in (401, 403) and self._fast_path.live.login is not None
        if answer.status < 400 or refused:
            return UseSdkError()  # nothing has run: the SDK's way renews a login, or says that one is needed
        in_session = bool(self._fast_path.live.http_session)
        refused = http_refusal(answer.status, answer.reason, answer.kind, answer.body, in_session=in_session)
        match refused:
            case (kind, text) if kind == SESSION:
                self.pending.in_flight.unread = True
                return ConnectionEndedError(text, self.pending.in_flight, dead=True)
            case (_, text):
                return MCPError(INTERNAL_ERROR, text, {MARK: STATUS, "status": answer.status})
            case None:
                return self._rpc_error(answer)

    def _rpc_error(self, answer: HttpAnswer) -> Exception:
        try:
            message = parse_by_model(answer.body)
        except ValueError:
            message = None
        if isinstance(message, JSONRPCError):
            if message.error.code == HEADER_MISMATCH:
                return UseSdkError()
            return MCPError(message.error.code, message.error.message, message.error.data)
        if answer.status == 404:
            return MCPError(METHOD_NOT_FOUND, "Not Found")
        return MCPError(INTERNAL_ERROR, "Server returned an error response")

    def take_end(self, events: EventStream) -> None:
        """Ask for the rest where the server can give it."""
        if self.pending.outcome is not None:
            return
        if self._resumed is not None and not events.last_id:
            events.last_id, events.retry = self._resumed.last_id, events.retry or self._resumed.retry
        self._resumed, self._attempts = events, 0
        if events.last_id:
            self._fast_path.tasks.start(self._fast_path.resume(self, events))
        else:
            self._lose_connection(f"{STREAM_ENDED} without a response")

    def retry(self, events: EventStream) -> None:
        """Try once more to get the rest of the stream."""
        self._attempts += 1
        if self._attempts < _ATTEMPTS:
            self._fast_path.tasks.start(self._fast_path.resume(self, events))
        else:
            self._lose_connection(f"{STREAM_ENDED} and reconnection attempts were exhausted")

    def take_break(self, reason: str) -> None:
        """Take note that the connection broke."""
        if self._resumed is not None:
            self.retry(self._resumed)
        else:
            self._lose_connection(reason)

    def oversized(self) -> None:
        """End the call: its answer is over the limit."""
        self.pending.finish(TooLargeError())

    def _lose_connection(self, reason: str) -> None:
        self.pending.finish(ConnectionEndedError(reason, self.pending.in_flight))


class _IgnoringReceiver:
    """The receiver of an answer that matters to no one."""

    def __init__(self, done: asyncio.Future[None]) -> None:
        self._done = done

    def event(self, data: bytes) -> None:
        """Let an event pass."""

    def take_answer(self, answer: HttpAnswer) -> None:  # noqa: ARG002 - any will do
        """Take note of the answer."""
        if not self._done.done():
            self._done.set_result(None)

    def take_end(self, events: EventStream) -> None:  # noqa: ARG002 - any will do
        """Take note of the end."""
        self.take_answer(HttpAnswer())

    def take_break(self, reason: str) -> None:  # noqa: ARG002 - no one asks why
        """Take note of the end."""
        self.take_answer(HttpAnswer())

    def oversized(self) -> None:
        """Take note of the end."""
        self.take_answer(HttpAnswer())


def _header_lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in headers)
