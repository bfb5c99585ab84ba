"""HTTP responses that go out in one piece: uvicorn writes head and body apart, and each wakes the client."""

from __future__ import annotations

import asyncio
from typing import Any, cast


def coalescing(transport: asyncio.Transport) -> asyncio.Transport:
    """Return a transport that joins what is written in one turn of the loop."""
    return cast("asyncio.Transport", _CoalescingTransport(transport))


class _CoalescingTransport:
    """A transport that keeps a first piece until the second, or the next turn of the loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        if len(self._parts) > 1:  # a head and its body: the response is whole
            self._flush()
        else:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._transport.write(data)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._flush()
        self._transport.set_protocol(protocol)
