"""The lines of a stream of bytes, within a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

_START = 200


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
