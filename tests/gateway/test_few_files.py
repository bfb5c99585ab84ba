"""A gateway that may open few files: what one client takes leaves room for others (G2)."""

import asyncio
import resource
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from .clients import ADA, BOB, MODERN, connected, modern_request, own_process
from .conftest import TOKENS

FEW = 256, 256


@pytest.fixture
def shared(config: Path) -> Path:
    """A configuration with two principals."""
    with config.open("a") as file:
        file.write(TOKENS)
    return config


async def opened(url: str, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(sent)
    return reader, writer


def listening(token: str) -> bytes:
    """Return the request for a stream."""
    body, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    content = httpx2.Request("POST", "http://127.0.0.1/mcp", json=body).content
    headers |= {"host": "127.0.0.1", "authorization": f"Bearer {token}", "content-length": str(len(content))}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + content


async def test_silent_connections_leave_files_for_everybody_else(shared: Path) -> None:
    """G2: more of them than the process may open files; two principals are answered all the same."""
    async with own_process(shared, FEW) as running:
        silent = [await opened(running.url) for _ in range(400)]
        for token in (ADA, BOB):
            async with connected(running.url, MODERN, token=token) as pegboard:
                assert await pegboard.text("echo", text=token) == token
        for _, writer in silent:
            writer.close()


async def test_streams_of_one_leave_files_for_everybody_else(shared: Path) -> None:
    """G2: the last ones are refused; another principal gets a stream, and both are answered."""
    async with own_process(shared, FEW) as running:
        streams = [await opened(running.url, listening(ADA)) for _ in range(300)]
        lines = await asyncio.gather(*(asyncio.wait_for(reader.readline(), 60) for reader, _ in streams))
        assert Counter(line[9:12] for line in lines) == {b"200": 32, b"429": 268}
        reader, writer = await opened(running.url, listening(BOB))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for token in (ADA, BOB):
            async with connected(running.url, MODERN, token=token) as pegboard:
                assert await pegboard.text("echo", text=token) == token
        for _, each in (*streams, (reader, writer)):
            each.close()


async def test_serve_lets_itself_open_as_many_files_as_the_system_allows(shared: Path) -> None:
    """G2: the limit that a shell gives is often far below that."""
    async with own_process(shared, (256, 2048)) as running:
        assert resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE) == (2048, 2048)
