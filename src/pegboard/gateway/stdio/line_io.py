"""Lines over two file descriptors, without threads where the system can wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import stat
import threading
from collections.abc import Callable
from typing import Final, Protocol

LONGEST_LINE: Final = 16 * 1024 * 1024
"""How long one message may be, in bytes."""
MOST_WAITING: Final = 8 * 1024 * 1024
"""How much may wait for a client that does not read before no more is read from it, in bytes."""
LAST_BYTES: Final = 2.0
"""How long a client may take to read what is still to be written at the end, in seconds."""
_CHUNK: Final = 65536


class Lines:
    """The cutting of what is read into lines; of one that is too long only ``!`` is left."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are whole now; an empty chunk is the end."""
        if not chunk:
            last = bytes(self._rest)
            self._rest.clear()
            return [last] if last else []
        *lines, rest = chunk.split(b"\n")
        if lines:
            first, self._skipping = None if self._skipping else bytes(self._rest) + lines[0], False
            lines = lines[1:] if first is None else [first, *lines[1:]]
            self._rest = bytearray(rest)
        elif not self._skipping:
            self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self._rest.clear()
            self._skipping = True
            lines.append(b"!")
        return lines


class Reader(Protocol):
    """A reader that passes each line on, then None at the end."""

    def start(self) -> None:
        """Begin to read."""
        ...

    def pause(self) -> None:
        """Read no more for now."""
        ...

    def resume(self) -> None:
        """Go on reading."""
        ...

    def close(self) -> None:
        """Read no more."""
        ...


class Writer(Protocol):
    """A writer that writes in order, without waiting."""

    def write(self, data: bytes, *, more: bool = False) -> None:
        """Write; ``more``: other lines are likely to follow at once."""
        ...

    @property
    def waiting(self) -> int:
        """Return how many bytes are not written yet."""
        ...

    async def finish(self, within: float) -> None:
        """Write what waits, for as many seconds."""
        ...


Receive = Callable[[bytes | None], None]
"""Receive a line, or None at the end."""


class LoopReader:
    """A reader that is called by the loop when there is something to read.

    Not ``connect_read_pipe``: that makes the descriptor non-blocking, which is shared with whoever else has it.
    """

    def __init__(self, number: int, receive: Receive) -> None:
        self._loop = asyncio.get_running_loop()
        self._number, self._receive, self._lines = number, receive, Lines()
        self._on = self._ended = False

    def start(self) -> None:
        """Begin; raises ``OSError`` or ``NotImplementedError`` where the system cannot wait for this."""
        self._loop.add_reader(self._number, self._readable)
        self._on = True

    def pause(self) -> None:
        """Read no more for now."""
        if self._on:
            self._loop.remove_reader(self._number)
            self._on = False

    def resume(self) -> None:
        """Go on reading."""
        if not self._on and not self._ended:
            self.start()

    def close(self) -> None:
        """Read no more."""
        self._ended = True
        self.pause()

    def _readable(self) -> None:
        try:
            chunk = os.read(self._number, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        for line in self._lines.feed(chunk):
            self._receive(line)
        if not chunk:
            self.close()
            self._receive(None)


class ThreadReader:
    """A reader in a daemon thread: for files and consoles."""

    def __init__(self, number: int, receive: Receive) -> None:
        self._loop = asyncio.get_running_loop()
        self._number, self._receive = number, receive
        self._go = threading.Event()
        self._go.set()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read_lines, name="pegboard-stdin", daemon=True).start()

    def pause(self) -> None:
        """Read no more for now."""
        self._go.clear()

    def resume(self) -> None:
        """Go on reading."""
        self._go.set()

    def close(self) -> None:
        """Do nothing: the thread ends with its input, or with the process."""

    def _read_lines(self) -> None:
        lines, chunk = Lines(), b"-"
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while chunk:
                self._go.wait()
                try:
                    chunk = os.read(self._number, _CHUNK)
                except OSError:
                    chunk = b""
                for line in lines.feed(chunk):
                    self._loop.call_soon_threadsafe(self._receive, line)
            self._loop.call_soon_threadsafe(self._receive, None)


class LoopWriter:
    """A writer that writes at once what the system accepts, and the rest when the loop calls.

    ``changed`` is called where another number of bytes waits than before.
    """

    def __init__(self, number: int, changed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._number, self._changed = number, changed
        self._rest = bytearray()
        self._soon: list[bytes] = []
        self._gone = False
        self._empty = asyncio.Event()
        self._empty.set()
        os.set_blocking(number, False)

    @property
    def waiting(self) -> int:
        """Return how many bytes are not written yet."""
        return len(self._rest)

    def write(self, data: bytes, *, more: bool = False) -> None:
        """Write; with ``more`` together with what follows in this turn of the loop."""
        if self._gone:
            return
        if more or self._soon:
            self._soon.append(data)
            if len(self._soon) == 1:
                self._loop.call_soon(self._flush)
            return
        self._write_data(data)

    def _flush(self) -> None:
        if not self._soon:
            return
        data = b"".join(self._soon)
        self._soon.clear()
        self._write_data(data)

    def _write_data(self, data: bytes) -> None:
        done = 0
        if not self._rest:
            done = self._try_write(data)
            if done == len(data) or self._gone:
                return
            self._empty.clear()
            self._loop.add_writer(self._number, self._writable)
        self._rest += memoryview(data)[done:]
        self._changed()

    def _try_write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._number, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self._gone = True
            return 0

    def _writable(self) -> None:
        done = self._try_write(self._rest)
        del self._rest[:done]
        if self._gone:
            self._rest.clear()
        if not self._rest:
            self._loop.remove_writer(self._number)
            self._empty.set()
        self._changed()

    async def finish(self, within: float) -> None:
        """Write what waits, for as many seconds, and leave the descriptor as it was."""
        if self._soon:
            self._flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._empty.wait()
        if self._rest:
            self._loop.remove_writer(self._number)
        os.set_blocking(self._number, True)


class ThreadWriter:
    """A writer in a daemon thread, so that a client that does not read cannot keep the process from ending.

    ``changed`` is called where another number of bytes waits than before.
    """

    def __init__(self, number: int, changed: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._number, self._changed = number, changed
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._count = 0
        self._thread = threading.Thread(target=self._write_queued, name="pegboard-stdout", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Return how many bytes are not written yet."""
        return self._count

    def write(self, data: bytes, *, more: bool = False) -> None:  # noqa: ARG002 - a thread writes as it can
        """Write as soon as the thread can."""
        self._count += len(data)
        self._queue.put(data)
        self._changed()

    def _write_queued(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while (data := self._queue.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._number, view) :]
                self._loop.call_soon_threadsafe(self._note_written, len(data))

    def _note_written(self, count: int) -> None:
        self._count -= count
        self._changed()

    async def finish(self, within: float) -> None:
        """Write what waits, for as many seconds."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join, within)


class LineChannel:
    """The input and output of a client; lines wait in ``lines`` until a receiver is connected."""

    def __init__(self, wire_in: int, wire_out: int) -> None:
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._receive: Receive = self.lines.put_nowait
        self._waiting_changed: Callable[[], None] | None = None
        self._writer = writer_of(wire_out, self._notify_waiting_changed, 2)
        self._reader = reader_of(wire_in, self._take_line)

    def connect(self, receive: Receive, waiting_changed: Callable[[], None], before: list[bytes | None]) -> None:
        """Pass lines on from now: those given, then those that wait, then what comes.

        ``waiting_changed`` is called where another number of bytes is ``waiting`` than before.
        """
        self._receive, self._waiting_changed = receive, waiting_changed
        while not self.lines.empty():
            before.append(self.lines.get_nowait())
        for line in before:
            receive(line)

    def _take_line(self, line: bytes | None) -> None:
        self._receive(line)

    def _notify_waiting_changed(self) -> None:
        if self._waiting_changed is not None:
            self._waiting_changed()

    @property
    def waiting(self) -> int:
        """Return how many bytes are not written yet."""
        return self._writer.waiting

    def write(self, data: bytes, *, more: bool = False) -> None:
        """Write, in order, without waiting; ``more``: other lines are likely to follow at once."""
        self._writer.write(data, more=more)

    def pause(self) -> None:
        """Read no more for now."""
        self._reader.pause()

    def resume(self) -> None:
        """Go on reading."""
        self._reader.resume()

    async def close(self) -> None:
        """Read no more; write what waits, for a while."""
        self._reader.close()
        await self._writer.finish(LAST_BYTES)


def reader_of(number: int, receive: Receive) -> Reader:
    """Return what reads lines from a descriptor, started."""
    reader = LoopReader(number, receive)
    try:
        reader.start()
    except (OSError, NotImplementedError):
        threaded = ThreadReader(number, receive)
        threaded.start()
        return threaded
    return reader


def writer_of(number: int, changed: Callable[[], None], *others: int) -> Writer:
    """Return what writes to a descriptor, and calls ``changed`` where another number of bytes waits than before.

    It is written to without blocking where that is no one else's affair: a pipe or socket of its own.
    """
    mode = os.fstat(number)
    shared = any(os.path.samestat(mode, os.fstat(other)) for other in others)
    if os.name == "posix" and not shared and (stat.S_ISFIFO(mode.st_mode) or stat.S_ISSOCK(mode.st_mode)):
        return LoopWriter(number, changed)
    return ThreadWriter(number, changed)
