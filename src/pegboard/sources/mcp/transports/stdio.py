"""A child process as a transport of the SDK: one JSON message per line.

The SDK's own ``stdio_client`` tells neither the process id nor how the process ended, logs a traceback
for every stray line, and leaves what the process started behind. Imports the SDK: import this late.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.mcp.fast.fast_path import by_model
from pegboard.sources.mcp.transports.process import ServerProcess
from pegboard.sources.mcp.wire.malformed import answered, refusal
from pegboard.sources.mcp.wire.observed import IN_FLIGHT, ConnectionRecord

_GRACE = 2.0  # seconds, each: for leaving by itself, after SIGTERM, after SIGKILL
_STRAYS = 200  # lines that are no message before the server counts as no MCP server


class Lines:
    """Read one message per line; other lines are kept as strays."""

    def __init__(self, child: ServerProcess) -> None:
        self._child = child

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        child = self._child
        while True:
            line = child.next_line()
            if line is None:
                if child.too_long():
                    child.link.close("it sent a message of more than 128 MiB")
                if child.eof or child.link.closed.is_set():
                    child.settle(final=child.eof and await child.dies())
                    child.lane.close()
                    raise StopAsyncIteration
                child.fresh.clear()
                await child.fresh.wait()
            elif line.strip():
                try:
                    return SessionMessage(by_model(line))
                except ValueError:
                    if (number := next(answered(line), None)) is not None:
                        return SessionMessage(refusal(number))
                    child.link.stray(line[:400].decode("utf-8", errors="replace"))
                    if child.link.stray_count > _STRAYS and not child.link.heard:
                        child.link.close("it does not speak MCP")
                        child.lane.close()
                        raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Do nothing: the process is stopped by its transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Input:
    """Write one message per line."""

    def __init__(self, child: ServerProcess) -> None:
        self._child = child

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; raises ``ClosedResourceError`` only where nothing of it can have been read."""
        child = self._child
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        child.write(data, IN_FLIGHT.get() if isinstance(item.message, JSONRPCRequest) else None)
        if isinstance(item.message, JSONRPCRequest):  # what cancels a request must not wait behind it
            await child.writable.wait()

    async def aclose(self) -> None:
        """Do nothing: the process is stopped by its transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class StdioTransport:
    """Start a server as a child process in a group of its own, and stop all of it.

    Raises ``OSError`` where the command cannot be started, ``ValueError`` for a NUL byte in it.
    """

    def __init__(self, spec: ServerSpec, link: ConnectionRecord) -> None:
        self._spec = spec
        self._link = link
        self._child: ServerProcess | None = None

    async def __aenter__(self) -> tuple[Lines, Input]:
        child = self._child = ServerProcess(self._link)
        await child.start(self._spec)
        self._link.alive_check = child.alive
        self._link.lane = child.lane
        return Lines(child), Input(child)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child is not None
        child = self._child
        child.settle(final=not child.alive())
        child.lane.close()
        # What ends from now on was asked to, unless its output has ended: then it is on its way already.
        child.stopping = not child.eof and child.alive()
        child.stdin.close()
        try:
            # A server that never came up gets no time to say good-bye.
            await self._until(child.exited.is_set, _GRACE if self._link.up else 0.1)
            child.stopping = True
            for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
                if not self._signal(number) or await self._until(self._gone, _GRACE):
                    break
        except BaseException:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            raise
        finally:
            child.close()

    def _signal(self, number: int) -> bool:
        """Send a signal to all that the server started; return whether there was anybody."""
        assert self._child is not None
        try:
            if hasattr(os, "killpg"):
                os.killpg(self._child.transport.get_pid(), number)
            elif not self._child.exited.is_set():
                self._child.transport.send_signal(number)
            else:
                return False
        except ProcessLookupError:
            return False
        except PermissionError:  # said of a group of zombies on some systems
            return not self._child.exited.is_set()
        return True

    def _gone(self) -> bool:
        return not self._signal(0) if hasattr(os, "killpg") else bool(self._child and self._child.exited.is_set())

    @staticmethod
    async def _until(condition: Callable[[], bool], seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        pause = 0.001
        while not condition():
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.02)
        return True
