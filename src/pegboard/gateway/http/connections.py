"""How many connections there may be, how long they may say nothing, and how long a head may be (G2)."""

from __future__ import annotations

import asyncio
import select
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pegboard.gateway.http.auth import PRINCIPAL, HttpRefusal
from pegboard.support.mcp_constants import INTERNAL_ERROR

Phase = Literal["headers", "body", "idle"]

HEAD_LIMIT: Final = 64 * 1024
"""How long the head of a request may be, in bytes: its first line and its headers; trailers by themselves."""
SETTLED: Final = 1.0
"""For how many seconds a connection has waited, at least, that is closed for another one."""
LINGER: Final = 1.0
"""For how many seconds what else a client sends is dropped after a refusal, so that it can read that."""
FLUSHED: Final = 10.0
"""For how many seconds a client may still read its last answer once its connection is given up."""
_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LONG: Final = b"The headers of a request here have at most 64 KiB."
_TOO_LONG_ANSWER: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_TOO_LONG), _TOO_LONG)
)
_FILES: Final = 1024
"""How many files a process may have open where the system does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How long a connection may wait without a call or stream, in seconds, and how many there may be.

    Attributes:
        headers: from the connection, or the first byte of a further request, until its headers are there.
        body: from the headers until the body is there.
        idle: from a response until the next request begins.
        first: for how long a new connection may be silent before it counts at the bound of its address.
        per_address: how many connections of one address may wait at once; behind a trusted proxy, of one principal.
        total: how many may be open in all; by default half of the files that the process may have open.
    """

    headers: float = 10.0
    body: float = 30.0
    idle: float = 60.0
    first: float = 5.0
    per_address: int = 256
    total: int | None = None

    @property
    def most_connections(self) -> int:
        """Return how many connections may be open in all."""
        return half_of_the_files() if self.total is None else self.total


class OpenConnections:
    """The connections of one server, and those of them that have no complete request in flight.

    At the bound of an address the one that has waited longest is closed, at the bound of all the one that has waited
    longest of whoever has most of them. None with a call or a stream is closed: where all have one, new connections
    are refused.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._most = limits.most_connections
        self._open: set[LimitedProtocol] = set()
        self._waiting: dict[LimitedProtocol, tuple[Phase, float, str]] = {}
        self._of_owner: defaultdict[str, dict[LimitedProtocol, float]] = defaultdict(dict)
        self._changed = asyncio.Event()
        self._full_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def wait_for_room(self) -> bool:
        """Wait until there is room for one more connection; return False where it is to be refused.

        That is where there has been no room for a while, and then only for few at once.
        """
        loop = asyncio.get_running_loop()
        while len(self._open) >= self._most:
            if self.make_room():
                continue
            self._full_since = self._full_since or loop.time()
            crowded = len(self._open) >= self._most + max(1, self._most // 8)
            if loop.time() - self._full_since >= SETTLED and not crowded:
                return False
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLED / 4):
                    await self._changed.wait()
        self._full_since = None
        return True

    def make_room(self) -> bool:
        """Close the connection that has waited longest of whoever has most; return whether there was one.

        One that has not asked anything yet has a while to do so.
        """
        if not self._waiting:
            return False
        most = max(self._of_owner.values(), key=lambda waiting: (len(waiting), -next(iter(waiting.values()))))
        connection, since = next(iter(most.items()))
        if connection.has_unread() or (connection.new and connection.loop.time() - since < SETTLED):
            return False
        connection.give_up()
        return True

    def open(self, connection: LimitedProtocol) -> None:
        """Note a new connection."""
        self._open.add(connection)

    def close(self, connection: LimitedProtocol) -> None:
        """Note that a connection is closed."""
        self.remove(connection)
        self._open.discard(connection)
        self._changed.set()

    def add(self, connection: LimitedProtocol, phase: Phase) -> None:
        """Note that a connection waits from now on."""
        loop = connection.loop
        now = loop.time()
        self.remove(connection)
        self._changed.set()
        self._waiting[connection] = phase, now, connection.owner
        self._of_owner[connection.owner][connection] = now
        self._close_over_bound(connection.owner, now)
        if self._timer is None:
            self._timer = loop.call_later(self._check_interval(), self._close_overdue, loop)

    def remove(self, connection: LimitedProtocol) -> None:
        """Note that a connection has a request in flight, or is closed."""
        waited = self._waiting.pop(connection, None)
        if waited is not None:
            owner = waited[2]
            del self._of_owner[owner][connection]
            if not self._of_owner[owner]:
                del self._of_owner[owner]

    def _close_over_bound(self, owner: str, now: float) -> None:
        """Close those connections of an owner that have waited longest, as long as there are too many."""
        while len(self._of_owner.get(owner, ())) > self._limits.per_address:
            connection, since = next(iter(self._of_owner[owner].items()))
            if now - since < (self._limits.first if connection.new else SETTLED) or connection.has_unread():
                return
            connection.give_up()

    def _check_interval(self) -> float:
        limits = self._limits
        return min(1.0, limits.headers / 4, limits.body / 4, limits.idle / 4, limits.first / 4)

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        allowed = {"headers": self._limits.headers, "body": self._limits.body, "idle": self._limits.idle}
        overdue = [one for one, (phase, since, _) in self._waiting.items() if now - since > allowed[phase]]
        for connection in overdue:
            connection.give_up()
        for owner in list(self._of_owner):
            self._close_over_bound(owner, now)
        self._timer = loop.call_later(self._check_interval(), self._close_overdue, loop) if self._waiting else None


def half_of_the_files() -> int:
    """Return half of the number of files that the process may have open: servers, store and logs have the rest."""
    try:
        import resource
    except ImportError:  # not on Windows
        return _FILES // 2
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft // 2 if soft != resource.RLIM_INFINITY else 1 << 16


async def _refuse_busy(scope: Any, receive: Any, send: Any) -> None:
    """Answer that there is no room."""
    headers = {"Connection": "close", "Retry_After": "1"}
    refusal = HttpRefusal(
        503,
        "The gateway has reached its limit of open calls and streams. Try again later.",
        code=INTERNAL_ERROR,
        **headers,
    )
    await refusal(scope, receive, send)


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, whose connections wait only as long as they may.

    It is ``new`` until a request was answered. ``owner`` is whose it is when connections are counted: an address, or
    behind a trusted proxy a principal. One that is not ``served`` is told so by the answer to its first request.
    """

    def __init__(self, connections: OpenConnections, *, served: bool, **options: Any) -> None:
        super().__init__(**options)
        if not served:
            self.app = _refuse_busy
        self._counted = connections
        self._phase: Phase = "headers"
        self._begun = False
        self._head = 0  # bytes since the last that belonged to a body
        self._refused = False
        self.new = True
        self.owner = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self.owner = self.client[0] if self.client else ""
        self._counted.open(self)
        self._enter_phase("headers")

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._counted.close(self)

    # -- heads -------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take what the client sends, and refuse a head that is too long."""
        if self._refused:
            return
        self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_LIMIT and not self.transport.is_closing():
            self._refuse_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one that is too long."""
        if self._head > HEAD_LIMIT:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        """Say that a head is too long, unless an earlier request is being answered, and close the connection."""
        if self._refused:
            return
        self._refused = True
        self._counted.remove(self)
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            self.transport.close()
            return
        self.transport.write(_TOO_LONG_ANSWER)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    # -- requests ----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Wait for the headers; those of the first request are awaited from the connection on."""
        super().on_message_begin()
        self._begun = True
        if self._phase == "idle":
            self._enter_phase("headers")

    def on_headers_complete(self) -> None:
        """Wait for the body; raises ``ValueError`` where the head is too long."""
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head > HEAD_LIMIT:
            self._head = head
            raise ValueError
        self._head = 0
        super().on_headers_complete()
        if not self.pipeline:  # else an earlier request is in flight
            self._enter_phase("body")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for nothing while the request is answered."""
        self._head = 0
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_for_more()
        else:
            self._counted.remove(self)

    def on_response_complete(self) -> None:
        """Wait for the rest of a body, of this request or of one that came behind it, or else for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.cycle.more_body:
            self._enter_phase("body")
        elif self.cycle.response_complete:
            self._wait_for_more()

    def has_unread(self) -> bool:
        """Return whether the client has sent something that the loop has not come to yet."""
        number: int = self.transport.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):  # on Windows
            return bool(select.select([number], [], [], 0)[0])
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return bool(poll.poll(0))

    def give_up(self) -> None:
        """Close the connection; where a request was begun, and no response has begun, it gets a 408."""
        self._counted.close(self)
        if (self._phase == "body" and not self.cycle.response_started) or (self._phase == "headers" and self._begun):
            self.transport.write(_TIMEOUT)
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(FLUSHED, self.transport.abort)

    def _wait_for_more(self) -> None:
        """Wait for the next request: this connection has asked something, and was answered."""
        self.new = False
        self.owner = self._owner()
        self._enter_phase("idle")

    def _owner(self) -> str:
        """Return whose the connection is, by its last request: uvicorn replaces the client that a trusted proxy is."""
        scope: Any = self.cycle.scope
        client = scope["client"]
        if client is None or client == self.client:
            return self.owner
        principal = scope["state"].get(PRINCIPAL)
        return client[0] if principal is None else f"principal {principal}"

    def _enter_phase(self, phase: Phase) -> None:
        self._phase = phase
        self._counted.add(self, phase)
