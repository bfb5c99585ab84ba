"""The gateway as its own process, and clients over every way in."""

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.extension import ClientExtension
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from sdk_servers import pegboard_command

HERE = Path(__file__).parent
UPSTREAM = "sdk_server.py"
MODERN, HANDSHAKE = "2026-07-28", "legacy"
ERAS = (MODERN, HANDSHAKE)
ADA, BOB = "ada-s3cret-token", "bob-s3cret-token"


@dataclass
class Served:
    url: str

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")


@dataclass
class Gateway(Served):
    process: asyncio.subprocess.Process

    async def stop(self) -> tuple[int, str]:
        """Stop it as an operator does; returns the exit code and what it wrote."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        written = (await asyncio.wait_for(self.process.communicate(), 60))[1].decode()
        assert self.process.returncode is not None
        return self.process.returncode, written


@asynccontextmanager
async def gateway(config: Path, session: str | None = None) -> AsyncIterator["Served"]:
    """Serve a configuration over HTTP in this process."""
    async with Pegboard.open(config, watch=True) as board, serving(board, port=0, session=session) as url:
        yield Served(url)


@asynccontextmanager
async def process(config: Path, *options: str) -> AsyncIterator[Gateway]:
    """Serve a configuration over HTTP in a process of its own."""
    child = await asyncio.create_subprocess_exec(*serve(config), *options, stderr=asyncio.subprocess.PIPE)
    assert child.stderr is not None
    running = Gateway(url="", process=child)
    try:
        first = (await child.stderr.readline()).decode().strip()
        running.url = first.removeprefix("Pegboard serves MCP at ")
        assert running.url.startswith("http://"), first
        yield running
    finally:
        code, written = await running.stop()
    assert code == 0, written
    assert "Traceback" not in written


@asynccontextmanager
async def own_process(config: Path, files: tuple[int, int] | None = None) -> AsyncIterator[Gateway]:
    """Serve in a process that is not forked off a warm one: its memory is its own, and so is how many files it opens.

    ``files`` are the limits that it starts with, soft and hard.
    """
    limited = None if files is None else partial(resource.setrlimit, resource.RLIMIT_NOFILE, files)
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port=0", "--no-console"]
    child = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, preexec_fn=limited)
    assert child.stderr is not None
    first = (await child.stderr.readline()).decode().strip()
    running = Gateway(url=first.removeprefix("Pegboard serves MCP at "), process=child)
    try:
        assert running.url.startswith("http://"), first
        yield running
    finally:
        code, written = await running.stop()
    assert (code, "Traceback" in written) == (0, False), written


def serve(config: Path, how: str = "--port=0") -> list[str]:
    """Return the command line that serves a configuration."""
    return pegboard_command("serve", "--config", str(config), how)


def spawn(config: Path, *options: str) -> StdioServerParameters:
    command, *args = serve(config, "--stdio")
    chosen = {
        name: os.environ[name]
        for name in ("PEGBOARD_DAEMON", "PEGBOARD_FAST_PATH", "XDG_STATE_HOME")
        if name in os.environ
    }  # else not inherited
    return StdioServerParameters(command=command, args=[*args, *options], env=chosen)


@asynccontextmanager
async def way_in(kind: str, config: Path) -> AsyncIterator[str | StdioServerParameters]:
    """Yield what a client connects to over this transport."""
    if kind == "stdio":
        yield spawn(config)
        return
    async with gateway(config) as running:
        yield running.url


@asynccontextmanager
async def connected(
    target: Any,
    era: str,
    *,
    token: str | None = None,
    extensions: Sequence[ClientExtension] = (),
    name: str | None = None,
) -> AsyncIterator["Connected"]:
    """Connect the official client in one era, under a name of its own or its usual one; it keeps what it hears."""
    seen: list[Any] = []

    async def note(message: Any) -> None:
        seen.append(message)

    hears = asyncio.Event()

    async def opened(response: httpx2.Response) -> None:
        if response.request.method == "GET":
            hears.set()

    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with httpx2.AsyncClient(headers=headers, timeout=60, event_hooks={"response": [opened]}) as http:
        if isinstance(target, str):
            target = streamable_http_client(target, http_client=http)
        about = None if name is None else types.Implementation(name=name, version="1")
        async with Client(target, mode=era, message_handler=note, extensions=extensions, client_info=about) as client:
            yield Connected(client, seen, hears)


@dataclass
class Connected:
    client: Client
    seen: list[Any]
    hears: asyncio.Event
    """Set once the stream is open on which the handshake era is notified: what was sent before that is lost."""

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools(cache_mode="refresh")).tools]

    async def call(self, name: str, /, meta: dict[str, Any] | None = None, **arguments: Any) -> types.CallToolResult:
        return await self.client.call_tool(name, arguments, meta=meta)  # type: ignore[arg-type]

    async def text(self, name: str, /, meta: dict[str, Any] | None = None, **arguments: Any) -> str:
        (first, *_) = (await self.call(name, meta, **arguments)).content
        assert isinstance(first, types.TextContent)
        return first.text

    async def load(self, *names: str, **more: Any) -> dict[str, Any]:
        return json.loads(await self.text("load_tools", names=list(names), **more))

    def changes(self) -> int:
        """Return how often this client was told that its list of tools has changed."""
        return sum(isinstance(message, types.ToolListChangedNotification) for message in self.seen)


async def until(condition: Callable[[], bool | Awaitable[bool]], within: float = 30) -> None:
    """Wait for a condition; fails where it does not come about in time."""
    deadline = time.monotonic() + within
    while True:
        met = condition()
        if not isinstance(met, bool):
            met = await met
        if met:
            return
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)


def modern_request(method: str, number: int = 1, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body and the headers of one raw request of the 2026-07-28 era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        **params.pop("_meta", {}),
    }
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return body, headers


def edit(config: Path, old: str, new: str) -> None:
    """Change a configuration as an editor does."""
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
