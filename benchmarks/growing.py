"""What a catalog costs that grows and changes: servers that arrive one by one, denied tools, searches meanwhile.

The tools are those of ``PEGBOARD_DATA`` where it is set (any folder with a ``tools.jsonl``), else made up; servers are
doubles in this process but in the row of the gateway. What is compared is measured in turns within one run.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from pegboard import Pegboard, Session
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject, Manifest
from pegboard.ports.adapters import Adapters
from pegboard.testing import Canned, FakeSource

Row = dict[str, object]
SERVERS, TOOLS = 2_806, 14
ROUNDS = 3
ARRIVALS = 100
PARALLEL, STEPS, QUERIES = 32, 30, 200
NEEDS = ("list the open issues", "send a message to a channel", "delete a bucket", "weather of tomorrow", "add a user")


@cache
def texts() -> tuple[tuple[str, str, dict[str, Any]], ...]:
    """Return names, descriptions and schemas of tools."""
    folder = os.environ.get("PEGBOARD_DATA")
    files = sorted(Path(folder).glob("*/tools.jsonl")) if folder else []
    rows = [json.loads(line) for file in files for line in file.open(encoding="utf-8")]
    found = [(r.get("orig_name") or r["name"], r.get("description") or "", r.get("input_schema") or {}) for r in rows]
    if found:
        return tuple(found)
    verbs, things = ("list", "send", "delete", "add", "show"), ("issue", "message", "bucket", "forecast", "user")
    schema = {"type": "object", "properties": {"name": {"type": "string", "description": "its name"}}}
    return tuple((f"{v}_{t}_{i}", f"{v} a {t} of group {i}", schema) for i in range(400) for v in verbs for t in things)


def servers(count: int, tools: int, *, lead: str = "s", skip: int = 0) -> dict[str, dict[str, Canned]]:
    """Return servers with so many tools each."""
    endless = itertools.islice(itertools.cycle(texts()), skip, None)
    return {f"{lead}{i}": dict(itertools.islice(_canned(endless), tools)) for i in range(count)}


def _canned(found: Iterator[tuple[str, str, dict[str, Any]]]) -> Iterator[tuple[str, Canned]]:
    for at, (name, description, schema) in enumerate(found):
        yield f"{name}_{at}", Canned(results=["ok"], description=description, input_schema={"type": "object", **schema})


@asynccontextmanager
async def opened(source: FakeSource, names: list[str], **agents: object) -> AsyncGenerator[Pegboard]:
    """Open a board over a double's servers; its agents find everything where nothing else is said."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pegboard.json"
        found = {"servers": {name: {"command": "none"} for name in names}, "store": "memory:"}
        path.write_text(json.dumps({**found, "agents": agents or {"default": {"discoverable": ["*"]}}}))
        async with Pegboard.open(path, adapters=Adapters(sources=[source])) as board:
            yield board


async def timed(make: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds that something takes."""
    began = time.perf_counter()
    await make()
    return (time.perf_counter() - began) * 1000


class Gated(FakeSource):
    """A double whose servers answer when they are let."""

    def __init__(self, plugins: dict[str, dict[str, Canned]]) -> None:
        super().__init__(plugins)
        self.gates = {name: asyncio.Event() for name in plugins}

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        await self.gates[spec.name].wait()
        return await super().describe(spec, overrides)


# -- arrivals --------------------------------------------------------------------------------------


async def arrivals() -> list[Row]:
    """Return what servers cost that arrive at once, and one by one."""
    given = servers(SERVERS, TOOLS)
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way, make in WAYS.items():
            source = Gated(given)
            async with opened(source, list(given)) as board:
                session = await board.session(session_id="s")
                await session.surface()
                gc.collect()
                times.setdefault(way, []).append(await timed(partial(make, board, source, session)))
                assert len(board.world.catalog) == SERVERS * TOOLS
    best = {way: min(found) for way, found in times.items()}
    return [
        {
            "what": f"{SERVERS:,} servers, {SERVERS * TOOLS:,} tools, {way}",
            "ms": round(found),
            "compared": f"{found / best['at once']:.2f} times at once",
        }
        for way, found in best.items()
    ]


async def _at_once(board: Pegboard, source: Gated, session: Session) -> None:
    for gate in source.gates.values():
        gate.set()
    await board.ready()
    await session.surface()


async def _one_by_one(board: Pegboard, source: Gated, session: Session) -> None:
    for name, gate in source.gates.items():
        gate.set()
        await board.ready(name)
    await session.surface()


WAYS = {"at once": _at_once, "one by one": _one_by_one}


async def surfaces() -> list[Row]:
    """Return what a surface takes after each arrival, while most servers have not answered yet."""
    source = Gated(servers(SERVERS, TOOLS))
    async with opened(source, list(source.gates)) as board:
        session = await board.session(session_id="s")
        times = [await timed(session.surface)]
        for name in itertools.islice(source.gates, ARRIVALS):
            source.gates[name].set()
            await board.ready(name)
            times.append(await timed(session.surface))
    what = f"{SERVERS:,} servers, a surface after each of {ARRIVALS} arrivals"
    return [{"what": what, "ms": round(statistics.median(times[1:]), 2), "compared": f"first {times[0]:.2f} ms"}]


# -- a large catalog -------------------------------------------------------------------------------


async def large() -> list[Row]:
    """Return what the verbs take with 100,000 tools: for the first time, again, and after 50 of them changed."""
    given = servers(2_000, 50)
    source = FakeSource(given)
    async with opened(source, list(given)) as board:
        await board.ready()
        session = await board.session(session_id="s")
        name = next(iter(board.world.catalog)).wire
        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "surface": session.surface,
            "search": lambda: session.search(NEEDS[0]),
            "load": lambda: session.load(name),
            "call": lambda: session.call(name, {}),
        }
        found = {verb: [await timed(make), await timed(make)] for verb, make in verbs.items()}
        changed = servers(1, 50, lead="s", skip=7)
        source.change("s0", changed["s0"] | given["s0"])
        arrival = await timed(lambda: board.ready("s0"))
        while len(board.world.catalog) == 100_000:
            arrival += await timed(lambda: asyncio.sleep(0))
        rows: list[Row] = [
            {"what": "100,000 tools, one server with 50 more arrives", "ms": round(arrival, 2), "compared": ""}
        ]
        for verb, make in verbs.items():
            first, again = found[verb]
            then = await timed(make)
            compared = f"{again:.2f} ms again, {then:.2f} ms after the change"
            rows.append({"what": f"100,000 tools, first {verb}", "ms": round(first, 2), "compared": compared})
        return rows


# -- searches while plugins change ------------------------------------------------------------------


async def parallel() -> list[Row]:
    """Return how long the longest of 32 searches waits, each time while a server changes its tools."""
    given = servers(300, 10)
    source = FakeSource(given)
    async with opened(source, list(given)) as board:
        await board.ready()
        sessions = [await board.session(session_id=f"s{i}") for i in range(PARALLEL)]
        await sessions[0].search("warm up")
        waits: list[float] = []
        for step in range(STEPS):
            name = f"s{step}"
            source.change(name, servers(1, 10, lead=name, skip=step)[f"{name}0"])
            asked = zip(sessions, itertools.cycle(NEEDS), strict=False)
            waits += await asyncio.gather(*(timed(partial(session.search, need)) for session, need in asked))
    what = f"3,000 tools, {PARALLEL} searches in parallel while a server changes: longest wait of {len(waits)}"
    return [{"what": what, "ms": round(max(waits), 2), "compared": f"median {statistics.median(waits):.2f} ms"}]


# -- denied tools ----------------------------------------------------------------------------------


async def denied() -> list[Row]:
    """Return what a search takes where 10 tools are permitted of 20,000, and where there are only these 10."""
    own, others = servers(1, 10, lead="own"), servers(400, 50, skip=10)
    few = {"default": {"discoverable": ["own*"]}}
    async with (
        opened(FakeSource(own), list(own), **few) as alone,
        opened(FakeSource(own), list(own), **few) as again,
        opened(FakeSource(own | others), [*others, *own], **few) as among,
    ):
        await alone.ready()
        await again.ready()
        await among.ready()
        assert len(among.world.catalog) == 20_010
        pairs = [
            ("only 10 tools", await alone.session(session_id="s")),
            ("10 of 20,000", await among.session(session_id="s")),
            ("only 10 tools, a second time", await again.session(session_id="s")),
        ]
        times: dict[str, list[float]] = {way: [] for way, _ in pairs}
        answers: dict[str, list[object]] = {way: [] for way, _ in pairs}
        for need in itertools.islice(itertools.cycle(NEEDS), QUERIES):
            pairs.reverse()
            for way, session in pairs:
                began = time.perf_counter()
                answers[way].append(await session.search(need))
                times[way].append((time.perf_counter() - began) * 1000)
    same = "the same answers" if answers["only 10 tools"] == answers["10 of 20,000"] else "OTHER ANSWERS"
    medians = {way: statistics.median(found) for way, found in times.items()}
    return [
        {"what": f"search, {way}", "ms": round(medians[way], 4), "compared": f"p95 {_p95(times[way]):.4f} ms, {same}"}
        for way in sorted(medians, reverse=True)
    ]


def _p95(found: list[float]) -> float:
    return sorted(found)[len(found) * 95 // 100]


# -- through the gateway -----------------------------------------------------------------------------


async def gateway() -> list[Row]:
    """Return what a search takes over stdio more than in process, with 3,000 tools of Python functions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pegboard.json"
        plugins = {f"p{i}": {"python": f"p{i}", "prefix": f"p{i}"} for i in range(30)}
        for at, name in enumerate(plugins):
            (Path(folder) / f"{name}.py").write_text(_module(at))
        agents = {"default": {"discoverable": ["*"], "dialect": "pegboard"}}
        path.write_text(json.dumps({"plugins": plugins, "agents": agents, "store": "sqlite:///state.db"}))
        command = [sys.executable, "-m", "pegboard", "serve", "--stdio", "--alone", "--config", str(path)]
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        try:
            async with Pegboard.open(path) as board:
                session = await board.session(session_id="s")
                inside, outside = await _in_turns(session.search, process)
        finally:
            process.terminate()
            await process.communicate()
    rows: list[Row] = []
    for way, found in (("in process", inside), ("over stdio", outside)):
        more = statistics.median(found) - statistics.median(inside), min(found) - min(inside)
        compared = f"{more[0]:.2f} ms more, the fastest {more[1]:.2f} ms more"
        rows.append(
            {"what": f"3,000 tools, search {way}", "ms": round(statistics.median(found), 2), "compared": compared}
        )
    return rows


def _module(at: int) -> str:
    rows = [texts()[(at * 100 + i) % len(texts())] for i in range(100)]
    lines = (
        f"def f{at}_{i}(name: str) -> str:\n    {description[:200]!r}\n    return name\n"
        for i, (_, description, _) in enumerate(rows)
    )
    return "\n\n".join(lines)


async def _in_turns(search: Callable[[str], Awaitable[object]], process: Any) -> tuple[list[float], list[float]]:
    number = itertools.count(1)

    async def ask(method: str, **params: object) -> object:
        asked = next(number)
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}).encode() + b"\n"
        )
        while (answer := json.loads(await process.stdout.readline())).get("id") != asked:
            pass
        return answer["result"]

    about = {"name": "growing", "version": "1"}
    await ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
    process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    inside, outside = list[float](), list[float]()
    for need in itertools.islice(itertools.cycle(NEEDS), QUERIES):
        inside.append(await timed(partial(search, need)))
        call = partial(ask, "tools/call", name="search_tools", arguments={"queries": [need]})
        outside.append(await timed(call))
    return inside[20:], outside[20:]


def measure() -> list[Row]:
    parts = (arrivals, surfaces, large, parallel, denied, gateway)
    return [row for part in parts for row in asyncio.run(part())]
