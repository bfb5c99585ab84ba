"""A plain proxy: each request goes to the next replica, whatever it is about."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from itertools import count
from typing import Self

LONGEST = 64 * 1024 * 1024
PATIENCE = 5.0
"""How long a replica is looked for that takes a connection, in seconds."""
BAD_GATEWAY = (
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\ncontent-length: 19\r\nconnection: close\r\n\r\n"
    b"the replica is gone"
)


class Proxy:
    """Takes requests to replicas in turns; another one is tried only where a connection is refused: it got nothing.

    Every request has a connection of its own, on both sides, so that what is lost with a replica is known: what it was
    asked and had not answered.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = list(ports)
        self._turn = count()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            request = await _request(reader)
            if request is not None:
                number, answers, upstream = await self._connect()
                upstream.write(request)
                await self._pass_back(reader, writer, answers, number)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            with contextlib.suppress(OSError):
                writer.write(BAD_GATEWAY)
        except asyncio.CancelledError:
            pass  # the run is over
        finally:
            for one in (upstream, writer):
                if one is not None:
                    one.close()

    async def _connect(self) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(PATIENCE):
            while True:
                for _ in self._ports:
                    with contextlib.suppress(ConnectionError):
                        number = next(self._turn) % len(self._ports)
                        return number, *await asyncio.open_connection("127.0.0.1", self._ports[number], limit=LONGEST)
                await asyncio.sleep(0.05)

    async def _pass_back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: asyncio.StreamReader, number: int
    ) -> None:
        """Pass the answer on as it comes, with a header that names the replica, until it ends or the client leaves."""
        begun = False

        async def answer() -> None:
            nonlocal begun
            while part := await answers.read(65_536):
                if not begun:
                    status, end, rest = part.partition(b"\r\n")
                    part = b"".join((status, end, b"x-replica: %d\r\n" % number, rest))
                begun = True
                writer.write(part)
                await writer.drain()

        answering, leaving = asyncio.create_task(answer()), asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.wait({answering, leaving})
        if not begun and not leaving.cancelled() and leaving.exception() is None:
            return  # the client has left
        if not begun:
            raise ConnectionResetError("the replica closed the connection without an answer")


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """Return a whole request, which asks the replica to close the connection after the answer; None without one."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head[:-4].split(b"\r\n")
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return b"\r\n".join([*lines, b"connection: close"]) + b"\r\n\r\n" + await reader.readexactly(length)
