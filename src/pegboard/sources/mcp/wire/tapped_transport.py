"""What passes over one connection, seen from the transport: raw answers, deliveries, the end.

The SDK's models drop keys that they do not know and refuse a whole page for one invalid tool; what
is seen here is the wire object itself. Imports the SDK: import this module late.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, cast

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
)

from pegboard.sources.mcp.wire import introductions
from pegboard.sources.mcp.wire.listed_tools import make_usable
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.sources.mcp.wire.request_outcomes import IN_FLIGHT
from pegboard.sources.mcp.wire.upstream_call import CURRENT_CALL, Call

TappedStreams = tuple["TappedReader", "TappedWriter"]
_ENVELOPE = (CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY)


class _StreamEnd:
    """One end of the SDK's pair of streams."""

    def __init__(self, inner: Any, live: OpenConnection) -> None:
        self._inner = inner
        self._live = live

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


class TappedReader(_StreamEnd):
    """The stream of messages from a server, each seen before the session reads it."""

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
                self._live.close("it closed the connection")
                raise
            if isinstance(item, SessionMessage):
                self._note_message(item.message)
                if self._live.server_requests.takes(item.message, self._call()):
                    continue
            return cast("SessionMessage | Exception", item)

    def _call(self) -> Call | None:
        """Return the call on whose stream the last message came, where the transport keeps the streams apart."""
        context = self.last_context
        return None if context is None else context.get(CURRENT_CALL)

    def _note_message(self, message: Any) -> None:
        live = self._live
        live.any_message = True
        match message:
            case JSONRPCResponse():
                self._see_era(message.id)
                if not live.up:
                    introductions.make_usable(message.result, live)
                if not live.up and isinstance(message.result.get("capabilities"), dict):
                    live.capabilities = message.result["capabilities"]
                if live.set_aside and (result := live.set_aside.pop(message.id, None)) is not None:
                    message.result = result
                if in_flight := live.in_flight.pop(coerce_request_id(message.id), None):
                    if in_flight.listing and "tools" in message.result:
                        make_usable(message.result, live)
                    in_flight.raw = message.result
            case JSONRPCError() if message.id is not None:
                self._see_era(message.id)
                if in_flight := live.in_flight.pop(coerce_request_id(message.id), None):
                    in_flight.refused = True
            case JSONRPCNotification(method="notifications/progress"):
                live.on_progress(message.params)
            case _:
                pass

    def _see_era(self, number: int | str) -> None:
        if coerce_request_id(number) == self._live.era_question:
            self._live.era_question = None


class TappedWriter(_StreamEnd):
    """The stream of messages to a server, which notes the requests that left."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        request = item.message if isinstance(item.message, JSONRPCRequest) else None
        in_flight = IN_FLIGHT.get() if request is not None else None
        if request is not None and in_flight is not None:
            in_flight.number = coerce_request_id(request.id)
            self._live.in_flight[in_flight.number] = in_flight
        if request is not None and request.method == "server/discover":
            meta: dict[str, Any] = (request.params or {}).get("_meta") or {}
            self._live.era_question = coerce_request_id(request.id)
            self._live.envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        if request is not None:
            self._live.introduce_client(request.method, request.params, in_flight.client if in_flight else None)
        await self._inner.send(item)
        if in_flight is not None:
            in_flight.sent = True


class TappedTransport:
    """A transport of the SDK whose messages are noted in the connection that it carries."""

    def __init__(self, transport: Transport, live: OpenConnection) -> None:
        self._transport = transport
        self._live = live

    async def __aenter__(self) -> TappedStreams:
        read, write = await self._transport.__aenter__()

        async def answer(message: JSONRPCResponse | JSONRPCError | JSONRPCNotification) -> None:
            await write.send(SessionMessage(message))

        self._live.server_requests.write = answer
        return TappedReader(read, self._live), TappedWriter(write, self._live)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._live.close("it was stopped")
        return await self._transport.__aexit__(kind, error, trace)
