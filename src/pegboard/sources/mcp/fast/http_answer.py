"""One HTTP answer as it arrives: head, inflated body, server-sent events; all of it within limits."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pegboard.sources.mcp.wire.request_outcomes import TooLargeError

HEAD_LIMIT = 64 * 1024
"""How long the head of an answer may be, in bytes."""
_PIECE = 1024 * 1024  # bytes that are inflated at once


@dataclass(slots=True)
class HttpAnswer:
    """An HTTP answer; header names are in lower case. ``body`` is empty for a stream of events."""

    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def kind(self) -> str:
        """Return the content type in lower case."""
        return self.headers.get("content-type", "").lower()

    @property
    def streams(self) -> bool:
        """Return whether the answer is a stream of events."""
        return self.status < 300 and self.kind.startswith("text/event-stream")

    @property
    def framed(self) -> bool:
        """Return whether the answer says where it ends."""
        return "content-length" in self.headers or "transfer-encoding" in self.headers


class EventStream:
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


class AnswerBody:
    """The body of an answer: inflated, counted, and cut into events where it is a stream of them.

    Raises ``zlib.error`` for an encoding that was not asked for.
    """

    def __init__(self, answer: HttpAnswer, limit: int) -> None:
        self.events = EventStream(limit) if answer.streams else None
        encoding = answer.headers.get("content-encoding", "identity").lower()
        self._inflater = None if encoding == "identity" else _Inflater(encoding)
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take a part of the body, and yield the events in it; raises ``TooLargeError``."""
        for piece in (data,) if self._inflater is None else self._inflater.feed(data):
            if self.events is not None:
                yield from self.events.feed(piece)
                continue
            self._size += len(piece)
            if self._size > self._limit:
                raise TooLargeError
            self._parts.append(piece)

    def read_whole(self) -> bytes:
        """Return all of a body that is no stream of events."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class _Inflater:
    """The decoder of a compressed body, in pieces: a few bytes may stand for many."""

    def __init__(self, encoding: str) -> None:
        if encoding not in {"gzip", "x-gzip", "deflate"}:
            raise zlib.error(f"it is encoded as {encoding[:40]}")
        self._decoder = zlib.decompressobj(47)
        self._maybe_raw = encoding == "deflate"  # some servers leave the header out

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            piece = self._decoder.decompress(data, _PIECE)
        except zlib.error:
            if not self._maybe_raw:
                raise
            self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
            piece = self._decoder.decompress(data, _PIECE)
        self._maybe_raw = False
        while piece:
            yield piece
            piece = self._decoder.decompress(self._decoder.unconsumed_tail, _PIECE)
