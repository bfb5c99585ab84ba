"""A child process as a transport of the SDK: one JSON message per line.

The SDK's own ``stdio_client`` reports neither the process id nor how the process ended, logs a traceback
for every invalid line, and leaves what the process started behind. Imports the SDK: import this late.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCRequest

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.transports.server_process import ServerProcess
from pegboard.sources.mcp.transports.shared_process import ProcessShare
from pegboard.sources.mcp.transports.shared_processes import SharedProcesses
from pegboard.sources.mcp.wire.messages import (
    oversized_answer,
    parse_by_model,
    requests_answered,
    requests_answered_by,
    unparsed_answer,
)
from pegboard.sources.mcp.wire.open_connection import LONGEST_LINE, OpenConnection
from pegboard.sources.mcp.wire.request_outcomes import IN_FLIGHT, size

if TYPE_CHECKING:
    from pegboard.sources.mcp.fast.stdio_calls import StdioFastPath
    from pegboard.sources.mcp.transports.launch import Launches

log = logging.getLogger("pegboard.sources.mcp")

_MOST_INVALID = 200  # lines that are no message before the server counts as no MCP server


class _Lines:
    """The messages that a process prints, one per line; other lines are kept for its errors."""

    def __init__(self, transport: StdioTransport, process: ServerProcess | ProcessShare, live: OpenConnection) -> None:
        self._transport, self._live = transport, live
        self._share = process if isinstance(process, ProcessShare) else None
        self._process = process

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        process = self._process
        while True:
            line = process.next_line()
            if line is None:
                if process.eof or not self._live.is_open:
                    process.note_unread(final=process.eof and await process.is_ending())
                    break
                process.fresh.clear()
                await process.fresh.wait()
            elif line.strip():
                if (message := self._message(line)) is not None:
                    return message
                if not self._live.is_open:  # more of the same may come without end
                    break
        self._transport.close_fast_path()
        raise StopAsyncIteration

    def _message(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line, or None where there is none."""
        message: JSONRPCMessage | None = None
        try:
            message = parse_by_model(line)
        except ValueError as error:
            if (number := next(requests_answered(line), None)) is not None:
                message = unparsed_answer(number, error)
        if message is not None:
            return SessionMessage(message if self._share is None else self._share.translate_incoming(message))
        live = self._live
        live.add_invalid_line(line[:LONGEST_LINE].decode("utf-8", errors="replace"))
        if live.invalid_count > _MOST_INVALID and not live.any_message:
            live.close("it does not speak MCP")
        return None

    async def aclose(self) -> None:
        """Do nothing: the process is stopped by its transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Input:
    """The messages to a process, one per line."""

    def __init__(self, process: ServerProcess | ProcessShare) -> None:
        self._process = process
        self._share = process if isinstance(process, ProcessShare) else None

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; raises ``ClosedResourceError`` only where nothing of it can have been read."""
        process = self._process
        message = item.message if self._share is None else self._share.outgoing(item.message)
        if message is None:
            return
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        in_flight = IN_FLIGHT.get()
        if not isinstance(message, JSONRPCRequest):
            process.write(data)
            return
        process.write(data, () if in_flight is None else ((len(data), in_flight),))
        await process.writable.wait()  # what cancels a request must not wait behind it: only requests do

    async def aclose(self) -> None:
        """Do nothing: the process is stopped by its transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class StdioTransport:
    """A server as a child process in a group of its own, of which nothing stays.

    With ``use_fast_path`` there is a way for calls around the SDK once the process runs; ``shared`` has the processes
    that other boards may use, too. Raises ``OSError`` where the command cannot be started, ``ValueError`` for a NUL
    byte in it.
    """

    def __init__(
        self,
        spec: ServerSpec,
        live: OpenConnection,
        launches: Launches,
        *,
        use_fast_path: bool,
        shared: SharedProcesses | None = None,
    ) -> None:
        self.fast_path: StdioFastPath | None = None
        self._spec = spec
        self._live = live
        self._launches = launches
        self._use_fast_path = use_fast_path
        self._process = (
            ServerProcess(live, self._take_oversized)
            if shared is None
            else shared.join(spec, live, launches, self._take_oversized)
        )

    async def __aenter__(self) -> tuple[_Lines, _Input]:
        process = self._process
        await process.start(self._spec, self._launches)
        self._live.alive_check = process.alive
        if self._use_fast_path:
            from pegboard.sources.mcp.fast.stdio_calls import StdioFastPath

            numbers = process if isinstance(process, ProcessShare) else None
            self.fast_path = StdioFastPath(self._live, process.write, process.writable, numbers)
            process.route = self.fast_path.route
        return _Lines(self, process, self._live), _Input(process)

    def close_fast_path(self) -> None:
        """End the calls under way around the SDK."""
        if self.fast_path is not None:
            self.fast_path.close()

    def _take_oversized(self, start: bytes) -> None:
        """Fail the request that a line over the limit answers; where nothing says which, end the connection."""
        live = self._live
        if (number := next(requests_answered_by(start), None)) is not None:
            if self.fast_path is None or not self.fast_path.fail_oversized(number):
                answer = oversized_answer(number, live.message_limit)
                self._process.add_line(answer.model_dump_json(by_alias=True).encode())
        elif b'"method"' in start:  # no one waits for it
            log.warning("server %r: a notification of more than %s was dropped", live.name, size(live.message_limit))
        else:
            live.close_oversized()
            self._process.fresh.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        process.note_unread(final=not process.alive())
        self.close_fast_path()
        await process.stop(up=self._live.up)
