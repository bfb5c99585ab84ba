"""Messages between the client that started this process and the SDK. Imports the SDK: import late.

One request over stdio::

    line ──► on_line ──accepted by the fast path──► its task ──► one line ───────────► ended
               │                                                                        ▲
               └──► queue ──► _forward_lines ──► the SDK ──► _forward_answers ──────────┤
                                   │                          (dropped where it was     │
                                   │                           answered early)          │
                                   ├──► notifications/cancelled: no answer comes ───────┘
                                   └──► no message: an error line, never in flight

A request is in flight from the moment it was read until it is ended. While ``MOST_AT_ONCE`` are in
flight, or the client leaves ``MOST_WAITING`` bytes unread, no more lines are read. At the end of the
input those in flight have ``LAST_ANSWERS`` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from pegboard.gateway.clients.only_client import asking_sources
from pegboard.gateway.handlers.arrivals import came_at
from pegboard.gateway.handlers.server import Gateway
from pegboard.gateway.protocol.jsonrpc import dump_message
from pegboard.gateway.stdio.line_io import MOST_WAITING
from pegboard.support import odd_json
from pegboard.support.mcp_constants import VERSION_KEY

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from pegboard.gateway.fast.stdio_calls import FastStdioCalls
    from pegboard.gateway.protocol.board_port import BoardPort, Caller
    from pegboard.gateway.protocol.early_answers import EarlyAnswers
    from pegboard.gateway.stdio.line_io import LineChannel

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

MOST_AT_ONCE: Final = 1024
"""How many requests may be in flight before no more are read."""
LAST_ANSWERS: Final = 2.0
"""How long requests may still be answered after the input has ended, in seconds."""
_ENDLESS: Final = "subscriptions/listen"


async def serve(
    board: BoardPort, channel: LineChannel, caller: Caller, early: EarlyAnswers, stop: asyncio.Event
) -> None:
    """Serve the client after what was answered early, until its input ends or ``stop`` is set."""
    gateway = Gateway(board)
    if early.modern:
        for source in asking_sources(board):
            source.meet_client(caller.client, None)
        for listed in early.listed.values():
            gateway.take_over(listed, None)
    else:
        gateway.early_lists += early.listed.values()
    await gateway.schemas.prepare(caller)
    gateway.start()
    dispatcher = StdioDispatcher(channel, early)
    if board.fast_path:
        from pegboard.gateway.fast.stdio_calls import FastStdioCalls

        dispatcher.use(FastStdioCalls(gateway, caller, channel.write, dispatcher.count_started, dispatcher.count_ended))
    try:
        async with dispatcher.running() as (incoming, outgoing):
            await _run_server(gateway, incoming, outgoing, stop)
    finally:
        await gateway.close()


async def _run_server(gateway: Gateway, incoming: Incoming, outgoing: Outgoing, stop: asyncio.Event) -> None:
    async def stop_scope(scope: anyio.CancelScope) -> None:
        await stop.wait()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(stop_scope, group.cancel_scope)
        server = gateway.server
        await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


class StdioDispatcher:
    """The exchange of messages between a line channel and the streams of the SDK's server."""

    def __init__(self, channel: LineChannel, early: EarlyAnswers) -> None:
        self._channel = channel
        self._early = early
        self._modern = early.modern
        self._fast: FastStdioCalls | None = None
        self._lines: asyncio.Queue[tuple[bytes | None, float]] = asyncio.Queue()
        self._in_flight: set[str | int] = set()
        self._one_ended = asyncio.Event()
        self._paused = False

    def use(self, fast: FastStdioCalls) -> None:
        """Offer each line to the fast path first."""
        self._fast = fast

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
        """Yield the streams of the SDK's server for as long as messages are moved."""
        self._channel.connect(self.on_line, self._apply_backpressure, self._early.rest)
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._forward_lines, to_server)
                group.start_soon(self._forward_answers, from_server)
                yield incoming, outgoing
                group.cancel_scope.cancel()
        finally:
            if self._fast is not None:
                await self._fast.close(LAST_ANSWERS)

    # -- requests in flight ------------------------------------------------------------------------

    def count_started(self, number: str | int) -> None:
        """Count a request as in flight."""
        self._in_flight.add(number)
        if len(self._in_flight) >= MOST_AT_ONCE:
            self._apply_backpressure()

    def count_ended(self, number: str | int | None) -> None:
        """Count a request as answered, or as cancelled."""
        self._in_flight.discard(number)
        self._one_ended.set()
        if self._paused:
            self._apply_backpressure()

    def _apply_backpressure(self) -> None:
        """Read no more while too much is in flight or waits for the client to read it."""
        paused = len(self._in_flight) >= MOST_AT_ONCE or self._channel.waiting >= MOST_WAITING
        if paused != self._paused:
            self._paused = paused
            self._channel.pause() if paused else self._channel.resume()

    # -- from the client ---------------------------------------------------------------------------

    def on_line(self, line: bytes | None) -> None:
        """Pass a line to the fast path or on to the SDK; None is the end of the input."""
        if line is not None and self._fast is not None and self._modern is not None:  # noqa: SIM102
            if self._fast.accept(line, modern=self._modern):
                return
        self._lines.put_nowait((line, monotonic()))
        self._apply_backpressure()

    async def _forward_lines(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):  # the SDK stopped first
            async with to_server:
                while True:
                    line, arrived = await self._lines.get()
                    if line is None:
                        break
                    message = self._message(line)
                    if message is not None:
                        await to_server.send(SessionMessage(message, came_at(arrived)))
                await self._last_answers()

    async def _last_answers(self) -> None:
        """Wait for the requests in flight, not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ANSWERS):
                while self._in_flight:
                    self._one_ended.clear()
                    await self._one_ended.wait()

    def _message(self, line: bytes) -> types.JSONRPCMessage | None:
        """Return the message on a line; one that is none is answered, as JSON-RPC demands, and dropped."""
        if not line.strip():
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            self._channel.write(_invalid(line))
            return None
        match message:
            case types.JSONRPCRequest(id=number, method=method, params=params):
                if self._modern is None:  # the first request decides, as it does for the SDK
                    meta = (params or {}).get("_meta")
                    self._modern = method != "initialize" and isinstance(meta, dict) and VERSION_KEY in meta
                if method != _ENDLESS:
                    self._in_flight.add(number)
            case types.JSONRPCNotification(
                method="notifications/cancelled", params={"requestId": str() | int() as number}
            ):
                self.count_ended(number)
            case _:
                pass
        return message

    # -- from the SDK ------------------------------------------------------------------------------

    async def _forward_answers(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for item in from_server:
                match item.message:
                    case types.JSONRPCResponse(id=number) | types.JSONRPCError(id=str() | int() as number):
                        self.count_ended(number)
                        if number in self._early.answered:
                            self._early.answered.discard(number)
                            continue
                    case _:
                        pass
                self._channel.write(_text_of(item.message) + b"\n")


def _text_of(message: types.JSONRPCMessage) -> bytes:
    with contextlib.suppress(ValueError, UnicodeError):
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return dump_message({key: value for key, value in message if key in {*message.model_fields_set, "jsonrpc"}})


_DEEPEST: Final = 190
"""How deep a message may be nested that is read for sure; the reader of the SDK ends at about 200 levels."""
_NO_MESSAGE: Final = "Invalid request: this line is not one JSON-RPC message."
_TOO_DEEP: Final = "Invalid request: this message is nested too deeply."


def _invalid(line: bytes) -> bytes:
    """Return the answer to a line that is no message, with its id where it has one."""
    number: str | int | None = None
    code, text = types.PARSE_ERROR, "Parse error: this line is not JSON."
    try:
        value: Any = odd_json.parse_odd_json(line)
    except odd_json.TooDeepError:
        code, text = types.INVALID_REQUEST, _TOO_DEEP
    except ValueError:
        pass
    else:
        deep = odd_json.depth_of(value) > _DEEPEST
        code, text = types.INVALID_REQUEST, _TOO_DEEP if deep else _NO_MESSAGE
        if isinstance(value, dict):
            given: object = cast("dict[str, Any]", value).get("id")
            number = given if isinstance(given, str | int) else None
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}
    return json.dumps(error).encode() + b"\n"
