"""What is loaded ahead by messages that need nothing, and by short requests, through a board; and in conversations.

``python -m benchmarks anticipated [--missed] [--json]``

The messages stand in ``benchmarks/messages``. The threshold was chosen on those of ``chosen_on.txt``; the others were
written afterwards, and are measured only. Small talk is given to every catalog, a request to the one that has its tool.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import table
from benchmarks.answers import DataSource, data, tools_of
from benchmarks.conversations import AHEAD
from benchmarks.oracle import Oracle
from benchmarks.stitched import read
from pegboard import Pegboard
from pegboard.ports import Adapters
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker
from pegboard.stores.sql import MemoryStore

MESSAGES = Path(__file__).with_name("messages")
HALVES = ("chosen_on", "measured_on")
CONTEXT = 10_000
COUNTED = ("calls", "loaded", "first", "first_loaded", "destructive", "destructive_loaded")
CATALOGS = ("bfcl_multi_turn", "tooltalk", "api_bank", "mcp_extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a user writes; the catalog and the tool that it needs, or nothing."""

    half: str
    text: str
    catalog: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a message had loaded ahead over a catalog."""

    message: Message
    catalog: str
    tools: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.message.tool in self.tools if self.message.tool else not self.tools


def messages() -> Iterator[Message]:
    """Yield the messages: a language and a text, or a catalog, a tool and a text, apart by tabs."""
    for half in HALVES:
        for line in (MESSAGES / f"{half}.txt").read_text("utf-8").splitlines():
            match line.split("\t"):
                case [_, text]:
                    yield Message(half=half, text=text)
                case [catalog, tool, text]:
                    yield Message(half=half, text=text, catalog=catalog, tool=tool)
                case _:
                    continue


async def results_of(catalog: str, asked: Sequence[Message]) -> list[Result]:
    """Return what each message has loaded ahead in a session of its own, over one catalog."""
    servers = tools_of(data() / catalog)
    names = {tool.name for tools in servers.values() for tool in tools}
    if lacking := sorted({one.tool for one in asked if one.tool} - names):
        sys.exit(f"{catalog} has no tools {', '.join(lacking)}.")
    configured = {
        "store": "memory:",
        "servers": {name: {"url": "http://127.0.0.1:9/mcp"} for name in servers},
        "agents": {"default": {"discoverable": ["*"], "dialect": "pegboard"}},
    }
    adapters = Adapters(store=MemoryStore(), sources=[DataSource(servers)])
    found: list[Result] = []
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "pegboard.yaml"
        path.write_text(json.dumps(configured))
        async with Pegboard.open(path, adapters=adapters) as board:
            await (await board.session(session_id="first")).search("anything")
            for number, message in enumerate(asked):
                session = await board.session(session_id=str(number))
                surface = await session.surface(message=message.text)
                tools = tuple(tool.name for tool in surface.anticipated)
                found.append(Result(message=message, catalog=catalog, tools=tools))
    return found


async def everything() -> list[Result]:
    given = tuple(messages())
    found: list[Result] = []
    for catalog in CATALOGS:
        print(f"anticipated: {catalog} …", file=sys.stderr)
        found += await results_of(catalog, [one for one in given if one.catalog in ("", catalog)])
    return found


def rows(found: Sequence[Result]) -> Iterator[dict[str, object]]:
    for half in HALVES:
        for catalog in (*CATALOGS, "all"):
            here = [one for one in found if one.message.half == half and catalog in (one.catalog, "all")]
            talk = [one for one in here if not one.message.tool]
            asked = [one for one in here if one.message.tool]
            yield {
                "messages": half,
                "catalog": catalog,
                "small talk": len(talk),
                "loads anything %": round(100 * sum(not one.right for one in talk) / len(talk), 1),
                "requests": len(asked),
                "has its tool %": round(100 * sum(one.right for one in asked) / len(asked), 1),
                "loads nothing %": round(100 * sum(not one.tools for one in asked) / len(asked), 1),
            }


def stitched() -> Iterator[dict[str, object]]:
    """Yield how many calls of the stitched conversations find their tool loaded, by words alone and as shipped."""
    recording = read()
    for name, ranker in (("words alone", ToolRanker()), ("words and table", ToolRanker(Embedding()))):
        oracle = Oracle(recording, AHEAD, CONTEXT, ranker=ranker)
        for turns in recording.conversations:
            for _ in oracle.converse(turns):
                pass
        total = {name: sum(getattr(tally, name) for tally in oracle.tallies) for name in COUNTED}
        safe = total["calls"] - total["destructive"]
        yield {
            "ranker": name,
            "calls": total["calls"],
            "loaded %": round(100 * total["loaded"] / total["calls"], 1),
            "not destructive, loaded %": round(100 * (total["loaded"] - total["destructive_loaded"]) / safe, 1),
            "first use of a plugin, loaded %": round(100 * total["first_loaded"] / total["first"], 1),
        }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks anticipated", description=__doc__)
    parser.add_argument("--missed", action="store_true", help="also print what went wrong")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    found = asyncio.run(everything())
    if options.json:
        print(json.dumps({"anticipated": list(rows(found)), "stitched": list(stitched())}, indent=2))
        return 0
    table("anticipated", list(rows(found)))
    table("stitched conversations", list(stitched()))
    for one in found if options.missed else ():
        if not one.right:
            print(
                f"{one.message.half} {one.catalog}: {one.message.text!r} {one.message.tool} -> {', '.join(one.tools)}"
            )
    return 0
