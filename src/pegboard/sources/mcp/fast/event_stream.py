"""Server-sent events, cut out of the bytes of a stream."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.sources.mcp.wire.request_outcomes import TooLargeError


class Events:
    """A stream of server-sent events; ``last_id`` and ``retry`` (seconds) are those last seen.

    An event is at most ``limit`` bytes long; comments do not count, as for the SDK.
    """

    def __init__(self, limit: int) -> None:
        self.last_id = ""
        self.retry: float | None = None
        self._limit = limit
        self._size = 0
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._kind = b"message"

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each message that is whole now; raises ``TooLargeError``."""
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r", 0, len(chunk) - 1))
        if end < 0 and not self._rest.endswith(b"\r"):
            self._rest += chunk
            self._check(len(self._rest))
            return
        self._rest += chunk[: end + 1]
        lines = bytes(self._rest)
        self._rest = bytearray(chunk[end + 1 :])
        for line in lines.splitlines():
            if line:
                self._field(line)
                continue
            if self._data and self._kind == b"message":
                yield b"\n".join(self._data)
            self._data, self._kind, self._size = [], b"message", 0
        self._check(len(self._rest))

    def _check(self, more: int) -> None:
        if self._size + more > self._limit:
            raise TooLargeError

    def _field(self, line: bytes) -> None:
        if line.startswith(b":"):
            return
        self._size += len(line)
        self._check(0)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._kind = value or b"message"
        elif name == b"id":
            self.last_id = value.decode("utf-8", errors="replace")
        elif name == b"retry" and value.isdigit():
            self.retry = int(value) / 1000
