"""A child process as a transport of the SDK: one JSON message per line.

The SDK's own ``stdio_client`` tells neither the process id nor how the process ended, logs a traceback
for every stray line, and leaves what the process started behind. Imports the SDK: import this late.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import stat
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from pegboard.core.specs import ServerSpec
from pegboard.sources.mcp.lane import by_model
from pegboard.sources.mcp.link import FLIGHT, Flight, Link
from pegboard.sources.mcp.stdio_lane import StdioLane

# Inherited beside what the SDK inherits: where and how to work, never a credential.
_INHERITED = (
    "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
_GRACE = 2.0  # seconds, each: for leaving by itself, after SIGTERM, after SIGKILL
_LAST_WORDS = 0.5  # seconds that an exited process's output is still read
_LONGEST = 128 * 1024 * 1024  # bytes of one message
_PAUSE, _RESUME = 8 * 1024 * 1024, 1024 * 1024  # bytes read ahead
_STRAYS = 200  # lines that are no message before the server counts as no MCP server


def environment(spec: ServerSpec) -> dict[str, str]:
    """Return the environment of a server: a few harmless variables of ours, then its own."""
    ours = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**get_default_environment(), **ours, **spec.env}


class Child(asyncio.SubprocessProtocol):
    """Hold a server's process: what it printed, whether it takes more, how it ended."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.eof = False
        self.stopping = False
        self.written: Flight | None = None
        self._probe: int | None = None
        self.fresh = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.exited = asyncio.Event()
        self.lane = StdioLane(link, self)
        self._lines: deque[bytes] = deque()
        self._held = 0
        self._rest = bytearray()
        self._errors = b""
        self._paused = False
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def transport(self) -> asyncio.SubprocessTransport:
        """Return the transport of the process."""
        assert self._transport is not None
        return self._transport

    @property
    def stdin(self) -> asyncio.WriteTransport:
        """Return the way to the server's standard input."""
        return cast("asyncio.WriteTransport", self.transport.get_pipe_transport(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.link.pid = self._transport.get_pid()
        with suppress(OSError, AttributeError):  # the loop closes its own before it tells of the end
            self._probe = os.dup(self.stdin.get_extra_info("pipe").fileno())

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server printed."""
        if fd == 2:
            *lines, self._errors = (self._errors + data).split(b"\n")
            self._errors = self._errors[-4096:]
            for line in lines:
                self.link.complain(line.decode("utf-8", errors="replace"))
            return
        if b"\n" not in data:
            self._rest += data
            if self.too_long():
                self.fresh.set()
            return
        *lines, rest = data.split(b"\n")
        if self._rest:
            lines[0] = bytes(self._rest) + lines[0]
        self._rest = bytearray(rest)
        for line in lines:
            if not self.lane.route(line):
                self._lines.append(line)
                self._held += len(line)
                self.fresh.set()
        if self._held > _PAUSE:
            self._pause(paused=True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - a callback
        """Note the end of an output, or that the server reads no more."""
        if fd == 1:
            self._end()
        elif fd == 2:
            self.link.complain(self._errors.decode("utf-8", errors="replace"))
            self._errors = b""
        else:
            self.settle(final=True)
            self.writable.set()

    def settle(self, *, final: bool) -> None:
        """Note whether the last request was read, if no more can be (``final``); let go of the input."""
        if self._probe is None:
            return
        if final and self.written is not None and _unread(self._probe):
            self.written.unread = True
        os.close(self._probe)
        self._probe = None

    def process_exited(self) -> None:
        """Note the end of the process; a child of its own may keep the output open."""
        code = self.transport.get_returncode()
        if not self.stopping:
            self.link.exit = _ending(code)
        self.exited.set()
        self.writable.set()
        asyncio.get_running_loop().call_later(_LAST_WORDS, self._end)

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Note that the server reads again."""
        self.writable.set()

    def alive(self) -> bool:
        """Return whether the process runs, even where the loop has not been told of its end yet."""
        if self._transport is None or self.exited.is_set():
            return False
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.transport.get_pid(), os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            return False
        return True

    def _end(self) -> None:
        self.eof = True
        self.fresh.set()

    def _pause(self, *, paused: bool) -> None:
        stdout = self.transport.get_pipe_transport(1)
        if paused == self._paused or not isinstance(stdout, asyncio.ReadTransport):
            return
        self._paused = paused
        if paused:
            stdout.pause_reading()
        else:
            stdout.resume_reading()

    def next_line(self) -> bytes | None:
        """Return the next line for the session, or None where there is none yet."""
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._held -= len(line)
        if self._held < _RESUME:
            self._pause(paused=False)
        return line

    def write(self, data: bytes, flight: Flight | None) -> None:
        """Write a message; raises ``ClosedResourceError`` only where nothing of it can have been read."""
        if not self.alive() or self.stdin.is_closing():
            raise anyio.ClosedResourceError
        untouched = self.stdin.get_write_buffer_size() == 0
        self.stdin.write(data)
        self.written = flight
        if untouched and self.stdin.is_closing():
            raise anyio.ClosedResourceError

    def too_long(self) -> bool:
        """Return whether the unfinished line is longer than any message may be."""
        return len(self._rest) > _LONGEST


class Lines:
    """Read one message per line; other lines are kept as strays."""

    def __init__(self, child: Child) -> None:
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
                    child.settle(final=child.eof)
                    child.lane.close()
                    raise StopAsyncIteration
                child.fresh.clear()
                await child.fresh.wait()
            elif line.strip():
                try:
                    return SessionMessage(by_model(line))
                except ValueError:
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

    def __init__(self, child: Child) -> None:
        self._child = child

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message; raises ``ClosedResourceError`` only where nothing of it can have been read."""
        child = self._child
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        child.write(data, FLIGHT.get() if isinstance(item.message, JSONRPCRequest) else None)
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

    def __init__(self, spec: ServerSpec, link: Link) -> None:
        self._spec = spec
        self._link = link
        self._child: Child | None = None

    async def __aenter__(self) -> tuple[Lines, Input]:
        spec = self._spec
        child = self._child = Child(self._link)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            spec.command or "",
            *spec.args,
            env=environment(spec),
            cwd=spec.cwd,
            start_new_session=True,
        )
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
            with suppress(PermissionError):
                child.transport.close()

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


def _unread(number: int) -> bool:
    """Return whether the process ended before it read the last of what was written to it.

    A server that was killed a moment ago still takes what is written: without this nobody could tell
    that its call never ran. Where the system cannot say, the answer is no.
    """
    with suppress(OSError, ImportError):
        import fcntl
        import termios

        if stat.S_ISSOCK(os.fstat(number).st_mode):  # Python before 3.12
            with socket.socket(fileno=os.dup(number)) as end:
                return end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
        return struct.unpack("i", fcntl.ioctl(number, termios.FIONREAD, b"\0" * 4))[0] > 0
    return False


def _ending(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
        return f"it was ended by signal {-code}"
    return f"it exited with code {code}"
