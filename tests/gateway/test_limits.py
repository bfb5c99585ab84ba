"""What a client may send is bounded, and what is too much is answered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from .clients import gateway, modern_request, process
from .test_stdio import answers, line, start

pytestmark = pytest.mark.cover(1)

DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001


async def raw(url: str, sent: bytes, *, most: int = 100_000) -> bytes:
    """Send bytes as they are and return what comes back before the server closes, or nothing more comes."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(sent)
        async with asyncio.timeout(20):
            return await reader.read(most)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def post(body: bytes, *, length: int | None = None, more: dict[str, str] | None = None) -> bytes:
    _, headers = modern_request("tools/call", name="echo")
    headers |= {"host": "127.0.0.1", "content-length": str(len(body) if length is None else length), **(more or {})}
    return b"POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()).encode() + b"\r\n" + body


@pytest.mark.both_paths
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(config: Path) -> None:
    """G1: 100 MB."""
    async with gateway(config) as running:
        answer = await raw(running.url, post(b"{", length=100 * 1024 * 1024))
        assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("bomb", ["one", "many"])
async def test_too_many_headers_end_the_connection(config: Path, bomb: str) -> None:
    """G1: one that is long, or many; and the gateway goes on."""
    async with gateway(config) as running:
        more: dict[str, str] = (
            {"x-long": "x" * 1_000_000} if bomb == "one" else {f"x-{n}": "x" * 100 for n in range(10_000)}
        )
        answer = await raw(running.url, post(b"{}", more=more))
        assert b" 200 " not in answer.partition(b"\r\n")[0]
        good = json.dumps(modern_request("tools/call", name="echo", arguments={"text": "x"})[0]).encode()
        assert (await raw(running.url, post(good))).startswith(b"HTTP/1.1 200 ")


async def test_json_that_is_nested_too_deep_is_answered(config: Path) -> None:
    """G1: over HTTP as no JSON, over stdio as a request that is nested too deeply."""
    async with gateway(config) as running:
        answer = await raw(running.url, post(DEEP))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"-32700" in answer
    said, err = await answers(await start(config), DEEP + b"\n" + line("tools/call", 2, name="echo", arguments={}))
    assert [message.get("error", {}).get("code") for message in said] == [-32600, None]
    assert "Traceback" not in err


async def test_a_slow_client_keeps_nobody_waiting(config: Path) -> None:
    """G1: twenty that send half a request, and one that sends a whole one."""
    good = json.dumps(modern_request("tools/call", name="echo", arguments={"text": "x"})[0]).encode()
    async with process(config) as running:
        host, _, port = running.url.removeprefix("http://").partition("/")[0].partition(":")
        slow = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        for _, writer in slow:
            writer.write(post(good)[:200])
        assert (await raw(running.url, post(good))).startswith(b"HTTP/1.1 200 ")
        for _, writer in slow:
            writer.close()


async def test_a_flood_is_answered_to_the_last(config: Path) -> None:
    """G1: over stdio, by a client that reads only when it has sent everything."""
    count = 3000
    sent = b"".join(line("tools/call", n, name="echo", arguments={"text": "x" * 1000}) for n in range(count))
    child = await start(config)
    said, err = await answers(child, sent)
    assert {message["id"] for message in said} == set(range(count))
    assert all(text_of(message) == "x" * 1000 for message in said)
    assert err == ""


def text_of(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]
