"""What may stand between a store and its server: a line that can fail, and a pooler that hands connections on."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path

SSL, GSS = 80877103, 80877104
READY, IDLE = b"Z", b"I"


class Relay:
    """Passes everything on between clients and the server, and counts the messages that clients ask with."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / ".s.PGSQL.5432")
        self._open: set[asyncio.StreamWriter] = set()
        self.asked: list[bytes] = []
        """The statements of each message."""
        self.delay = 0.0
        """How long an answer is underway, in seconds."""
        self.passes = asyncio.Event()
        """Whether anything gets through."""
        self.passes.set()
        self.port = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def address(self, url: str) -> str:
        """Return the address of a store that goes through this."""
        host, _, options = url.partition("?")
        schema = next(part for part in options.split("&") if part.startswith("schema="))
        return host.replace("@/", f"@127.0.0.1:{self.port}/") + f"?{schema}&sslmode=disable&gssencmode=disable"

    def cut(self) -> None:
        """End every connection."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, server = await asyncio.open_unix_connection(self._socket)
        self._open |= {writer, server}
        try:
            server.write(await _startup(reader, writer))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._ask(reader, server))
                tasks.create_task(self._answer(upstream, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open -= {writer, server}
            writer.close()
            server.close()

    async def _ask(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while True:
            kind, body = await _message(reader)
            if kind == b"Q":
                self.asked.append(body.rstrip(b"\0"))
            await self.passes.wait()
            server.write(kind + struct.pack("!I", len(body) + 4) + body)

    async def _answer(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await upstream.read(65536):
            await asyncio.sleep(self.delay)
            await self.passes.wait()
            writer.write(data)
        raise ConnectionResetError


class Pooler(Relay):
    """Hands one of two connections to the server to whoever begins a transaction, as PgBouncer does; no one listens."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._servers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Lock]] = []
        self._turns = cycle((0, 1))
        self._greeting = b""

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await _startup(reader, writer)
        self._open.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            while len(self._servers) < 2:
                await self._connect(startup)
            writer.write(self._greeting)
            held: tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Lock] | None = None
            while (message := await _message(reader))[0] != b"X":
                kind, body = message
                self.asked.append(body.rstrip(b"\0"))
                if held is None:
                    held = self._servers[next(self._turns)]
                    await held[2].acquire()
                held[1].write(kind + struct.pack("!I", len(body) + 4) + body)
                if await _pass_answer(held[0], writer) == IDLE:
                    held[2].release()
                    held = None
        self._open.discard(writer)
        writer.close()

    async def _connect(self, startup: bytes) -> None:
        upstream, server = await asyncio.open_unix_connection(self._socket)
        self._open.add(server)
        server.write(startup)
        greeting = b""
        while True:
            kind, body = await _message(upstream)
            if kind != b"K":  # the number of a process that clients do not have
                greeting += kind + struct.pack("!I", len(body) + 4) + body
            if kind == READY:
                break
        self._greeting = greeting
        self._servers.append((upstream, server, asyncio.Lock()))


async def _startup(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    while True:
        head = await reader.readexactly(8)
        length, code = struct.unpack("!II", head)
        if code not in (SSL, GSS):
            return head + await reader.readexactly(length - 8)
        writer.write(b"N")


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, length = struct.unpack("!cI", await reader.readexactly(5))
    return kind, await reader.readexactly(length - 4)


async def _pass_answer(upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    while True:
        kind, body = await _message(upstream)
        if kind != b"A":
            writer.write(kind + struct.pack("!I", len(body) + 4) + body)
        if kind == READY:
            return body


@asynccontextmanager
async def relayed(relay: Relay) -> AsyncIterator[Relay]:
    await relay.serve()
    try:
        yield relay
    finally:
        relay.cut()
