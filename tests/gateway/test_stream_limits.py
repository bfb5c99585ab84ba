"""Streams of notifications: one principal does not take the place of another (G2)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.gateway.http.connections import ConnectionLimits

from .clients import ADA, BOB, MODERN, connected, modern_request, until
from .conftest import TOKENS


@asynccontextmanager
async def served(config: Path, total: int) -> AsyncIterator[str]:
    with config.open("a") as file:
        file.write(TOKENS)
    limits = ConnectionLimits(total=total)
    async with Pegboard.open(config) as board, serving(board, port=0, limits=limits) as url:
        yield url


async def session_of(url: str, token: str, http: httpx2.AsyncClient) -> dict[str, str]:
    """Return the headers of a new session of the handshake era."""
    headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
    answer = await http.post(url, json=body, headers=headers)
    headers |= {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    return headers


@asynccontextmanager
async def stream(url: str, token: str, kind: str) -> AsyncIterator[httpx2.Response]:
    """Open a stream over a connection of its own."""
    async with httpx2.AsyncClient(timeout=60) as http:
        if kind == "GET":
            opened = http.stream("GET", url, headers=await session_of(url, token, http))
        else:
            body, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
            headers["authorization"] = f"Bearer {token}"
            opened = http.stream("POST", url, json=body, headers=headers)
        async with opened as response:
            yield response


@pytest.mark.parametrize("kind", ["GET", "subscriptions/listen"])
async def test_one_principal_has_a_bounded_number_of_streams(config: Path, kind: str) -> None:
    """G2: a quarter of all connections; another principal's streams and calls, and the own calls, go on."""
    async with served(config, total=20) as url:
        async with AsyncExitStack() as open_streams:
            for _ in range(5):
                opened = await open_streams.enter_async_context(stream(url, ADA, kind))
                assert opened.status_code == 200
            async with stream(url, ADA, kind) as refused:
                assert refused.status_code == 429
                assert refused.headers["retry-after"] == "1"
                text = (await refused.aread()).decode()
                assert "There are 5 streams of this principal, which is the limit. Close some first." in text
            async with stream(url, BOB, kind) as bobs:
                assert bobs.status_code == 200
            for token in (ADA, BOB):
                async with connected(url, MODERN, token=token) as pegboard:
                    assert await pegboard.text("echo", text=token) == token

        async def again() -> bool:
            async with stream(url, ADA, kind) as later:
                return later.status_code == 200

        await until(again)


async def test_streams_leave_half_of_the_connections_to_calls(config: Path) -> None:
    """G2: those of all principals together."""
    async with served(config, total=4) as url, AsyncExitStack() as open_streams:
        for token in (ADA, BOB):
            assert (await open_streams.enter_async_context(stream(url, token, "listen"))).status_code == 200
        for token in (ADA, BOB):
            async with stream(url, token, "listen") as refused:
                assert refused.status_code == 429
        calls = [httpx2.AsyncClient(timeout=60) for _ in range(6)]
        body, headers = modern_request("tools/call", name="echo", arguments={"text": "x"})
        headers["authorization"] = f"Bearer {BOB}"
        answers = await asyncio.gather(*(http.post(url, json=body, headers=headers) for http in calls))
        assert [answer.status_code for answer in answers] == [200] * 6
        for http in calls:
            await http.aclose()
