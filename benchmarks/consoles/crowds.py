"""Calls through the gateway while 20 pages of the console are open, and while none is."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from benchmarks.consoles.answers_timed import OF_A_SESSION, PAGES, Row
from benchmarks.consoles.site import FULL, KITS, Gateway
from benchmarks.consoles.visitors import Visitor
from benchmarks.gateways.clients import Client, Http

SECONDS = 5.0
"""How long calls are made before pages are opened or closed."""
AT_ONCE = 4
PAUSE = 0.02
"""Seconds between calls of a client that is not in a hurry."""
KINDS = ("none", "20 pages", "none again")
OPEN = (
    *[PAGES["sessions"]] * 4,
    *[f"/console/session?{OF_A_SESSION}"] * 2,
    *(f"/console/session?principal=person-{n}&agent=agent-{n}&session=thread-{n}" for n in range(1, 5)),
    *[PAGES["audit"]] * 3,
    *[PAGES["bill, by day"]] * 2,
    *[PAGES["switches"]] * 2,
    PAGES["agents"],
    PAGES["approvals"],
    PAGES["servers"],
)


@dataclass
class Calls:
    """What calls came to."""

    paced: list[float] = field(default_factory=list)
    hurried: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)


async def listed(gateway: Gateway) -> None:
    """Let a client of two agents ask for its tools, so that servers are known."""
    for agent in (FULL, KITS):
        client = await connected(gateway, agent, "first")
        await client.tools()
        await client.close()


async def connected(gateway: Gateway, agent: str, session: str) -> Client:
    """Return a client of a session."""
    client = Client(Http(f"{gateway.origin}/mcp/{agent}?session={session}"))
    await client.connect()
    return client


async def measured(gateway: Gateway, visitor: Visitor, rounds: int) -> list[Row]:
    """Return what calls take, in turns with and without pages."""
    clients = [await connected(gateway, FULL, f"caller-{n}") for n in range(AT_ONCE)]
    names = await _tools(visitor, len(clients))
    for client, name in zip(clients, names, strict=True):
        await client.call("load_tools", {"names": [name]})
    calls = {kind: Calls() for kind in KINDS}
    refreshed = 0
    await _called(clients, names, Calls(), 1.0)
    async with _pages(visitor) as pages:
        await _told(pages, "open")
        await _called(clients, names, Calls(), SECONDS)
        await _told(pages, "close")
        for number in range(max(rounds // 5, 3)):
            for kind in KINDS if number % 2 else KINDS[::-1]:
                if kind == "20 pages":
                    await _told(pages, "open")
                await _called(clients, names, calls[kind], SECONDS)
                if kind == "20 pages":
                    refreshed += (await _told(pages, "close"))["refreshed"]
    for client in clients:
        await client.close()
    none = calls["none"]
    return [_row(kind, found, none, refreshed if kind == "20 pages" else 0) for kind, found in calls.items()]


async def _tools(visitor: Visitor, count: int) -> list[str]:
    """Return so many tools, as soon as they can be searched."""
    while True:
        _, answer = await visitor.get(f"/api/search?agent={FULL}&query=list")
        found = json.loads(answer)
        if not found["indexing"]:
            return [hit["name"] for hit in found["hits"] if hit["kind"] == "tool"][:count]
        await asyncio.sleep(0.2)


def _row(kind: str, found: Calls, none: Calls, refreshed: int) -> Row:
    def against(mine: float, theirs: float) -> str:
        return f"{100 * (mine / theirs - 1):+.0f}%"

    p50, p95 = (float(np.percentile(found.paced, p)) for p in (50, 95))
    h50, h95 = (float(np.percentile(found.hurried, p)) for p in (50, 95))
    rate = statistics.median(found.rates)
    return {
        "open": kind,
        "calls": len(found.paced) + len(found.hurried),
        "p50 ms": round(p50, 2),
        "p95 ms": round(p95, 2),
        f"p50 of {AT_ONCE} at once": round(h50, 2),
        f"p95 of {AT_ONCE} at once": round(h95, 2),
        "calls/s": round(rate),
        "against none": ", ".join(
            (
                against(p50, float(np.percentile(none.paced, 50))),
                against(p95, float(np.percentile(none.paced, 95))),
                against(h50, float(np.percentile(none.hurried, 50))),
                against(h95, float(np.percentile(none.hurried, 95))),
                against(rate, statistics.median(none.rates)),
            )
        ),
        "parts refreshed": refreshed,
    }


async def _called(clients: list[Client], names: list[str], into: Calls, seconds: float) -> None:
    """Call for a while: one client with pauses, then all at once without."""

    async def call(client: Client, name: str, times: list[float], until: float, pause: float) -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            await client.call("call_tool", {"name": name, "arguments": {}})
            times.append(1000 * (time.perf_counter() - began))
            if pause:
                await asyncio.sleep(pause)

    await call(clients[0], names[0], into.paced, time.perf_counter() + seconds / 2, PAUSE)
    began, before = time.perf_counter(), len(into.hurried)
    until = began + seconds / 2
    await asyncio.gather(*(call(*both, into.hurried, until, 0.0) for both in zip(clients, names, strict=True)))
    into.rates.append((len(into.hurried) - before) / (time.perf_counter() - began))


@asynccontextmanager
async def _pages(visitor: Visitor) -> AsyncGenerator[Process]:
    """Start the process that opens and closes pages."""
    command = [sys.executable, "-m", "benchmarks.consoles.visitors", visitor.origin, visitor.cookie, *OPEN]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _told(process: Process, word: str) -> dict[str, int]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n".encode())
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError("the pages could not be opened")
    return json.loads(line)
