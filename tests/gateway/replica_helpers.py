"""Several gateways on one store, in this process or in processes of their own, and raw requests to them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.ports import Replica

from .clients import serve
from .round_robin import RoundRobin, round_robin

ACCEPT = {"accept": "application/json, text/event-stream"}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, "protocolVersion": "2025-11-25"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
NOBODY = "0" * 32
"""What is behind the name of the replica in the id of a session that no one has begun."""


SHIFTED = """
import time

right = time.time
time.time = lambda: right() + {ahead}
"""
"""Lets a process believe that it is later, or earlier."""


@dataclass
class Served:
    """One gateway, with its board."""

    url: str
    board: Pegboard

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")

    async def replicas(self) -> list[Replica]:
        return list(await self.board.services.store.replicas())

    async def id(self) -> str:
        return next(replica.id for replica in await self.replicas() if replica.address == self.base)


@asynccontextmanager
async def served(config: Path, **options: Any) -> AsyncIterator[Served]:
    """Serve a configuration in this process."""
    async with Pegboard.open(config, watch=True) as board, serving(board, port=0, **options) as url:
        yield Served(url, board)


@dataclass
class Mortal:
    """A gateway in a process of its own, which a test may kill."""

    url: str
    process: asyncio.subprocess.Process

    async def end(self, how: signal.Signals) -> int:
        """Send it a signal, and return what it exits with."""
        self.process.send_signal(how)
        return await asyncio.wait_for(self.process.wait(), 30)


@asynccontextmanager
async def mortal(config: Path, *options: str, ahead: float = 0.0) -> AsyncIterator[Mortal]:
    """Serve a configuration in a process of its own, on a machine whose clock may be some seconds ahead."""
    environment, command = dict(os.environ), serve(config)
    if ahead:
        folder = config.parent / "clock"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SHIFTED.format(ahead=ahead))
        environment["PYTHONPATH"] = str(folder)
        command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port=0"]
    child = await asyncio.create_subprocess_exec(*command, *options, stderr=asyncio.subprocess.PIPE, env=environment)
    assert child.stderr is not None
    try:
        first = (await child.stderr.readline()).decode().strip()
        yield Mortal(first.removeprefix("Pegboard serves MCP at "), child)
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


@dataclass
class Pair:
    """Two gateways on one store behind a proxy."""

    first: Served
    second: Served
    proxy: RoundRobin
    url: str


@asynccontextmanager
async def pair(config: Path) -> AsyncIterator[Pair]:
    """Serve a configuration twice behind a proxy."""
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(served(config)) for _ in range(2)]
        base, proxy = await stack.enter_async_context(round_robin(first.base, second.base))
        yield Pair(first, second, proxy, f"{base}/mcp")


def bearer(token: str | None) -> dict[str, str]:
    return ACCEPT | ({"Authorization": f"Bearer {token}"} if token else {})


async def begun(http: httpx2.AsyncClient, url: str, token: str | None = None) -> dict[str, str]:
    """Begin a transport session of the handshake era; returns the headers of its requests."""
    opened = await http.post(url, json=INITIALIZE, headers=bearer(token))
    assert opened.status_code == 200, opened.text
    headers = bearer(token) | {"mcp-session-id": opened.headers["mcp-session-id"]}
    assert (await http.post(url, json=INITIALIZED, headers=headers)).status_code == 202
    return headers


def error_of(answer: httpx2.Response) -> str:
    """Return the text of the error in an answer."""
    return answer.json()["error"]["message"]


@asynccontextmanager
async def announced(board: Pegboard, replica: Replica) -> AsyncIterator[None]:
    """Let a replica be announced as if it lived, though it may be nowhere."""
    store = board.services.store

    async def beat() -> None:
        while True:
            await store.announce(replica, seconds=5)
            await asyncio.sleep(0.1)

    await store.announce(replica, seconds=5)
    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
