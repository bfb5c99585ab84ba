"""What the console is opened over: 100 servers with 20,000 tools, 50 agents, 1,000 sessions, and a gateway process."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.consoles.past import filled
from benchmarks.gateways import processes
from benchmarks.retrieving.sets import pooled
from benchmarks.scale import CATALOGS
from pegboard import Pegboard

SERVERS = 100
AGENTS = 50
TOOLKITS_OF_AN_AGENT = 20
PATIENCE = 120.0
"""How long a start may take, in seconds."""
LISTENS = re.compile(r"(http://127\.0\.0\.1:\d+)/mcp")
FULL = "agent-0"
"""An agent that may use everything."""
KITS = "agent-1"
"""An agent that may load toolkits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is."""

    tools: int = 20_000
    sessions: int = 1_000
    calls: int = 3_000
    past: int = 1_000_000
    """So many calls were counted in the 90 days before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway that runs; ``code`` is the one-time code of its console, ``start`` the seconds until it listened."""

    process: Process
    origin: str
    code: str
    start: float

    def memory(self) -> float:
        """Return its resident MiB."""
        return processes.resident(self.process.pid)


def written(folder: Path, size: Size) -> Path:
    """Write the catalog's file, and return it."""
    per, servers = size.tools // SERVERS, dict[str, list[dict[str, object]]]()
    among = iter(pooled(size.tools, CATALOGS).tools)
    for number in range(SERVERS):
        servers[name_of(number)] = [
            {
                "name": f"{tool.name[:40]}_{at}",
                "description": tool.description,
                "inputSchema": {**tool.input_schema, "type": "object", "required": []},  # calls give no arguments
            }
            for at, tool in enumerate(itertools.islice(among, per))
        ]
    path = folder / "catalog.json"
    path.write_text(json.dumps(servers))
    return path


def name_of(number: int) -> str:
    """Return the name of a server."""
    return f"s{number}"


def configured(folder: Path, port: int) -> Path:
    """Write the configuration, and return it."""
    names = [name_of(number) for number in range(SERVERS)]
    agents: dict[str, object] = {}
    for number in range(AGENTS):
        first = number * TOOLKITS_OF_AN_AGENT % SERVERS
        kits = [f"kit-{name_of((first + at) % SERVERS)}" for at in range(TOOLKITS_OF_AN_AGENT)]
        few = {"allowed_toolkits": kits, "initial_toolkits": []}
        agents[f"agent-{number}"] = {"dialect": "pegboard", **({"discoverable": ["*"]} if number % 5 == 0 else few)}
    path = folder / "pegboard.json"
    content = {
        "store": "sqlite:///state.db",
        "servers": {name: {"url": f"http://127.0.0.1:{port}/{name}", "prefix": name} for name in names},
        "toolkits": {f"kit-{name}": {"description": f"The tools of {name}.", "tools": [name]} for name in names},
        "agents": agents,
    }
    path.write_text(json.dumps(content, indent=1))
    return path


@asynccontextmanager
async def catalog(path: Path) -> AsyncGenerator[int]:
    """Serve a catalog's file; yields the port."""
    command = [sys.executable, "-m", "benchmarks.consoles.catalog_server", str(path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


async def worked(config: Path, size: Size) -> dict[str, object]:
    """Leave behind what agents did: sessions with what they loaded, their calls and what is written of them.

    Returns what counting the calls of the days before has made of the store.
    """
    dice = random.Random(7)
    async with Pegboard.open(config) as board:
        await board.ready()
        tools = list(board.world.catalog)
        calls = size.calls // size.sessions
        for number in range(size.sessions):
            agent = f"agent-{number % AGENTS}"
            session = await board.session(agent=agent, session_id=f"thread-{number}", principal=f"person-{number % 40}")
            kits = board.world.agents[agent].allowed_toolkits
            names = [dice.choice(tools).wire for _ in range(3)] if not kits else [dice.choice(sorted(kits))]
            await session.surface()
            await session.load(*names)
            loaded = [each.tool.wire for each in (await session.surface()).tools]
            for name in itertools.islice(itertools.cycle(loaded), calls if loaded else 0):
                await session.call(name, {})
        agents = [*board.world.agents]
    names_of = [(tool.plugin, tool.wire) for tool in tools]
    return await filled(config.parent / "state.db", names_of, agents, calls=size.past, days=90)


@asynccontextmanager
async def gateway(config: Path, *options: str) -> AsyncGenerator[Gateway]:
    """Serve a configuration in a process of its own, as `pegboard serve` does."""
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", "0", *options]
    began = time.perf_counter()
    env = {**os.environ, "XDG_STATE_HOME": str(config.parent / "state")}
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, env=env)
    try:
        async with asyncio.timeout(PATIENCE):
            url, code = await _printed(process, console="--no-console" not in options)
        start = time.perf_counter() - began
        reading = asyncio.create_task(_read(process))
        yield Gateway(process=process, origin=url, code=code, start=start)
        reading.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _printed(process: Process, *, console: bool) -> tuple[str, str]:
    """Return where a gateway listens, and the one-time code of its console."""
    assert process.stderr is not None
    url = ""
    while line := (await process.stderr.readline()).decode():
        url = found[1] if (found := LISTENS.search(line)) else url
        if url and not console:
            return url, ""
        if line.startswith("Console: "):
            return url, line.strip().partition("?code=")[2]
    raise RuntimeError("the gateway ended before it listened")


async def _read(process: Process) -> None:
    """Take what a gateway prints from then on."""
    assert process.stderr is not None
    while line := await process.stderr.readline():
        sys.stderr.write(line.decode())
