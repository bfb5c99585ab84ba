"""Requests whose headers do not end: what they cost is bounded, with and without a token (G2)."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from .clients import ADA, MODERN, Gateway, Served, connected, gateway, own_process
from .conftest import TOKENS

START = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"
LIMIT = 64 * 1024
MIB = 1024 * 1024
KINDS = ("one long header", "many headers", "a long address", "trailers", "extensions of the body")


def endless(kind: str) -> Iterator[bytes]:
    """Yield a head of some MiB, piece by piece."""
    match kind:
        case "one long header":
            yield START + b"x-long: "
            yield from (b"x" * LIMIT for _ in range(64))
        case "many headers":
            yield START
            yield from (b"".join(b"x-%d: y\r\n" % number for number in range(4096)) for _ in range(64))
        case "a long address":
            yield b"GET /"
            yield from (b"x" * LIMIT for _ in range(64))
        case "trailers":
            yield START.replace(b"GET", b"POST") + b"transfer-encoding: chunked\r\n\r\n0\r\n"
            yield from (b"".join(b"x-%d: y\r\n" % number for number in range(4096)) for _ in range(64))
        case _:  # what is behind the length of a part of the body
            yield START.replace(b"GET", b"POST") + b"transfer-encoding: chunked\r\n\r\n1;x="
            yield from (b"x" * LIMIT for _ in range(64))


def peak(running: Gateway) -> int:
    """Return the most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]


async def sent(running: Served, parts: Iterator[bytes]) -> bytes:
    """Return what the gateway answers to parts that are sent as long as it takes them."""
    address = httpx2.URL(running.url)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            if reader.at_eof():
                break
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_headers_without_an_end_cost_little_and_end_the_connection(config: Path) -> None:
    """G2: six connections at once without a token, each of which sends some MiB of them, in every place."""
    with config.open("a") as file:
        file.write(TOKENS)
    async with own_process(config) as running, connected(running.url, MODERN, token=ADA) as pegboard:
        assert await pegboard.text("echo", text="x") == "x"
        before = peak(running)
        for kind in KINDS:
            answers = await asyncio.gather(*(sent(running, endless(kind)) for _ in range(6)))
            assert all(b"HTTP/1.1 200" not in answer for answer in answers), kind
        assert peak(running) - before < 40 * MIB
        assert await pegboard.text("echo", text="y") == "y"


@pytest.mark.parametrize("sent_at_once", [True, False])
async def test_a_head_of_more_than_64_kib_is_answered_431(config: Path, sent_at_once: bool) -> None:
    """G2: whether it is whole or not."""
    head = START + b"x-long: " + b"x" * LIMIT
    parts = [head + b"\r\n\r\n"] if sent_at_once else [head[:100], head[100:]]
    async with gateway(config) as running:
        answer = await sent(running, iter(parts))
        assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert answer.endswith(b"The headers of a request here have at most 64 KiB.")
        assert b"connection: close" in answer


async def test_a_head_just_below_the_bound_is_served(config: Path) -> None:
    """G2: in one header or in many, twice over one connection."""
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        for headers in ({"x-long": "x" * 60_000}, {f"x-{number}": "y" * 500 for number in range(120)}):
            for _ in range(2):
                answer = await http.get(f"{running.base}/healthz", headers=headers)
                assert answer.status_code == 200


async def test_a_long_head_behind_a_call_does_not_get_into_its_answer(config: Path) -> None:
    """G2: the connection ends, and nothing else is written to it."""
    async with gateway(config) as running:
        behind = START + b"x-long: " + b"x" * LIMIT + b"\r\n\r\n"
        answer = await sent(running, iter([START + b"\r\n" + behind]))
        assert answer.count(b"HTTP/1.1 ") <= 1
