"""What passes over one connection, seen from the transport: raw answers, deliveries, the end.

The SDK's models drop keys that they do not know and refuse a whole page for one invalid tool; what
is seen here is the wire object itself. Imports the SDK: import this module late.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
from mcp.client import Transport
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ListToolsResult,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.core.model.naming import one_line
from pegboard.sources.mcp.wire.server_requests import ServerRequests

if TYPE_CHECKING:
    from pegboard.sources.mcp.fast.fast_path import FastPath

log = logging.getLogger("pegboard.sources.mcp")

Streams = tuple["Reader", "Writer"]
_LINE = 500
_LINES = 40
_ENVELOPE = (CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY)


class InFlight:
    """Hold one request under way: whether it left, and the answer as it stood on the wire.

    ``unread``: the server ended before it had read the whole of it. ``refused``: the answer was an error.
    """

    __slots__ = ("listing", "raw", "refused", "sent", "unread")

    def __init__(self, *, listing: bool = False) -> None:
        self.listing = listing
        self.sent = False
        self.unread = False
        self.refused = False
        self.raw: dict[str, Any] | None = None


class GoneError(Exception):
    """Report a connection that ended; ``dead``: it answers nothing any more, as far as is known."""

    def __init__(self, reason: str, flight: InFlight, *, dead: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.dead = dead
        self._flight = flight

    @property
    def sent(self) -> bool:
        """Return whether the server may have seen the request; certain once the connection has ended."""
        return self._flight.sent and not self._flight.unread


NO_MESSAGE = "its answer is not a message of the protocol"


class InvalidAnswerError(Exception):
    """Report an answer that is not what the protocol allows."""


IN_FLIGHT: ContextVar[InFlight | None] = ContextVar("pegboard_flight", default=None)


class ConnectionRecord:
    """Hold what is known of one connection from its start to its end.

    ``closed`` is set when no request can be answered any more, ``ended`` when all that belonged to
    it has been stopped; ``reason`` says why. ``subscribed`` is set once no change can be missed.
    ``heard`` tells whether anything valid ever came. ``lane`` takes calls around the SDK once the
    connection is up; ``envelope`` is what the SDK says of this client with every request of the 2026 era.
    ``session_id`` and ``initialized`` are those of the handshake era over HTTP. ``talk`` takes what
    the server asks and says, ``notice`` the notifications about lists other than that of tools, and
    ``told`` is of which lists a stream says that they change.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = asyncio.Event()
        self.ended = asyncio.Event()
        self.subscribed = asyncio.Event()
        self.reason = ""
        self.pid: int | None = None
        self.version = ""
        self.up = False
        self.stopped = False
        self.heard = False
        self.exit = ""
        self.stderr: deque[str] = deque(maxlen=_LINES)
        self.strays: deque[str] = deque(maxlen=3)
        self.stray_count = 0
        self.dropped: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.told: frozenset[str] = frozenset()
        self.notice: Callable[[Any], None] = lambda _: None
        self.flights: dict[int | str, InFlight] = {}
        self.alive_check: Callable[[], bool] | None = None
        self.lane: FastPath | None = None
        self.envelope: dict[str, Any] = {}
        self.session_id = ""
        self.initialized = False
        self.talk = ServerRequests(name)

    def close(self, reason: str) -> None:
        """End the connection; the first reason stands."""
        if not self.closed.is_set():
            self.reason = self.reason or reason
            self.closed.set()

    def stop(self, reason: str) -> None:
        """End the connection because nobody wants it any more."""
        self.stopped = True
        self.close(reason)

    def alive(self) -> bool:
        """Return whether a request that is sent now can be answered."""
        return not self.closed.is_set() and (self.alive_check is None or self.alive_check())

    def complain(self, text: str) -> None:
        """Keep a line that the server wrote to its standard error."""
        if line := one_line(text, limit=_LINE):
            self.stderr.append(line)

    def stray(self, text: str) -> None:
        """Keep a line on standard output that is no message of the protocol."""
        self.stray_count += 1
        if line := one_line(text, limit=200):
            self.strays.append(line)
            log.debug("server %r printed a line that is not a message of the protocol", self.name)

    def drop(self, name: str, reason: str) -> None:
        """Report a tool that is left out of the list."""
        if self.dropped.get(name) != reason:
            log.warning("server %r: tool %r is left out: %s", self.name, name, reason)
        self.dropped[name] = reason

    def leave_out(self, what: str, reason: str) -> None:
        """Report a list, or an item of it, besides tools that is left out."""
        log.warning("server %r: %s is left out: %s", self.name, one_line(what, limit=200), reason)
        self.left_out[what] = reason


class _End:
    """Be one end of the SDK's pair of streams, and know the link."""

    def __init__(self, inner: Any, link: ConnectionRecord) -> None:
        self._inner = inner
        self._link = link

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class Reader(_End):
    """Read messages, and see each before the session does."""

    @property
    def last_context(self) -> Any:
        """Return the context of the message's sender, where the transport keeps one."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            try:
                item = await self._inner.__anext__()
            except (StopAsyncIteration, anyio.ClosedResourceError, anyio.EndOfStream):
                self._link.close("it closed the connection")
                raise
            if isinstance(item, SessionMessage):
                self._see(item.message)
                if self._link.talk.takes(item.message):
                    continue
            return cast("SessionMessage | Exception", item)

    def _see(self, message: Any) -> None:
        self._link.heard = True
        match message:
            case JSONRPCResponse():
                if flight := self._link.flights.pop(coerce_request_id(message.id), None):
                    if flight.listing and "tools" in message.result:
                        drop_invalid_tools(message.result, self._link)
                    flight.raw = message.result
            case JSONRPCError() if message.id is not None:
                if flight := self._link.flights.pop(coerce_request_id(message.id), None):
                    flight.refused = True
            case JSONRPCNotification(method="notifications/progress") if self._link.lane is not None:
                self._link.lane.report(message.params)
            case _:
                pass


class Writer(_End):
    """Write messages, and note which requests left."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        request = item.message if isinstance(item.message, JSONRPCRequest) else None
        flight = IN_FLIGHT.get() if request is not None else None
        if request is not None and flight is not None:
            self._link.flights[coerce_request_id(request.id)] = flight
        if request is not None and request.method == "server/discover":
            meta: dict[str, Any] = (request.params or {}).get("_meta") or {}
            self._link.envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        await self._inner.send(item)
        if flight is not None:
            flight.sent = True


class ObservedTransport:
    """Be a transport of the SDK that lets a link see what passes."""

    def __init__(self, transport: Transport, link: ConnectionRecord) -> None:
        self._transport = transport
        self._link = link

    async def __aenter__(self) -> Streams:
        read, write = await self._transport.__aenter__()

        async def answer(message: JSONRPCResponse | JSONRPCError) -> None:
            await write.send(SessionMessage(message))

        self._link.talk.write = answer
        return Reader(read, self._link), Writer(write, self._link)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._link.close("it was stopped")
        return await self._transport.__aexit__(kind, error, trace)


def drop_invalid_tools(result: dict[str, Any], link: ConnectionRecord) -> None:
    """Leave in a page of tools only what the SDK takes, so that one bad tool never costs the list (G8)."""
    tools: object = result["tools"]
    if not isinstance(tools, list):
        return
    modern = link.version in MODERN_PROTOCOL_VERSIONS
    if modern:  # required there, and nothing that we use: a server without them still has tools
        result.setdefault("ttlMs", 0)
        result.setdefault("cacheScope", "private")
        result.setdefault("resultType", "complete")
    kept: list[Any] = []
    for number, tool in enumerate(cast("list[Any]", tools)):
        fault = _fault({**result, "tools": [tool]}, link.version)
        if fault is None:
            kept.append(tool)
            continue
        name: object = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
        link.drop(name if isinstance(name, str) and name else f"#{number + 1}", fault)
    result["tools"] = kept


def _fault(page: dict[str, Any], version: str) -> str | None:
    """Return what is wrong with a page that has one tool."""
    tool: object = page["tools"][0]
    if isinstance(tool, dict) and cast("dict[str, Any]", tool).get("name") == "":
        return "its name is empty"
    try:
        validate_server_result("tools/list", version, page)
        ListToolsResult.model_validate(page, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][2:])
        return f"{where}: {first['msg']}" if where else first["msg"]
    except KeyError:
        return None
    return None
