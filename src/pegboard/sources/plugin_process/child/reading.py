"""The threads that read requests: one reads, and runs what it has read while another one reads on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

_MOST: Final = 1 << 16


class LineReaders:
    """Threads that read lines from a pipe in turns; there is always one that reads, or is about to.

    ``take`` gets each line, in the thread that read it, and may block there; ``over`` is called at the end.
    """

    def __init__(self, source: int, take: Callable[[bytes], None], over: Callable[[], None]) -> None:
        self._source = source
        self._take = take
        self._over = over
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._free = 0
        self._parts: list[bytes] = []  # of the line that is not whole yet
        self._lines: list[bytes] = []  # the lines that are, the next one last

    def begin(self) -> None:
        """Start another thread."""
        self._free += 1
        threading.Thread(target=self._read_lines, name="pegboard-reader", daemon=True).start()

    def _read_lines(self) -> None:
        while True:
            with self._turn:
                line = self._next_line()
                with self._counting:
                    self._free -= 1
                    if self._free == 0 and line is not None:
                        self.begin()
            if line is None:
                self._over()
                return
            self._take(line)
            del line
            with self._counting:
                self._free += 1

    def _next_line(self) -> bytes | None:
        """Return the next line, or None where none will come."""
        while not self._lines:
            data = os.read(self._source, _MOST)
            if not data:
                return None
            *lines, rest = data.split(b"\n")
            if lines:
                lines[0] = b"".join((*self._parts, lines[0]))
                self._parts.clear()
                self._lines = lines[::-1]
            if rest:
                self._parts.append(rest)
        return self._lines.pop()
