"""Serve the gateway to the client that started this process (G1).

Standard output carries the protocol and nothing else: whatever else is written there goes to
standard error. Both descriptors are read and written by daemon threads, so that a client which
neither writes nor reads cannot keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from pegboard.errors import UsageError
from pegboard.gateway.access import chosen_agent
from pegboard.gateway.http import stopping
from pegboard.gateway.identity import label_problem
from pegboard.gateway.logs import quiet
from pegboard.gateway.served import Caller, Served
from pegboard.gateway.server import Gateway

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
    Outgoing = MemoryObjectSendStream[SessionMessage]

LONGEST_LINE: Final = 16 * 1024 * 1024
"""How long one message may be, in bytes."""
LAST_ANSWERS: Final = 2.0
"""How long requests may still be answered after the input has ended, in seconds."""
_ENDLESS: Final = "subscriptions/listen"


async def run_stdio(board: Served, *, agent: str | None = None, session: str | None = None) -> None:
    """Serve until standard input closes or SIGINT or SIGTERM comes; stops nothing it did not start."""
    name = chosen_agent(board, agent)
    if name is None:
        raise UsageError(
            "No agent is named and there is no default.", code="agent_required", hint="Choose one with --agent."
        )
    if session is not None and (problem := label_problem(session)):
        raise UsageError(f"--session {problem}")
    quiet(board.masker)
    gateway = Gateway(board)
    await gateway.prepare(Caller(agent=name, session=session))
    gateway.changes.start()
    try:
        async with standard_streams() as (incoming, outgoing):
            with stopping() as stop:
                await _until(stop, gateway, incoming, outgoing)
    finally:
        gateway.changes.close()


async def _until(stop: asyncio.Event, gateway: Gateway, incoming: Incoming, outgoing: Outgoing) -> None:
    async def stopped(scope: anyio.CancelScope) -> None:
        await stop.wait()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(stopped, group.cancel_scope)
        server = gateway.server
        await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def standard_streams() -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Take standard input and output for the protocol, and give them back at the end."""
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        async with _Pump(wire_in, wire_out).running() as streams:
            yield streams
    finally:
        sys.stdout.flush()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


class _Pump:
    """Move messages between two descriptors and the streams that the SDK serves."""

    def __init__(self, wire_in: int, wire_out: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting: set[str | int] = set()
        self._answered = asyncio.Event()
        self._wire_in, self._wire_out = wire_in, wire_out

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        reader = threading.Thread(target=self._read, name="pegboard-stdin", daemon=True)
        writer = threading.Thread(target=self._write, name="pegboard-stdout", daemon=True)
        reader.start()
        writer.start()
        async with anyio.create_task_group() as group:
            group.start_soon(self._feed, to_server)
            group.start_soon(self._drain, from_server)
            yield incoming, outgoing
            group.cancel_scope.cancel()
        self._out.put(None)
        await asyncio.to_thread(writer.join, LAST_ANSWERS)

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                chunk = os.read(self._wire_in, 65536)
            except OSError:
                chunk = b""
            *lines, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                lines.append(rest)
            if len(rest) > LONGEST_LINE:
                lines, rest = [*lines, b"!"], self._skip_line()
            with contextlib.suppress(RuntimeError):
                for line in lines:
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
                if not chunk:
                    self._loop.call_soon_threadsafe(self._lines.put_nowait, None)
            if not chunk:
                return

    def _skip_line(self) -> bytes:
        while chunk := os.read(self._wire_in, 65536):
            _, newline, rest = chunk.partition(b"\n")
            if newline:
                return rest
        return b""

    def _write(self) -> None:
        while (data := self._out.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._wire_out, view) :]
            except OSError:
                return

    async def _feed(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
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
            self._out.put(_refusal(line))
            return None
        match message:
            case types.JSONRPCRequest(id=number, method=method) if method != _ENDLESS:
                self._waiting.add(number)
            case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                self._settled(params.get("requestId"))
            case _:
                pass
        return message

    async def _drain(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for item in from_server:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._out.put(text.encode() + b"\n")
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._settled(item.message.id)

    def _settled(self, number: Any) -> None:
        if isinstance(number, str | int):
            self._waiting.discard(number)
            self._answered.set()


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
