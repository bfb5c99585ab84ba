"""Connections that say nothing, or not all: nobody holds up another (G2)."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.http.connections import ConnectionLimits

from .clients import MODERN, connected, modern_request

SLOW = '''
import asyncio
import json


async def echo(text: str) -> str:
    """Return the text, after a while."""
    await asyncio.sleep(1.2)
    return text
'''
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def served(config: Path, **limits: float) -> AsyncGenerator[str]:
    async with Pegboard.open(config) as board, serving(board, port=0, limits=ConnectionLimits(**limits)) as url:  # type: ignore[arg-type]
        yield url


async def opened(url: str, sent: bytes = b"") -> Stream:
    address = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(sent)
    await writer.drain()
    return reader, writer


async def answered(stream: Stream) -> bytes:
    """Return all that the server sends until it closes the connection."""
    reader, writer = stream
    received = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return received


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"POST /mcp HTTP/1.1\r\nhost: 127", b"HTTP/1.1 408 "),
        (b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10\r\n\r\n{", b"HTTP/1.1 408 "),
    ],
    ids=["silent", "half of the headers", "half of the body"],
)
async def test_what_is_not_sent_in_time_is_not_waited_for(config: Path, sent: bytes, answer: bytes) -> None:
    """G2: ten seconds for headers, thirty for a body; here less."""
    async with served(config, headers=0.4, body=0.4) as url:
        received = await answered(await opened(url, sent))
        assert received.startswith(answer)
        assert bool(received) == bool(answer)


async def test_a_connection_that_was_used_may_be_idle_for_longer(config: Path) -> None:
    """G2: and then it ends, without a word."""
    request = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    async with served(config, headers=0.2, idle=1.0) as url:
        stream = await opened(url, request)
        assert (await stream[0].readline()).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.5)
        stream[1].write(request)
        received = await answered(stream)
        assert received.count(b"HTTP/1.1 200") == 1
        assert b" 408 " not in received


async def test_the_oldest_silent_connection_gives_way_to_a_new_one(config: Path) -> None:
    """G2: calls and pages of others go on."""
    async with served(config, per_address=5) as url:
        silent = [await opened(url) for _ in range(8)]
        async with connected(url, MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
        assert [await answered(stream) for stream in silent[:3]] == [b""] * 3
        for _, writer in silent:
            writer.close()


async def test_a_connection_that_was_used_outlives_those_that_never_asked_anything(config: Path) -> None:
    """G2: a client keeps its connection while somebody at its address opens silent ones."""
    request = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    async with served(config, per_address=5) as url:
        reader, writer = await opened(url, request)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        silent = [await opened(url) for _ in range(8)]
        assert [await answered(stream) for stream in silent[:3]] == [b""] * 3
        writer.write(request)
        assert b"HTTP/1.1 200" in await reader.readuntil(b"\r\n\r\n")
        for _, each in (*silent, (reader, writer)):
            each.close()


async def test_many_addresses_share_one_bound(config: Path) -> None:
    """G2: the files of the process are not used up."""
    async with served(config, per_address=100, total=5) as url:
        silent = [await opened(url) for _ in range(8)]
        assert [await answered(stream) for stream in silent[:3]] == [b""] * 3
        for _, writer in silent:
            writer.close()


async def test_half_of_a_request_behind_a_call_does_not_end_the_call(config: Path) -> None:
    """G2: what a client sends ahead of an answer is late only once it has the answer."""
    (config.parent / "talk_tools.py").write_text(SLOW)
    body, headers = modern_request("tools/call", name="echo", arguments={"text": "x"})
    sent = json.dumps(body).encode()
    lines = [f"{name}: {value}" for name, value in headers.items()]
    begun = ["POST /mcp HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(sent)}"]
    head = "\r\n".join([*begun, *lines, "", ""]).encode()
    async with served(config, headers=0.3, body=0.3) as url:
        received = await answered(await opened(url, head + sent + head + sent[:5]))
        assert received.startswith(b"HTTP/1.1 200 ")
        assert b'"text":"x"' in received


async def test_a_call_and_a_stream_are_not_silent(config: Path) -> None:
    """G2: they last longer than any of the limits, and are not closed at a bound."""
    (config.parent / "talk_tools.py").write_text(SLOW)
    body, headers = modern_request("tools/list")
    async with served(config, headers=0.3, body=0.3, idle=0.3, per_address=3) as url:
        async with connected(url, MODERN) as pegboard, httpx2.AsyncClient() as http:
            call = asyncio.create_task(pegboard.text("echo", text="x"))
            silent = [await opened(url) for _ in range(6)]
            assert (await http.post(url, json=body, headers=headers)).status_code == 200
            assert await call == "x"
        for _, writer in silent:
            writer.close()
