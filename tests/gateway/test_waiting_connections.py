"""Connections that say nothing, or not all: no one holds up another (G2)."""

import asyncio
import json
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.http.connections import ConnectionLimits

from .clients import ADA, BOB, MODERN, connected, modern_request, until
from .conftest import TOKENS

SLOW = '''
import asyncio
import json
import resource


async def echo(text: str) -> str:
    """Return the text, after a while."""
    await asyncio.sleep(1.2)
    return text
'''
HANGING = '''
import asyncio
from pathlib import Path

here = Path(__file__).parent


async def echo(text: str) -> str:
    """Return the text, once a file is there."""
    with (here / "running").open("a") as file:
        file.write("x")
    while not (here / "go").exists():
        await asyncio.sleep(0.01)
    return text
'''
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
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
    async with served(config, per_address=5, first=0.2) as url:
        silent = [await opened(url) for _ in range(8)]
        async with connected(url, MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
        assert [await answered(stream) for stream in silent[:3]] == [b""] * 3
        for _, writer in silent:
            writer.close()


async def test_connections_that_asked_something_give_way_to_a_new_one_too(config: Path) -> None:
    """G2: at the bound the one that was idle longest is closed, and never the newcomer."""
    async with served(config, per_address=5) as url:
        used = [await opened(url, HEALTH) for _ in range(8)]
        for reader, _ in used:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        async with connected(url, MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
        for stream in used[:3]:
            assert (await answered(stream)).count(b"HTTP/1.1") == 0
        newest = used[-1]
        newest[1].write(HEALTH)
        assert await newest[0].readuntil(b"HTTP/1.1 200")
        for _, writer in used:
            writer.close()


@pytest.mark.parametrize(("many", "sent"), [(256, b""), (256, HEALTH), (1_000, HEALTH), (3_000, HEALTH)])
async def test_more_idle_connections_than_there_may_be_shut_nobody_out(config: Path, many: int, sent: bytes) -> None:
    """G2: with the limits that are served with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * many + 1_000)), hard))
    async with served(config) as url:
        idle = [await opened(url, sent) for _ in range(many)]
        async with connected(url, MODERN) as pegboard:
            for word in ("a", "b", "c"):
                assert await pegboard.text("echo", text=word) == word
        for _, writer in idle:
            writer.close()


async def test_behind_a_trusted_proxy_principals_are_counted(config: Path) -> None:
    """G2: what one principal leaves idle costs another nothing, though all come from one address."""
    with config.open("a") as file:
        file.write(TOKENS)

    def asked(token: str) -> bytes:
        body, headers = modern_request("tools/list")
        sent = json.dumps(body).encode()
        headers |= {"host": "127.0.0.1", "authorization": f"Bearer {token}", "x-forwarded-for": "192.0.2.7"}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(["POST /mcp HTTP/1.1", f"content-length: {len(sent)}", *lines, "", ""]).encode() + sent

    async with served(config, per_address=3) as url:
        bobs = [await opened(url, asked(BOB)) for _ in range(2)]
        adas = [await opened(url, asked(ADA)) for _ in range(6)]
        for reader, _ in (*bobs, *adas):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for stream in adas[:3]:
            assert b"HTTP/1.1" not in await answered(stream)
        for reader, writer in bobs:
            writer.write(HEALTH)
            assert await reader.readuntil(b"HTTP/1.1 200")
        for _, writer in (*bobs, *adas):
            writer.close()


async def test_a_thousand_clients_that_come_at_once_are_all_answered(config: Path) -> None:
    """G2: those for whom there is no room yet wait until there is."""

    async def health(url: str) -> bytes:
        return (await answered(await opened(url, LAST)))[:12]

    async with served(config, total=100) as url:
        for _ in range(4):  # together they would need more files than many systems give a test
            answers = await asyncio.gather(*(health(url) for _ in range(250)))
            assert answers == [b"HTTP/1.1 200"] * 250


async def test_where_every_connection_has_a_call_a_new_one_is_told_so(config: Path) -> None:
    """G2: and is served once a call has ended."""
    (config.parent / "talk_tools.py").write_text(HANGING)
    async with served(config, total=3) as url, httpx2.AsyncClient(timeout=60) as http:
        body, headers = modern_request("tools/call", name="echo", arguments={"text": "x"})
        calls = [asyncio.create_task(http.post(url, json=body, headers=headers)) for _ in range(3)]
        running = config.parent / "running"
        await until(lambda: running.exists() and len(running.read_text()) == 3)
        refused = await answered(await opened(url, HEALTH))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"its limit of open calls and streams" in refused
        assert b"retry-after: 1" in refused
        (config.parent / "go").touch()
        assert [(await call).status_code for call in calls] == [200] * 3
        assert (await answered(await opened(url, HEALTH + LAST))).count(b"HTTP/1.1 200") == 2


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
