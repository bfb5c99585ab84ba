"""Streams of events whose first event never ends, and certificates that cannot be read: an end, and a reason."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Literal

import pytest
from mcp_helpers import call, plain, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.mcp.certificates import tls

pytestmark = pytest.mark.cover(1)

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
BEGUN = [b"event: endpoint\ndata: /mess", b"event: endp", b"data: {", b": a comment\n\n", b""]
Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def address() -> AsyncIterator[Serve]:
    """Return how a server is started that answers every request with a stream which begins so and never goes on."""
    servers: list[asyncio.Server] = []

    async def serve(begun: bytes, more: bytes = b"", refused: str = "") -> str:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                verb = (await reader.readuntil(b"\r\n\r\n")).split()[0]
                if refused and verb == b"POST":
                    writer.write(f"HTTP/1.1 {refused} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
                    await writer.drain()
                    return
                writer.write(HEAD + begun)
                while more and not writer.is_closing():
                    writer.write(more)
                    await writer.drain()
                await reader.read()
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        servers.append(await asyncio.start_server(answer, "127.0.0.1", 0))
        return f"http://127.0.0.1:{servers[-1].sockets[0].getsockname()[1]}/mcp"

    yield serve
    for server in servers:
        server.close()


@pytest.mark.parametrize("transport", ["sse", "http"])
@pytest.mark.parametrize("begun", BEGUN)
async def test_a_first_event_that_never_ends_takes_no_longer_than_a_start(
    source: McpSource, address: Serve, transport: Literal["sse", "http"], begun: bytes
) -> None:
    """G8: the server is named, and others are not held up."""
    url = await address(begun)
    spec = ServerSpec(name="web", url=url, transport=transport, start=1.0)
    started = asyncio.create_task(source.describe(spec, {}))
    assert text(await call(source, plain(), "echo", text="on")) == "on"
    with pytest.raises(ToolUnavailableError, match=r"'web' .*did not answer within 1 s"):
        await started


@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_a_first_event_without_end_is_bounded(
    source: McpSource, address: Serve, transport: Literal["sse", "http"]
) -> None:
    """G8: by what one message of the server may take."""
    url = await address(b"data: ", b"x" * 65536)
    spec = ServerSpec(name="web", url=url, transport=transport, start=60.0, message_limit=1 << 20)
    with pytest.raises(ToolUnavailableError, match="it sent a message of more than 1MiB"):
        await source.describe(spec, {})


async def test_the_older_transport_is_not_looked_for_without_end(source: McpSource, address: Serve) -> None:
    """G8: what counts is the answer to the newer one, although the address keeps a GET waiting."""
    url = await address(b"", refused="404")
    spec = ServerSpec(name="web", url=url, transport="http", start=1.0)
    async with asyncio.timeout(10):
        with pytest.raises(ToolUnavailableError, match="HTTP 404"):
            await source.describe(spec, {})


@pytest.mark.parametrize("written", [None, "", "no certificate"], ids=["gone", "empty", "something else"])
async def test_certificates_that_cannot_be_read_are_the_reason(
    source: McpSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None
) -> None:
    """G8: of a server over https alone; one over http, or stdio, needs none."""
    file = tmp_path / "ca.pem"
    if written is not None:
        file.write_text(written)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    tls.cache_clear()
    try:
        with pytest.raises(ToolUnavailableError, match="the certificates that are trusted cannot be read") as caught:
            await source.describe(ServerSpec(name="web", url="https://127.0.0.1:9/mcp", transport="http"), {})
        assert f"SSL_CERT_FILE names '{file}'" in caught.value.message
        with pytest.raises(ToolUnavailableError, match="no connection"):
            await source.describe(ServerSpec(name="near", url="http://127.0.0.1:9/mcp", transport="http"), {})
        assert text(await call(source, plain(), "echo", text="on")) == "on"
    finally:
        monkeypatch.undo()
        tls.cache_clear()
    assert isinstance(tls(), ssl.SSLContext)
