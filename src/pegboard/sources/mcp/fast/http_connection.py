"""One connection of HTTP/1.1, kept and used again, and the events of a stream.

Parsing is httptools' (llhttp); what an answer means is the receiver's affair. Import this late.
"""

from __future__ import annotations

import asyncio
import select
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import httptools

# Servers hold idle connections for 5 s (uvicorn, Node): leave before them.
_IDLE = 3.0
_MOST_IDLE = 32
# A server that has answered by an event gets this long to end the stream before it is cut.
_STREAM_END = 1.0
_CONNECT = 10.0


@dataclass(slots=True)
class Answer:
    """Hold an HTTP answer; header names are in lower case. ``body`` is empty for a stream of events."""

    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def kind(self) -> str:
        """Return the content type in lower case."""
        return self.headers.get("content-type", "").lower()

    @property
    def streams(self) -> bool:
        """Return whether the answer is a stream of events."""
        return self.status < 300 and self.kind.startswith("text/event-stream")


class Receiver(Protocol):
    """Take what comes back for one request."""

    def event(self, data: bytes) -> None:
        """Take an event of the stream."""
        ...

    def answered(self, answer: Answer) -> None:
        """Take a whole answer."""
        ...

    def ended(self, events: Events) -> None:
        """Take note that the stream of events ended, properly or not."""
        ...

    def broken(self, reason: str) -> None:
        """Take note that no whole answer comes."""
        ...


class HttpConnection(asyncio.Protocol):
    """Send one request at a time over a connection, and pass what comes back to its receiver."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._receiver: Receiver | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer = Answer()
        self._body: list[bytes] = []
        self._events: Events | None = None
        self._inflate: Any = None
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
        """Return whether the connection is still good: the loop may not know yet that the server closed it."""
        if self.closed or self._transport.is_closing() or time.monotonic() - self._idle_since > _IDLE:
            return False
        if self._poll is not None:
            return not self._poll.poll(0)
        return not select.select([self._number], [], [], 0)[0]

    def ask(self, request: bytes, receiver: Receiver) -> None:
        """Send a request."""
        self._receiver = receiver
        self._begin()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    def cut(self, receiver: Receiver | None = None) -> None:
        """Close the connection, unless somebody else than the receiver uses it; the receiver hears no more."""
        if self._receiver is receiver:
            self._receiver = None
            self._transport.abort()

    def _begin(self) -> None:
        self._answer, self._body, self._events, self._inflate = Answer(), [], None, None
        self._started = self._whole = self._keep = False

    def data_received(self, data: bytes) -> None:
        """Take what the server sent."""
        if self._parser is None:  # nobody asked
            self._transport.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, zlib.error) as error:
            self._break(f"its answer is not HTTP: {error}")
            return
        if self._whole:
            self._finish()

    def on_status(self, status: bytes) -> None:
        """Take the reason phrase."""
        self._answer.reason = status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Take note of what kind of answer comes."""
        assert self._parser is not None
        self._answer.status = self._parser.get_status_code()
        self._started = self._answer.status >= 200
        encoding = self._answer.headers.get("content-encoding", "identity").lower()
        if encoding in {"gzip", "x-gzip", "deflate"}:
            self._inflate = zlib.decompressobj(47)
        elif encoding != "identity":
            raise zlib.error(f"it is encoded as {encoding}")
        if self._answer.streams:
            self._events = Events()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._inflate is not None:
            body = self._inflate.decompress(body)
        if self._events is None:
            self._body.append(body)
            return
        for data in self._events.feed(body):
            if self._receiver is not None:
                self._receiver.event(data)

    def on_message_complete(self) -> None:
        """Take note of the end of an answer; one that only says "go on" is none."""
        if self._started:
            assert self._parser is not None
            self._whole, self._keep = True, self._parser.should_keep_alive()  # later it says False
        else:
            self._begin()

    def done(self, receiver: Receiver) -> None:
        """Take note that a receiver has what it waited for: the rest of its stream is not heard."""
        if self._receiver is receiver:
            self._receiver = None
            asyncio.get_running_loop().call_later(_STREAM_END, self._cut_stream, self._parser)

    def _cut_stream(self, parser: object) -> None:
        if self._parser is parser:
            self._transport.abort()

    def _finish(self) -> None:
        keep = self._keep and not self.closed
        receiver, answer, events = self._receiver, self._answer, self._events
        self._parser = self._receiver = None
        if keep:
            self._idle_since = time.monotonic()
            self._pool.put(self)
        else:
            self._transport.close()
        if receiver is None:
            return
        if events is None:
            answer.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            receiver.answered(answer)
            return
        for data in events.feed(b"\n\n"):
            receiver.event(data)
        receiver.ended(events)

    def _break(self, reason: str) -> None:
        receiver, self._receiver, self._parser = self._receiver, None, None
        self._transport.abort()
        if receiver is None:
            return
        if self._events is not None:
            receiver.ended(self._events)
        else:
            receiver.broken(reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end, which is also the end of an answer of no stated length."""
        self.closed = True
        self._pool.forget(self)
        if self._parser is None:
            return
        headers = self._answer.headers
        framed = "content-length" in headers or "transfer-encoding" in headers
        if self._started and not framed and exc is None:
            self._finish()
        else:
            self._break(f"the connection broke ({exc or 'the server closed it'})")


class ConnectionPool:
    """Keep connections to one server."""

    def __init__(self, host: str, port: int, tls: Any) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._idle: list[HttpConnection] = []
        self._closed = False

    async def take(self) -> HttpConnection:
        """Return a connection that is free; raises ``OSError``, and ``TimeoutError`` after 10 s."""
        while self._idle:
            exchange = self._idle.pop()
            if exchange.usable():
                return exchange
            exchange.cut()
        async with asyncio.timeout(_CONNECT):
            _, exchange = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(self), self._host, self._port, ssl=self._tls, happy_eyeballs_delay=0.25
            )
        return exchange

    def put(self, exchange: HttpConnection) -> None:
        """Take a connection back."""
        if self._closed or len(self._idle) >= _MOST_IDLE:
            exchange.cut()
        else:
            self._idle.append(exchange)

    def forget(self, exchange: HttpConnection) -> None:
        """Leave out a connection that has ended."""
        if exchange in self._idle:
            self._idle.remove(exchange)

    def close(self) -> None:
        """Close the connections that are free."""
        self._closed = True
        while self._idle:
            self._idle.pop().cut()


class Events:
    """Read a stream of server-sent events; ``last_id`` and ``retry`` (seconds) are those last seen."""

    def __init__(self) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._kind = b"message"

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each message that is whole now."""
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, len(chunk) - 1))
        if end < 0 and not self._rest.endswith(b"\r"):
            self._rest += chunk
            return
        lines = bytes(self._rest) + chunk[: end + 1]
        self._rest = bytearray(chunk[end + 1 :])
        for line in lines.splitlines():
            if line:
                self._field(line)
                continue
            if self._data and self._kind == b"message":
                yield b"\n".join(self._data)
            self._data, self._kind = [], b"message"

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value or b"message"
        elif name == b"id":
            self.last_id = value.decode("utf-8", errors="replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
