"""Messages between the client that started this process and the SDK; plain calls go around it.

Imports the SDK: import late.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage

from pegboard.gateway.clients import handshake
from pegboard.gateway.fast.first_responses import VERSION
from pegboard.gateway.fast.tools_call import FastCall, FastToolCalls
from pegboard.gateway.handlers.server import Gateway
from pegboard.gateway.protocol.jsonrpc import dumped, parsed
from pegboard.gateway.stdio.line_io import MOST_WAITING

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.connection import Connection

    from pegboard.gateway.fast.first_responses import FirstResponses
    from pegboard.gateway.protocol.board_port import BoardPort
    from pegboard.gateway.stdio.line_io import LineChannel

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

MOST_AT_ONCE: Final = 1024
"""How many requests may be under way before no more are read."""
LAST_ANSWERS: Final = 2.0
"""How long requests may still be answered after the input has ended, in seconds."""
_ENDLESS: Final = "subscriptions/listen"
PREFIX: Final = handshake.PREFIX.encode()


async def serve(board: BoardPort, wires: LineChannel, opening: FirstResponses, stop: asyncio.Event) -> None:
    """Serve what comes over the wires, after what was answered early, until they end or it is to stop."""
    gateway = Gateway(board)
    gateway.changes.listed = opening.listed
    await gateway.prepare(opening.caller)
    gateway.start()
    try:
        async with StdioDispatcher(gateway, wires, opening).running() as (incoming, outgoing):
            await _until(stop, gateway, incoming, outgoing)
    finally:
        await gateway.close()


async def _until(stop: asyncio.Event, gateway: Gateway, incoming: Incoming, outgoing: Outgoing) -> None:
    async def stopped(scope: anyio.CancelScope) -> None:
        await stop.wait()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(stopped, group.cancel_scope)
        server = gateway.server
        await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


class StdioDispatcher:
    """Answer plain calls, and move all other messages between two descriptors and the SDK."""

    def __init__(self, gateway: Gateway, wires: LineChannel, opening: FirstResponses) -> None:
        self._gateway = gateway
        self._wires = wires
        self._caller = opening.caller
        self._direct = FastToolCalls(gateway)
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting: set[str | int] = set()
        self._answered = asyncio.Event()
        self._calls: dict[str | int, asyncio.Task[None]] = {}
        self._given_up: set[asyncio.Task[None]] = set()
        self._early = opening.answered
        self._modern = opening.modern
        self._held = False
        wires.switch(self._take, self._balance, opening.rest)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
        """Yield the streams of the SDK's server for as long as messages are moved."""
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._feed, to_server)
                group.start_soon(self._drain, from_server)
                yield incoming, outgoing
                group.cancel_scope.cancel()
        finally:
            calls = list(self._calls.values())
            for task in calls:
                task.cancel()
            if calls:
                await asyncio.wait(calls, timeout=LAST_ANSWERS)

    # -- what comes in -----------------------------------------------------------------------------

    def _take(self, line: bytes | None) -> None:
        if line is not None and self._modern is not None:
            if b'"tools/call"' in line and self._called(line):
                return
            if self._gateway.asks.open and PREFIX in line and self._gateway.asks.answered(parsed(line), self._caller):
                return
            if self._calls and b'"notifications/cancelled"' in line:
                self._cancelled(parsed(line))
        self._lines.put_nowait(line)
        self._balance()

    def _called(self, line: bytes) -> bool:
        """Return whether a line is a call that is answered here."""
        assert self._modern is not None
        connection = None if self._modern else self._gateway.connections.of(None, self._caller)
        if not self._modern and connection is None:
            return False
        wanted = self._direct.wanted(parsed(line), modern=self._modern)
        if wanted is None:
            return False
        number = same(wanted.number)
        if number in self._calls:
            return False
        self._waiting.add(wanted.number)
        self._calls[number] = asyncio.get_running_loop().create_task(self._answer(wanted, connection))
        if len(self._waiting) >= MOST_AT_ONCE:
            self._balance()
        return True

    async def _answer(self, wanted: FastCall, connection: Connection | None) -> None:
        """Run a call and write its answer; one that the client gave up must not be answered any more."""
        number, message = same(wanted.number), None
        try:
            message = await self._direct.answer(self._caller, wanted, connection, self._notify)
        finally:
            task = self._calls.pop(number)
            if message is None and task not in self._given_up:
                error = {"code": types.CONNECTION_CLOSED, "message": "Connection closed"}
                message = {"jsonrpc": "2.0", "id": wanted.number, "error": error}
            self._given_up.discard(task)
            if message is not None:
                self._wires.write(dumped(message) + b"\n", more=bool(self._calls))
            self._settled(wanted.number)

    async def _notify(self, message: dict[str, Any]) -> None:
        self._wires.write(dumped(message) + b"\n")

    def _cancelled(self, message: dict[str, Any] | None) -> None:
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as number}}:
                task = self._calls.get(same(number))
                if task is not None:
                    self._given_up.add(task)
                    asyncio.get_running_loop().call_soon(task.cancel)  # not before its first step
            case _:
                pass

    def _balance(self) -> None:
        """Read no more while too much is under way or waits for the client to read it."""
        held = len(self._waiting) >= MOST_AT_ONCE or self._wires.waiting >= MOST_WAITING
        if held != self._held:
            self._held = held
            self._wires.hold(held=held)

    # -- the SDK -----------------------------------------------------------------------------------

    async def _feed(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):  # the SDK stopped first
            await self._fed(to_server)

    async def _fed(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to_server:
            while (line := await self._lines.get()) is not None:
                message = self._message(line)
                if message is not None:
                    await to_server.send(SessionMessage(message))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_ANSWERS):
                    while self._waiting:
                        self._answered.clear()
                        await self._answered.wait()

    def _message(self, line: bytes) -> types.JSONRPCMessage | None:
        """Return the message on a line; one that is none is answered, as JSON-RPC wants, and dropped."""
        if not line.strip():
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError):
            self._wires.write(_refusal(line))
            return None
        match message:
            case types.JSONRPCRequest(id=number, method=method, params=params):
                if self._modern is None:  # the first request decides, as it does for the SDK
                    meta = (params or {}).get("_meta")
                    self._modern = method != "initialize" and isinstance(meta, dict) and VERSION in meta
                if method != _ENDLESS:
                    self._waiting.add(number)
            case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                self._settled(params.get("requestId"))
            case _:
                pass
        return message

    async def _drain(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for item in from_server:
                number = getattr(item.message, "id", None)
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settled(number)
                    if number in self._early:
                        self._early.discard(number)
                        continue
                self._wires.write(_text_of(item.message) + b"\n")

    def _settled(self, number: Any) -> None:
        if isinstance(number, str | int):
            self._waiting.discard(number)
            self._answered.set()
            self._balance()


def same(number: str | int) -> str | int:
    """Return the id by which a request is known: a number as text counts as the number."""
    return coerce_request_id(number)


def _text_of(message: types.JSONRPCMessage) -> bytes:
    with contextlib.suppress(ValueError, UnicodeError):
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return dumped(message.model_dump(by_alias=True, exclude_unset=True))


def _refusal(line: bytes) -> bytes:
    number: str | int | None = None
    code, said = types.PARSE_ERROR, "Parse error: this line is not JSON."
    with contextlib.suppress(ValueError, RecursionError):
        found: Any = json.loads(line)
        code, said = types.INVALID_REQUEST, "Invalid request: this line is not one JSON-RPC message."
        match found:
            case {"id": str() | int() as number}:
                pass
            case _:
                number = None
    error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": said}}
    return json.dumps(error).encode() + b"\n"
