"""What a search finds, and loads by itself, for requests in everyday words over twenty published servers.

``python -m benchmarks everyday [--half develop|kept] [--missed] [--json]``

Each request is a search of its own session through a board that has all twenty servers, as a model over MCP makes it;
small talk is a message of a user before any search. ``--missed`` also prints what went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.__main__ import table
from benchmarks.everyday.reading import EverydayRequest, Half, catalogs, effects, requests, small_talk
from pegboard import Pegboard
from pegboard.core.model.delivery import GATEWAY
from pegboard.core.model.leases import LeaseReason
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import Manifest
from pegboard.ports import Adapters
from pegboard.sources.mcp.wire.convert import tool_of
from pegboard.stores.sql import MemoryStore

LIMIT = 10


class CatalogSource:
    """A source of the servers as they described themselves and their tools."""

    def __init__(self, documents: Mapping[str, Mapping[str, Any]]) -> None:
        self._documents = documents

    def handles(self, spec: PluginSpec) -> bool:
        return spec.name in self._documents

    def fingerprint(self, spec: PluginSpec) -> str:
        return ""

    async def describe(self, spec: PluginSpec, overrides: object) -> Manifest:
        document = self._documents[spec.name]
        about = document.get("serverInfo") or {}
        return Manifest(
            tools=tuple(tool_of(spec.name, tool) for tool in document["tools"]),
            description=about.get("description") or about.get("title") or "",
            instructions=document.get("instructions") or "",
        )

    async def call(self, *_: object) -> Any:
        raise NotImplementedError("the benchmark calls no tools")

    def on_changed(self, callback: object) -> None:
        pass

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one request found, best first, and what its search loaded (ids)."""

    request: EverydayRequest
    found: tuple[str, ...]
    loaded: tuple[str, ...]
    anticipated: tuple[str, ...]
    seconds: float

    def place(self) -> int:
        """Return the place of the first tool that does the job, from 1; 0 where none is found."""
        return next((at for at, tool in enumerate(self.found, 1) if tool in self.request.tools), 0)


@asynccontextmanager
async def opened() -> AsyncIterator[Pegboard]:
    """Open a board with all servers, whose tools are known."""
    documents = catalogs()
    configured = {
        "store": "memory:",
        "servers": {name: {"url": "http://127.0.0.1:9/mcp"} for name in documents},
        "agents": {"default": {"discoverable": ["*"], "dialect": "pegboard"}},
    }
    adapters = Adapters(store=MemoryStore(), sources=[CatalogSource(documents)])
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "pegboard.yaml"
        path.write_text(json.dumps(configured))
        async with Pegboard.open(path, adapters=adapters) as board:
            await board.ready(*documents)
            yield board


async def answers(board: Pegboard, asked: Sequence[EverydayRequest]) -> list[Answer]:
    """Return what each request finds and loads, each in a session of its own."""
    by_wire = {tool.wire: tool.id for tool in board.world.catalog}
    found: list[Answer] = []
    for number, request in enumerate(asked):
        session = await board.session(session_id=f"search-{number}", host=GATEWAY)
        before = time.process_time()
        results = (await session.search(request.text, limit=LIMIT)).results
        seconds = time.process_time() - before
        await session.call("search_tools", {"queries": [request.text], "limit": LIMIT})
        state = (await session.snapshot()).state
        loaded = [lease.subject.name for lease in state.leases if lease.because is LeaseReason.LOADED]
        ahead = await (await board.session(session_id=f"ahead-{number}")).surface(message=request.text)
        found.append(
            Answer(
                request=request,
                found=tuple(by_wire[one.name] for one in results if one.kind == "tool"),
                loaded=tuple(loaded),
                anticipated=tuple(tool.id for tool in ahead.anticipated),
                seconds=seconds,
            )
        )
    return found


async def talked(board: Pegboard, messages: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what each message that needs no tool loads ahead."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for number, message in enumerate(messages):
        surface = await (await board.session(session_id=f"talk-{number}")).surface(message=message)
        found.append((message, tuple(tool.id for tool in surface.anticipated)))
    return found


def share(those: Iterable[object], of: Sequence[object]) -> float:
    return round(100 * sum(map(bool, those)) / len(of), 1)


def rows(found: Sequence[Answer], talk: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[dict[str, object]]:
    known = effects()
    for intent in ("read", "write", "all"):
        here = [one for one in found if intent in (one.request.intent, "all")]
        writes = [
            one.request.intent == "read"
            and any(known[tool].effect == "write" and tool not in one.request.tools for tool in one.loaded)
            for one in here
        ]
        places = [one.place() for one in here]
        yield {
            "requests": intent,
            "number": len(here),
            "first %": share((place == 1 for place in places), here),
            "among five %": share((0 < place <= 5 for place in places), here),
            "loads anything %": share((one.loaded for one in here), here),
            "loads a wrong tool %": share((set(one.loaded) - one.request.tools for one in here), here),
            "a writing tool for a reading request": sum(writes),
            "needed tool loaded ahead %": share((one.request.tools & {*one.anticipated} for one in here), here),
            "small talk that loads anything %": share((tools for _, tools in talk), talk) if talk else None,
            "processor ms a search": round(1000 * sum(one.seconds for one in here) / len(here), 2),
        }


def missed(found: Sequence[Answer], talk: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for one in found:
        place, wrong = one.place(), set(one.loaded) - one.request.tools
        if place != 1 or wrong:
            wanted = ", ".join(sorted(one.request.tools))
            yield f"{place or '-'} {one.request.intent} {one.request.text!r}\n    wanted {wanted}"
            yield f"    found  {', '.join(one.found[:5])}" + (f"\n    LOADED {', '.join(wrong)}" if wrong else "")
    yield from (f"talk {text!r} loads {', '.join(tools)}" for text, tools in talk if tools)


async def measured(half: Half) -> tuple[list[Answer], list[tuple[str, tuple[str, ...]]]]:
    async with opened() as board:
        return await answers(board, requests(half)), await talked(board, small_talk(half))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks everyday", description=__doc__)
    parser.add_argument("--half", choices=("develop", "kept"), default="develop", help="which requests")
    parser.add_argument("--missed", action="store_true", help="also print what went wrong")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    found, talk = asyncio.run(measured(options.half))
    if options.json:
        print(json.dumps(list(rows(found, talk)), indent=2))
        return 0
    table(f"everyday, {options.half}", list(rows(found, talk)))
    for line in missed(found, talk) if options.missed else ():
        print(line)
    return 0
