"""A server's process: its output, its input, its end. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

import anyio
from mcp.client.stdio import get_default_environment

from pegboard.core.model.specs import ServerSpec
from pegboard.sources.confinement import available, found_program
from pegboard.sources.mcp.transports.launch import Launch, Launches, confined_launch, package_program
from pegboard.sources.mcp.transports.npx_cache import remove_half_installed
from pegboard.sources.mcp.wire.open_connection import LONGEST_LINE
from pegboard.sources.mcp.wire.request_outcomes import InFlight
from pegboard.support.backoff import wait_until

if TYPE_CHECKING:
    from pegboard.sources.confinement import RefusalReader

# Inherited beside what the SDK inherits: where and how to work, never a credential.
_INHERITED = (
    "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
    "PEGBOARD_DAEMON",  # where it is switched off, a server that is a gateway itself starts none, either
)  # fmt: skip
# Of a server that is not confined besides: the ways to the network, to the desktop and to agents of this user.
_WAYS = (
    *(name for way in ("HTTP", "HTTPS", "ALL", "NO") for name in (f"{way}_PROXY", f"{way.lower()}_proxy")),
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK", "GPG_TTY", "DOCKER_HOST", "DOCKER_CONTEXT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
_OF_INSTALLERS = ("npm_config_", "NPM_CONFIG_", "UV_", "PIP_")  # where packages are looked for
_GRACE = 2.0  # seconds, each: for leaving by itself, after SIGTERM, after SIGKILL
_LAST_WORDS = 0.5  # seconds that an exited process's output is still read
_DYING = 0.05  # seconds that a process may take to end once its output has
_MOST_REQUESTS = 256  # that are told apart when a process ends without reading them
_START = 200  # bytes of a line over the limit by which it is reported
_MOST_SKIPPED = 8  # how many times the limit a line may be long before its server is stopped
_PAUSE, _RESUME = 8 * 1024 * 1024, 1024 * 1024  # bytes read ahead


def environment(spec: ServerSpec) -> dict[str, str]:
    """Return the environment of a server: some variables of ours, fewer where it is confined, then its own."""
    return _environment(spec, _INHERITED if spec.confine is not None else (*_INHERITED, *_WAYS))


def _environment(spec: ServerSpec, names: Iterable[str]) -> dict[str, str]:
    ours = {name: os.environ[name] for name in names if name in os.environ}
    return {**get_default_environment(), **ours, **spec.env}


def described_package(spec: ServerSpec) -> str:
    """Return how the package of a server is described, as far as that is found on this machine."""
    from pegboard.sources.mcp.transports.package_descriptions import package_description

    if spec.confine is not None:
        program = found_program(spec.command or "", spec.args, scripts=spec.confine.scripts)
        if program is not None:
            return package_description(program.command, program.args, environment(spec))
    return package_description(spec.command, spec.args, environment(spec))


async def _launch(spec: ServerSpec, launches: Launches) -> Launch:
    """Return how a server is started; what was left half installed of it has been removed."""
    if spec.confine is None:
        if spec.fetched:
            remove_half_installed(spec.command, spec.args, environment(spec))
        cwd = spec.cwd or launches.folder
        return Launch(command=spec.command or "", args=spec.args, env=environment(spec), cwd=cwd)
    given = (spec, spec.confine, environment(spec), launches)
    return await asyncio.to_thread(confined_launch, *given, outside=_installation_environment(spec))


def _installation_environment(spec: ServerSpec) -> dict[str, str]:
    """Return the environment in which the package of a confined server is installed."""
    installers = (name for name in os.environ if name.startswith(_OF_INSTALLERS))
    return _environment(spec, (*_INHERITED, *_WAYS, *installers))


def newest_package(spec: ServerSpec) -> str:
    """Install the newest version of the package of a confined server, and return it; nothing where it has none.

    Raises ``ToolUnavailableError`` where it cannot be installed.
    """
    if spec.confine is None or spec.command is None or available(spec.confine.network):
        return ""
    found = package_program(spec, spec.confine, _installation_environment(spec), resolve=True)
    return "" if found is None else found.version


class ProcessUser(Protocol):
    """What a process reports to: a connection, or those that share it."""

    message_limit: int
    refusals: RefusalReader | None

    def note_pid(self, number: int) -> None:
        """Note the number of the process."""
        ...

    def note_exit(self, how: str) -> None:
        """Note how it ended."""
        ...

    @property
    def up(self) -> bool:
        """Return whether it has answered."""
        ...

    def add_stderr(self, text: str) -> None:
        """Keep a line that it wrote to its standard error."""
        ...


class ServerProcess(asyncio.SubprocessProtocol):
    """A server's process: its output line by line, its input, its end.

    ``live`` is the connection that it serves. ``route`` takes a line before the session reads it, and returns
    whether it did; ``oversized`` takes the start of a line over the limit. ``on_end`` is called when its output ends.
    """

    def __init__(self, live: ProcessUser, oversized: Callable[[bytes], None]) -> None:
        self.live = live
        self.on_end: Callable[[], None] | None = None
        self.route: Callable[[bytes], bool] | None = None
        self.eof = False
        self.stopping = False
        self._probe: int | None = None
        self._written = 0
        self._requests: deque[tuple[int, InFlight]] = deque(maxlen=_MOST_REQUESTS)  # each with where it ends
        self.fresh = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.exited = asyncio.Event()
        self._lines: deque[bytes] = deque()
        self._waiting = 0  # bytes of lines that the session has not read yet
        self._splitter = LineSplitter(live.message_limit, oversized)
        self._errors = b""
        self._paused = False
        self._launch: Launch | None = None
        self._fetched: ServerSpec | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._stdout: asyncio.ReadTransport | None = None

    @property
    def transport(self) -> asyncio.SubprocessTransport:
        """Return the transport of the process."""
        assert self._transport is not None
        return self._transport

    @property
    def stdin(self) -> asyncio.WriteTransport:
        """Return the way to the server's standard input."""
        assert self._stdin is not None
        return self._stdin

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if self._stdin is None:
            self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        if self._stdout is None:
            self._stdout = cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(1))
        self.live.note_pid(self._transport.get_pid())

    async def start(self, spec: ServerSpec, launches: Launches) -> None:
        """Start the process.

        Raises ``OSError`` or ``ValueError`` where it cannot be started, ``ToolUnavailableError`` where not confined.
        """
        ends: dict[str, int] = {}
        self._fetched = spec if spec.fetched and spec.confine is None else None
        launch = self._launch = await _launch(spec, launches)
        self.live.refusals = launch.refusals
        try:
            if os.name == "posix":  # elsewhere the loop cannot wait for pipes of ours
                await self._open_pipes(ends)
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                launch.command,
                *launch.args,
                stdin=ends.get("stdin", asyncio.subprocess.PIPE),
                stdout=ends.get("stdout", asyncio.subprocess.PIPE),
                env=launch.env,
                cwd=launch.cwd,
                start_new_session=True,
            )
            if launches.started is not None:
                launches.started(self.transport.get_pid())
        except BaseException:
            self.close()
            raise
        finally:
            for end in ends.values():
                os.close(end)

    async def _open_pipes(self, ends: dict[str, int]) -> None:
        """Open the pipes to and from the process; its ends of them are put where the caller closes them."""
        loop = asyncio.get_running_loop()
        own, ends["stdout"] = os.pipe()
        self._stdout, _ = await loop.connect_read_pipe(lambda: _OutputPipe(self), os.fdopen(own, "rb", 0))
        ends["stdin"], own = os.pipe()
        self._probe = os.dup(own)  # the loop closes its own before it tells of the end
        self._stdin, _ = await loop.connect_write_pipe(lambda: _InputPipe(self), os.fdopen(own, "wb", 0))

    def close(self) -> None:
        """Let go of the process and its pipes."""
        self._take_rest_of_errors()
        self.note_unread(final=False)
        for pipe in (self._stdin, self._stdout):
            if pipe is not None:
                pipe.close()
        if self._transport is not None:
            with suppress(PermissionError):
                self._transport.close()
        if self._launch is not None and self._launch.policy is not None:
            asyncio.get_running_loop().run_in_executor(None, self._launch.end)
            self._launch = None
        fetched, self._fetched = self._fetched, None
        if fetched is not None and not self.live.up:  # its installation may have been cut
            remove_half_installed(fetched.command, fetched.args, environment(fetched), ours=True)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the server printed."""
        if fd == 1:
            self.take(data)
            return
        *lines, rest = (self._errors + data).split(b"\n")
        self._errors = rest[:LONGEST_LINE]
        for line in lines:
            self._add_error(line)

    def _add_error(self, line: bytes) -> None:
        self.live.add_stderr(line[:LONGEST_LINE].decode("utf-8", errors="replace"))

    def _take_rest_of_errors(self) -> None:
        """Take the line that the server began, such as a question: it prints no more, or is heard no more."""
        rest, self._errors = self._errors, b""
        self._add_error(rest)

    def take(self, data: bytes) -> None:
        """Take what the server printed on its standard output."""
        for line in self._splitter.feed(data):
            if self.route is None or not self.route(line):
                self.add_line(line)
        if self._splitter.skipped > _MOST_SKIPPED * self.live.message_limit:
            self._kill()

    def _kill(self) -> None:
        """End a process that prints without end; what it has not read yet can be asked again of the next one."""
        if not self.stopping:
            self.stopping = True
            self.live.note_exit("it printed a line without end, and was stopped")
            with suppress(ProcessLookupError):
                self.transport.kill()

    def add_line(self, line: bytes) -> None:
        """Give the session a line to read."""
        self._lines.append(line)
        self.count_unread(len(line))
        self.fresh.set()

    def count_unread(self, change: int) -> None:
        """Count the bytes of lines that no session has read yet: the process waits where these are many."""
        self._waiting += change
        if self._waiting > _PAUSE:
            self._pause(paused=True)
        elif self._waiting < _RESUME:
            self._pause(paused=False)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - a callback
        """Note the end of an output, or that the server reads no more."""
        if fd == 1:
            self.end()
        elif fd == 2:
            self._take_rest_of_errors()
        else:
            self.input_lost()

    def input_lost(self) -> None:
        """Note that the server reads no more."""
        self.note_unread(final=True)
        self.writable.set()

    def note_unread(self, *, final: bool) -> None:
        """Note which requests were read, if no more can be (``final``); let go of the input."""
        if self._probe is None:
            return
        read = self._written - (_unread_bytes(self._probe) if final else 0)
        for end, in_flight in reversed(self._requests):
            if end <= read:
                break
            in_flight.unread = True
        self._requests.clear()
        os.close(self._probe)
        self._probe = None

    def process_exited(self) -> None:
        """Note the end of the process; a child of its own may keep the output open."""
        code = self.transport.get_returncode()
        if not self.stopping:
            self.live.note_exit(_how_it_ended(code))
        self.exited.set()
        self.writable.set()
        asyncio.get_running_loop().call_later(_LAST_WORDS, self.end)

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Note that the server reads again."""
        self.writable.set()

    def alive(self) -> bool:
        """Return whether the process runs, even where the loop does not know of its end yet."""
        if self._transport is None or self.exited.is_set():
            return False
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.transport.get_pid(), os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            return False
        return True

    async def is_ending(self) -> bool:
        """Return whether the process ends now that its output has: that is closed before its input is."""
        return await wait_until(lambda: not self.alive(), _DYING)

    def end(self) -> None:
        """Note the end of the output."""
        self.eof = True
        self.fresh.set()
        if self.on_end is not None:
            self.on_end()

    async def stop(self, *, up: bool) -> None:
        """End it, and all that it started; one that is ``up`` gets the time to leave by itself."""
        # What ends from now on was asked to, unless its output has ended: then it is on its way already.
        self.stopping = not self.eof and self.alive()
        self.stdin.close()
        try:
            await wait_until(self.exited.is_set, _GRACE if up else 0.1)
            self.stopping = True
            for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
                if not self._signal(number) or await wait_until(self._has_ended, _GRACE):
                    break
        except BaseException:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            raise
        finally:
            self.close()

    def _signal(self, number: int) -> bool:
        """Send a signal to all that it started; return whether there was anyone."""
        try:
            if hasattr(os, "killpg"):
                os.killpg(self.transport.get_pid(), number)
            elif not self.exited.is_set():
                self.transport.send_signal(number)
            else:
                return False
        except ProcessLookupError:
            return False
        except PermissionError:  # some systems answer this for a group of zombies
            return not self.exited.is_set()
        return True

    def _has_ended(self) -> bool:
        return not self._signal(0) if hasattr(os, "killpg") else self.exited.is_set()

    def _pause(self, *, paused: bool) -> None:
        if paused == self._paused or self._stdout is None or self.eof:
            return
        self._paused = paused
        if paused:
            self._stdout.pause_reading()
        else:
            self._stdout.resume_reading()

    def next_line(self) -> bytes | None:
        """Return the next line for the session, or None where there is none yet."""
        if not self._lines:
            return None
        line = self._lines.popleft()
        self.count_unread(-len(line))
        return line

    def write(self, data: bytes, in_flight: Sequence[tuple[int, InFlight]] = ()) -> None:
        """Write messages; raises ``ClosedResourceError`` only where nothing of them can have been read.

        Each request among them comes with where it ends in ``data``.
        """
        if not self.alive() or self.stdin.is_closing():
            raise anyio.ClosedResourceError
        untouched = self.stdin.get_write_buffer_size() == 0
        self.stdin.write(data)
        for end, request in in_flight:
            self._requests.append((self._written + end, request))
        self._written += len(data)
        if untouched and self.stdin.is_closing():
            raise anyio.ClosedResourceError


class LineSplitter:
    """The lines that a server prints; one over the limit is skipped, and reported by its start.

    ``skipped`` is how much of the line that is being skipped has come so far, in bytes.
    """

    def __init__(self, limit: int, oversized: Callable[[bytes], None]) -> None:
        self.skipped = 0
        self._limit = limit
        self._oversized = oversized
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return the lines that are whole now, without their ends."""
        if self.skipped or self._rest or not data.endswith(b"\n") or len(data) > self._limit:
            return self._pieces(data)
        return data[:-1].split(b"\n")

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        if self.skipped:
            end = data.find(b"\n")
            if end < 0:
                self.skipped += len(data)
                return
            self.skipped, data = 0, data[end + 1 :]
        *lines, rest = data.split(b"\n")
        if not lines:
            self._rest += rest
        else:
            if self._rest:
                self._rest += lines[0]
                lines[0] = bytes(self._rest)
            self._rest = bytearray(rest)
        for line in lines:
            if len(line) > self._limit:
                self._oversized(line[:_START])
            else:
                yield line
        if len(self._rest) > self._limit:
            self.skipped = len(self._rest)
            start, self._rest = bytes(self._rest[:_START]), bytearray()
            self._oversized(start)


class _OutputPipe(asyncio.Protocol):
    """A server's output, taken at once: asyncio's own way for child processes takes one more turn of the loop."""

    def __init__(self, process: ServerProcess) -> None:
        self.data_received = process.take
        self._process = process

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a callback
        self._process.end()


class _InputPipe(asyncio.BaseProtocol):
    """A server's input, and whether it takes more."""

    def __init__(self, process: ServerProcess) -> None:
        self.pause_writing = process.pause_writing
        self.resume_writing = process.resume_writing
        self._process = process

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a callback
        self._process.input_lost()


def _unread_bytes(number: int) -> int:
    """Return how many bytes of what was written to a pipe no one has read, nor ever will.

    A server that was killed a moment ago still takes what is written: without this no one could tell
    that its call never ran. Where someone may still read, or the system cannot say, the answer is 0.
    """
    with suppress(OSError, ImportError):
        import fcntl
        import termios

        poll = select.poll()
        poll.register(number, 0)
        if not poll.poll(0):  # it has readers: an error is always reported
            return 0
        return struct.unpack("i", fcntl.ioctl(number, termios.FIONREAD, b"\0" * 4))[0]
    return 0


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
        return f"it was ended by signal {-code}"
    return f"it exited with code {code}"
