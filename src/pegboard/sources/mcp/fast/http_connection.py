"""One connection of HTTP/1.1, kept and used again, and the pool of them.

Parsing is httptools' (llhttp); what an answer means is the receiver's affair. Import this late.
"""

from __future__ import annotations

import asyncio
import select
import time
import zlib
from collections.abc import Callable
from typing import Any, Protocol, cast

import httptools

from pegboard.sources.mcp.fast.http_answer import HEAD_LIMIT, AnswerBody, EventStream, HttpAnswer
from pegboard.sources.mcp.wire.request_outcomes import TooLargeError
from pegboard.support.tasks import call_later_detached

# Servers keep idle connections for 5 s (uvicorn, Node): leave before them.
_IDLE = 3.0
_MOST_IDLE = 32
# A server that has answered by an event gets this long to end the stream before it is aborted.
_STREAM_END = 1.0
_CONNECT = 10.0


class Receiver(Protocol):
    """Whoever waits for the answer to one request."""

    def event(self, data: bytes) -> None:
        """Take an event of the stream."""
        ...

    def take_answer(self, answer: HttpAnswer) -> None:
        """Take a whole answer."""
        ...

    def take_end(self, events: EventStream) -> None:
        """Take note that the stream of events ended, properly or not."""
        ...

    def take_break(self, reason: str) -> None:
        """Take note that no whole answer comes."""
        ...

    def oversized(self) -> None:
        """Take note that the answer is over the limit."""
        ...


class HttpConnection(asyncio.Protocol):
    """A connection that takes one request at a time and passes its answer to a receiver.

    ``limit`` is how long a message may be, inflated: a body, or an event of a stream.
    """

    def __init__(self, pool: ConnectionPool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self._receiver: Receiver | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer = HttpAnswer()
        self._body: AnswerBody | None = None
        self._head_size = 0
        self._oversized = False
        self._started = False
        self._whole = False
        self._keep = False
        self._idle_since = 0.0
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._number = cast("int", transport.get_extra_info("socket").fileno())
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._number, select.POLLIN)

    def usable(self) -> bool:
        """Return whether the connection is still good."""
        return time.monotonic() - self._idle_since <= _IDLE and not self.has_ended()

    def has_ended(self) -> bool:
        """Return whether the server has closed the connection, which is free: the loop may not know it yet."""
        if self.closed or self._transport.is_closing():
            return True
        if self._poll is not None:
            return bool(self._poll.poll(0))
        return bool(select.select([self._number], [], [], 0)[0])

    def rest(self) -> None:
        """Count as free from now on."""
        self._idle_since = time.monotonic()

    def send(self, request: bytes, receiver: Receiver) -> None:
        """Send a request."""
        self._receiver = receiver
        self._begin_answer()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    def abort(self, receiver: Receiver | None = None) -> None:
        """Close the connection, unless someone else than the receiver uses it; the receiver gets nothing more."""
        if self._receiver is receiver:
            self._receiver = None
            self._transport.abort()

    def release(self, receiver: Receiver) -> None:
        """Take note that a receiver has what it waited for: the rest of its stream is not read."""
        if self._receiver is receiver:
            self._receiver = None
            call_later_detached(_STREAM_END, self._abort_stream, self._parser)

    def _abort_stream(self, parser: object) -> None:
        if self._parser is parser:
            self._transport.abort()

    def _begin_answer(self) -> None:
        self._answer, self._body, self._head_size = HttpAnswer(), None, 0
        self._started = self._whole = self._keep = False

    # -- what the parser finds ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take what the server sent."""
        if self._parser is None:  # no one asked
            self._transport.abort()
            return
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, zlib.error) as error:
            if self._oversized:
                self._break_oversized()
            else:
                self._break_connection(f"its answer is not HTTP: {error}")
            return
        if self._whole:
            self._finish()
        elif self._head_size > HEAD_LIMIT:
            self._break_connection(f"its answer has a head of more than {HEAD_LIMIT // 1024} KiB")

    def on_status(self, status: bytes) -> None:
        """Take the reason phrase."""
        self._answer.reason = status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Take note of what kind of answer comes."""
        assert self._parser is not None
        self._head_size = 0
        self._answer.status = self._parser.get_status_code()
        self._started = self._answer.status >= 200
        if self._started:
            self._body = AnswerBody(self._answer, self._limit)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._head_size = 0  # what is no part of a body belongs to a head, or to what stands after the body
        if self._body is None:
            return
        try:
            for data in self._body.feed(body):
                if self._receiver is not None:
                    self._receiver.event(data)
        except TooLargeError:
            self._oversized = True
            raise

    def on_message_complete(self) -> None:
        """Take note of the end of an answer; one that only says "go on" is none."""
        if self._started:
            assert self._parser is not None
            self._whole, self._keep = True, self._parser.should_keep_alive()  # later it says False
        else:
            self._begin_answer()

    # -- ends --------------------------------------------------------------------------------------

    def _finish(self) -> None:
        keep = self._keep and not self.closed
        receiver, answer, body = self._receiver, self._answer, self._body
        self._parser = self._receiver = None
        if keep:
            self.rest()
            self._pool.put(self)
        else:
            self._transport.close()
        if receiver is None or body is None:
            return
        if body.events is None:
            answer.body = body.read_whole()
            receiver.take_answer(answer)
            return
        for data in body.events.feed(b"\n\n"):
            receiver.event(data)
        receiver.take_end(body.events)

    def _break_connection(self, reason: str) -> None:
        receiver, self._receiver, self._parser = self._receiver, None, None
        self._transport.abort()
        if receiver is None:
            return
        if self._body is not None and self._body.events is not None:
            receiver.take_end(self._body.events)
        else:
            receiver.take_break(reason)

    def _break_oversized(self) -> None:
        receiver, self._receiver, self._parser, self._body = self._receiver, None, None, None
        self._transport.abort()
        if receiver is not None:
            receiver.oversized()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end, which is also the end of an answer of no stated length."""
        self.closed = True
        self._pool.forget(self)
        if self._parser is None:
            return
        if self._started and not self._answer.framed and exc is None:
            self._finish()
        else:
            self._break_connection(f"the connection broke ({exc or 'the server closed it'})")


class ConnectionPool:
    """The connections to one server; a message over one is at most ``limit`` bytes long.

    ``ended`` is called where the server has closed one that was free.
    """

    def __init__(self, host: str, port: int, tls: Any, limit: int, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._host, self._port, self._tls = host, port, tls
        self._limit = limit
        self._idle: list[HttpConnection] = []
        self._closed = False

    async def take(self) -> HttpConnection:
        """Return a connection that is free; raises ``OSError``, and ``TimeoutError`` after 10 s."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable():
                return connection
            if connection.has_ended():
                self._ended()
            connection.abort()
        async with asyncio.timeout(_CONNECT):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(self, self._limit),
                self._host,
                self._port,
                ssl=self._tls,
                happy_eyeballs_delay=0.25,
            )
        return connection

    def put(self, connection: HttpConnection) -> None:
        """Take a connection back."""
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.abort()
        else:
            self._idle.append(connection)

    async def keep_one(self) -> None:
        """Have a connection that is free, where none is: its end tells of the server's."""
        if not self._idle:
            connection = await self.take()
            connection.rest()
            self.put(connection)

    def forget(self, connection: HttpConnection) -> None:
        """Drop a connection that has ended."""
        if connection in self._idle:
            self._idle.remove(connection)
            self._ended()

    def close(self) -> None:
        """Close the connections that are free."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()
