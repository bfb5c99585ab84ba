"""Connections that say nothing: how long they may, and how many of them there may be (G2)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Phase = Literal["headers", "body", "idle"]
Wrap = Callable[[asyncio.Transport], asyncio.Transport]

_TIMEOUT: Final = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_FILES: Final = 1024
"""How many files a process may have open where the system does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How long a connection may wait without a call or stream, in seconds, and how many may wait at once.

    Attributes:
        headers: from the connection, or the first byte of a further request, until its headers are there.
        body: from the headers until the body is there.
        idle: from a response until the next request begins.
        per_address: how many connections of one address may wait at once.
        total: how many may wait at once in all; by default half of the files that the process may have open.
    """

    headers: float = 10.0
    body: float = 30.0
    idle: float = 60.0
    per_address: int = 256
    total: int | None = None


class _OfAddress:
    """The connections of one address that wait, oldest first: those that asked nothing yet, and those that did."""

    def __init__(self) -> None:
        self.new: dict[LimitedProtocol, tuple[Phase, float]] = {}
        self.used: dict[LimitedProtocol, tuple[Phase, float]] = {}

    def __len__(self) -> int:
        return len(self.new) + len(self.used)

    def of(self, connection: LimitedProtocol) -> dict[LimitedProtocol, tuple[Phase, float]]:
        """Return those among which a connection waits: what it waits for, and since when."""
        return self.used if connection.used else self.new

    def first(self) -> tuple[bool, float, LimitedProtocol]:
        """Return the one to be closed first: whether it asked something before, since when it waits, itself."""
        connection, (_, since) = next(iter((self.new or self.used).items()))
        return connection.used, since, connection


class WaitingConnections:
    """The connections of one server that have no complete request in flight.

    At a bound the oldest of them is closed and the new one is taken: of those that never asked anything, else of all.
    One with a call or a stream is never closed.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._total = _half_of_the_files() if limits.total is None else limits.total
        self._by_address: defaultdict[str, _OfAddress] = defaultdict(_OfAddress)
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: LimitedProtocol, phase: Phase) -> None:
        """Note that a connection waits from now on, and close the oldest where there are too many."""
        loop = connection.loop
        self.remove(connection)
        waiting = self._by_address[connection.address]
        waiting.of(connection)[connection] = (phase, loop.time())
        self._count += 1
        if len(waiting) > self._limits.per_address:
            waiting.first()[2].give_up()
        elif self._count > self._total:
            self._oldest().give_up()
        if self._timer is None:
            self._timer = loop.call_later(self._interval(), self._close_overdue, loop)

    def remove(self, connection: LimitedProtocol) -> None:
        """Note that a connection has a request in flight, or is closed."""
        waiting = self._by_address.get(connection.address)
        if waiting is not None and waiting.of(connection).pop(connection, None) is not None:
            self._count -= 1
            if not waiting:
                del self._by_address[connection.address]

    def _oldest(self) -> LimitedProtocol:
        return min((waiting.first() for waiting in self._by_address.values()), key=lambda first: first[:2])[2]

    def _interval(self) -> float:
        return min(1.0, self._limits.headers / 4, self._limits.body / 4, self._limits.idle / 4)

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        allowed = {"headers": self._limits.headers, "body": self._limits.body, "idle": self._limits.idle}
        overdue = [
            connection
            for waiting in self._by_address.values()
            for connection, (phase, since) in (*waiting.new.items(), *waiting.used.items())
            if now - since > allowed[phase]
        ]
        for connection in overdue:
            connection.give_up()
        self._timer = loop.call_later(self._interval(), self._close_overdue, loop) if self._count else None


def _half_of_the_files() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return _FILES // 2
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft, _FILES) // 2 if soft != resource.RLIM_INFINITY else 1 << 16


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, whose connections wait only as long as they may; ``wrap`` goes around transports."""

    def __init__(self, waiting: WaitingConnections, wrap: Wrap | None, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting = waiting
        self._wrap = wrap
        self._phase: Phase = "headers"
        self._begun = False
        self.used = False
        self.address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport if self._wrap is None else self._wrap(transport))
        self.address = self.client[0] if self.client else ""
        self._wait("headers")

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        self._waiting.remove(self)

    def on_message_begin(self) -> None:
        """Wait for the headers; those of the first request are awaited from the connection on."""
        super().on_message_begin()
        self._begun = True
        if self._phase == "idle":
            self._wait("headers")

    def on_headers_complete(self) -> None:
        """Wait for the body."""
        super().on_headers_complete()
        if not self.pipeline:  # else an earlier request is in flight
            self._wait("body")

    def on_message_complete(self) -> None:
        """Wait for nothing while the request is answered."""
        super().on_message_complete()
        if self.cycle.response_complete:
            self._wait_for_more()
        else:
            self._waiting.remove(self)

    def on_response_complete(self) -> None:
        """Wait for the rest of a body, of this request or of one that came behind it, or else for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.cycle.more_body:
            self._wait("body")
        elif self.cycle.response_complete:
            self._wait_for_more()

    def give_up(self) -> None:
        """Close the connection; where a request was begun, and no response has begun, it gets a 408."""
        self._waiting.remove(self)
        if (self._phase == "body" and not self.cycle.response_started) or (self._phase == "headers" and self._begun):
            self.transport.write(_TIMEOUT)
        self.transport.close()

    def _wait_for_more(self) -> None:
        """Wait for the next request: this connection has asked something, and was answered."""
        self._waiting.remove(self)
        self.used = True
        self._wait("idle")

    def _wait(self, phase: Phase) -> None:
        self._phase = phase
        self._waiting.add(self, phase)
