"""Measure one gateway: what a model gets, how long it takes to start, and what faults do to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gateways import processes
from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import CallError, Client, Http, Stdio
from benchmarks.gateways.contextforge import free_port, listening
from benchmarks.gateways.direct import Direct
from benchmarks.gateways.upstreams import Server, surroundings
from pegboard.tokens import OfflineTokenCounter

SAID = "ping"
STARTING = 60.0
"""How long a gateway may take until it listens, in seconds."""
_COUNTER = OfflineTokenCounter()


@dataclass(frozen=True)
class Scale:
    """How much is measured: rounds, pairs of calls and seconds of throughput in each, starts, seconds to wait."""

    rounds: int = 12
    pairs: int = 40
    seconds: float = 0.5
    starts: int = 3
    patience: float = 60.0
    longest: float = 300.0
    """How long one part may take, in seconds."""
    alone: bool = True
    """Whether each gateway is measured alone first: lists, starts, a server that hangs."""


QUICK = Scale(rounds=4, pairs=20, seconds=0.4, starts=1, patience=20.0, longest=120.0)


@dataclass
class Running:
    """A gateway that runs: its client, its first list, and how long that took."""

    client: Client
    roots: list[int]
    started: float
    tools: list[dict[str, Any]] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)

    def since(self) -> float:
        return time.perf_counter() - self.started


@asynccontextmanager
async def running(adapter: Adapter, setup: Setup, patience: float) -> AsyncIterator[Running]:
    """Start a gateway, connect, take the first list; everything that was started is stopped by its id."""
    errors = setup.folder / "stderr.txt"
    env = {**surroundings(), **adapter.env(setup)}
    started: list[asyncio.subprocess.Process] = []
    client: Client | None = None
    found: Running | None = None
    try:
        for command in adapter.helpers(setup):
            started += [await _spawn(command, env, setup.folder, errors)]
        begin = time.perf_counter()
        command = adapter.command(setup)
        if setup.transport == "stdio":
            wire = await Stdio.start(command, env=env, cwd=setup.folder, errors=errors)
            started.insert(0, wire.process)
        else:
            started.insert(0, await _spawn(command, env, setup.folder, errors))
            await listening(setup.port, max(patience, STARTING))
            wire = Http(*(await adapter.settle(setup, f"http://127.0.0.1:{setup.port}")))
        client = Client(wire)
        found = Running(client, [process.pid for process in started], begin)
        await client.connect(modern=adapter.modern, timeout=patience)
        found.tools = await client.tools(timeout=patience)
    except CallError as error:
        raise CallError(f"{error} ({_last_line(errors)})") from None
    else:
        yield found
    finally:
        for process in started[1:]:
            processes.stop(process.pid, 2)
        if client is not None:
            await client.close()
        if started:
            known = {pid: processes.command(pid) for pid in processes.tree(started[0].pid)}
            left = await asyncio.to_thread(processes.stop, started[0].pid)
            if found is not None:
                found.left_behind = [known.get(pid, "?") for pid in left]
        for process in started:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 5)


def _last_line(errors: Path) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
    return lines[-1].strip()[:200] if lines else "it wrote nothing to standard error"


async def _spawn(command: Sequence[str], env: dict[str, str], folder: Path, errors: Path) -> asyncio.subprocess.Process:
    with errors.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **env}, cwd=folder, stdin=asyncio.subprocess.DEVNULL,
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip


def tokens(text: str) -> int:
    """Return how many o200k tokens a text takes."""
    return _COUNTER.count(text)


def serialised(tools: Sequence[dict[str, Any]]) -> str:
    """Return what providers take of a list: name, description and input schema of each tool."""
    keys = ("name", "description", "inputSchema")
    short = [{key: tool[key] for key in keys if key in tool} for tool in tools]
    return "".join(json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in short)


async def _listed(server: Server, folder: Path, patience: float) -> tuple[list[dict[str, Any]], str]:
    """Return the tools and instructions of one server."""
    env = {**surroundings(), **server.env}
    wire = await Stdio.start([server.command, *server.args], env=env, cwd=folder, errors=folder / "stderr.txt")
    client = Client(wire)
    try:
        await client.connect(timeout=patience)
        return await client.tools(timeout=patience), client.instructions
    finally:
        await client.close()
        await asyncio.to_thread(processes.stop, wire.process.pid)


async def echo(client: Client, adapter: Adapter, *, timeout: float = 30) -> None:
    """Call the trivial tool; raises ``CallError`` where the answer is not what it says."""
    name, arguments = adapter.calling("everything", "echo", {"message": SAID})
    text = await client.call(name, arguments, timeout=timeout)
    if SAID not in text:
        raise CallError(text[:200])


async def said(result: Awaitable[Any]) -> Any:
    """Return a result, or what went wrong as a text."""
    try:
        return await result
    except TimeoutError:
        return "no answer in time"
    except (CallError, OSError, KeyError, ValueError, TypeError, IndexError) as error:
        return f"{type(error).__name__}: {error}"[:160]


@dataclass
class Trial:
    """Measure one gateway over one transport; every part that fails says why in its column."""

    adapter: Adapter
    transport: str
    servers: Sequence[Server]
    folder: Path
    scale: Scale

    @property
    def title(self) -> str:
        """Return how the row is called."""
        return f"{self.adapter.name}, {self.transport}"

    def setup(self, name: str, *more: Server) -> Setup:
        """Return a fresh folder's setup."""
        folder = self.folder / f"{self.adapter.name}-{self.transport}-{name}".replace(" ", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        port = free_port() if self.transport == "http" else 0
        return Setup([*self.servers, *more], folder, self.transport, port)

    async def first(self, setup: Setup) -> dict[str, Any]:
        """Return what the first start gives: the list, its tokens, and what is reachable."""
        row: dict[str, Any] = {}
        async with running(self.adapter, setup, self.scale.patience) as gateway:
            row["first start s"] = round(gateway.since(), 2)
            row["era"] = gateway.client.era
            row["listed"] = len(gateway.tools)
            row["list tokens"] = tokens(serialised(gateway.tools))
            row["instruction tokens"] = tokens(gateway.client.instructions)
            await said(self.adapter.prepare(gateway.client))
            failed = await said(echo(gateway.client, self.adapter, timeout=self.scale.patience))
            row["first call s"] = failed or round(gateway.since(), 2)
            row["reachable"] = await said(self.adapter.reachable(gateway.client, self.servers))
        return row

    async def straight(self, setup: Setup) -> dict[str, Any]:
        """Return what a client gets that connects to every server itself, all at once."""
        start = time.perf_counter()
        lists = await asyncio.gather(*(_listed(server, setup.folder, self.scale.patience) for server in self.servers))
        took = time.perf_counter() - start
        tools = [tool for found, _ in lists for tool in found]
        return {
            "first start s": round(took, 2),
            "listed": len(tools),
            "list tokens": tokens(serialised(tools)),
            "instruction tokens": sum(tokens(text) for _, text in lists),
            "reachable": len(tools),
        }

    async def later(self, setup: Setup) -> dict[str, Any]:
        """Return how long later starts take."""
        times: list[float] = []
        for number in range(self.scale.starts):
            if isinstance(self.adapter, Direct):
                times.append((await self.straight(setup))["first start s"])
                continue
            if self.transport == "http":
                name = f"later{number}"
                setup = self.setup(name) if not self.adapter.keeps else Setup(
                    setup.servers, setup.folder, setup.transport, free_port()
                )  # fmt: skip
            async with running(self.adapter, setup, self.scale.patience) as gateway:
                times.append(gateway.since())
        return {"later start s": round(statistics.median(times), 2)}

    async def hanging(self, setup: Setup) -> dict[str, Any]:
        """Return what the list and the calls of others do beside a server that never answers."""
        row: dict[str, Any] = {}
        async with running(self.adapter, setup, self.scale.patience) as gateway:
            row["hanging: list s"] = f"{gateway.since():.2f}, {len(gateway.tools)} tools"
            await said(self.adapter.prepare(gateway.client))
            failed = await said(echo(gateway.client, self.adapter, timeout=self.scale.patience))
            row["hanging: call s"] = failed or round(gateway.since(), 2)
        return row
