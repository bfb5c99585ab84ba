"""A child process as a transport of the SDK: one JSON message per line.

The SDK's own ``stdio_client`` reports neither the process id nor how the process ended, logs a traceback
for every invalid line, and leaves what the process started behind. Imports the SDK: import this late.
"""

from __future__ import annotations

import logging
import os
import signal
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.transports.server_process import ServerProcess
from pegboard.sources.mcp.wire.messages import begun, by_model, oversized_answer, requests_answered, unparsed_answer
from pegboard.sources.mcp.wire.open_connection import LONGEST_LINE, OpenConnection
from pegboard.sources.mcp.wire.request_outcomes import IN_FLIGHT, size
from pegboard.support.backoff import wait_until

if TYPE_CHECKING:
    from pegboard.sources.mcp.fast.stdio_calls import StdioFastPath
    from pegboard.sources.mcp.transports.launch import Launches

log = logging.getLogger("pegboard.sources.mcp")

_GRACE = 2.0  # seconds, each: for leaving by itself, after SIGTERM, after SIGKILL
_MOST_INVALID = 200  # lines that are no message before the server counts as no MCP server


class _Lines:
    """The messages that a process prints, one per line; other lines are kept for its errors."""

    def __init__(self, transport: StdioTransport, process: ServerProcess) -> None:
        self._transport = transport
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
                if process.eof or not process.live.is_open:
                    process.note_unread(final=process.eof and await process.dies())
                    break
                process.fresh.clear()
                await process.fresh.wait()
            elif line.strip():
                if (message := self._message(line)) is not None:
                    return message
                if not process.live.is_open:  # more of the same may come without end
                    break
        self._transport.close_fast_path()
        raise StopAsyncIteration

    def _message(self, line: bytes) -> SessionMessage | None:
        """Return the message in a line, or None where there is none."""
        try:
            return SessionMessage(by_model(line))
        except ValueError as error:
            if (number := next(requests_answered(line), None)) is not None:
                return SessionMessage(unparsed_answer(number, error))
        live = self._process.live
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

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; raises ``ClosedResourceError`` only where nothing of it can have been read."""
        process = self._process
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        in_flight = IN_FLIGHT.get()
        if not isinstance(item.message, JSONRPCRequest):
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

    With ``use_fast_path`` there is a way for calls around the SDK once the process runs. Raises
    ``OSError`` where the command cannot be started, ``ValueError`` for a NUL byte in it.
    """

    def __init__(self, spec: ServerSpec, live: OpenConnection, launches: Launches, *, use_fast_path: bool) -> None:
        self.fast_path: StdioFastPath | None = None
        self._spec = spec
        self._live = live
        self._launches = launches
        self._use_fast_path = use_fast_path
        self._process = ServerProcess(live, self._take_oversized)

    async def __aenter__(self) -> tuple[_Lines, _Input]:
        process = self._process
        await process.start(self._spec, self._launches)
        self._live.alive_check = process.alive
        if self._use_fast_path:
            from pegboard.sources.mcp.fast.stdio_calls import StdioFastPath

            self.fast_path = StdioFastPath(self._live, process.write, process.writable)
            process.route = self.fast_path.route
        return _Lines(self, process), _Input(process)

    def close_fast_path(self) -> None:
        """End the calls under way around the SDK."""
        if self.fast_path is not None:
            self.fast_path.close()

    def _take_oversized(self, start: bytes) -> None:
        """Fail the request that a line over the limit answers; where nothing says which, end the connection."""
        live = self._live
        if (number := next(begun(start), None)) is not None:
            if self.fast_path is None or not self.fast_path.fail_oversized(number):
                answer = oversized_answer(number, live.message_limit)
                self._process.add_line(answer.model_dump_json(by_alias=True).encode())
        elif b'"method"' in start:  # nobody waits for it
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
        # What ends from now on was asked to, unless its output has ended: then it is on its way already.
        process.stopping = not process.eof and process.alive()
        process.stdin.close()
        try:
            # A server that never came up gets no time to leave by itself.
            await wait_until(process.exited.is_set, _GRACE if self._live.up else 0.1)
            process.stopping = True
            for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
                if not self._signal(number) or await wait_until(self._gone, _GRACE):
                    break
        except BaseException:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            raise
        finally:
            process.close()

    def _signal(self, number: int) -> bool:
        """Send a signal to all that the server started; return whether there was anybody."""
        process = self._process
        try:
            if hasattr(os, "killpg"):
                os.killpg(process.transport.get_pid(), number)
            elif not process.exited.is_set():
                process.transport.send_signal(number)
            else:
                return False
        except ProcessLookupError:
            return False
        except PermissionError:  # some systems answer this for a group of zombies
            return not process.exited.is_set()
        return True

    def _gone(self) -> bool:
        return not self._signal(0) if hasattr(os, "killpg") else self._process.exited.is_set()
