"""What pins cost and hold back: ``python -m benchmarks pins [--lists | --servers] [--rounds 15] [--json]``.

``--lists`` reads a list of 3,000 tools that is what it was, over stdio, with pins and without in turn, and opens a
board that has it stored. ``--servers`` installs ten servers that start without an account in up to four named versions
each, and lists them one version after the other under the default policy: how many tools of a version are as pinned,
pass as new, and wait, and whether what the server says of itself waits. Nothing of them is called. Without either both
run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gateways.installing import CACHE, InstallError, environment, node, packages
from pegboard import Pegboard
from pegboard.board.catalog.loader import PluginRequest

TOOLS = 3_000
BARE = ("server", "version", "what")
SERVER = """
import json, sys

def tool(number):
    text = "Return the items of a list that fit a query, sorted by date, with owner and labels. "
    arguments = {f"arg{n}": {"type": "string", "description": "What is looked for, in plain words."} for n in range(4)}
    schema = {"type": "object", "properties": arguments, "required": ["arg0"]}
    hints = {"readOnlyHint": True}
    return {"name": f"find_{number}", "description": text * 2, "inputSchema": schema, "annotations": hints}

TOOLS = [tool(number) for number in range(int(sys.argv[1]))]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "many", "version": "1"}},
        "tools/list": {"tools": TOOLS},
    }
    found = answers.get(asked["method"])
    reply = {"result": found} if found is not None else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A server in several versions, the oldest first; ``entry`` is its program in the package, or its command.

    ``beside`` has by version what is installed with it, where what it asks for is not enough.
    """

    name: str
    package: str
    versions: tuple[str, ...]
    entry: str
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    python: bool = False
    beside: dict[str, str] = field(default_factory=dict[str, str])


CANDIDATES = (
    Candidate(
        name="filesystem",
        package="@modelcontextprotocol/server-filesystem",
        versions=("2025.11.25", "2025.12.18", "2026.1.14", "2026.8.31"),
        entry="dist/index.js",
        arguments=("{folder}",),
    ),
    Candidate(
        name="memory",
        package="@modelcontextprotocol/server-memory",
        versions=("2025.4.25", "2025.9.25", "2026.1.26", "2026.8.31"),
        entry="dist/index.js",
    ),
    Candidate(
        name="everything",
        package="@modelcontextprotocol/server-everything",
        versions=("2025.7.1", "2025.12.18", "2026.1.26", "2026.8.31"),
        entry="dist/index.js",
    ),
    Candidate(
        name="sequential-thinking",
        package="@modelcontextprotocol/server-sequential-thinking",
        versions=("2025.7.1", "2025.11.25", "2025.12.18", "2026.8.31"),
        entry="dist/index.js",
    ),
    Candidate(
        name="github",
        package="@modelcontextprotocol/server-github",
        versions=("2025.1.23", "2025.3.19", "2025.3.28", "2025.4.8"),
        entry="dist/index.js",
    ),
    Candidate(
        name="playwright",
        package="@playwright/mcp",
        versions=("0.0.55", "0.0.64", "0.0.75", "0.0.83"),
        entry="cli.js",
        arguments=("--headless",),
    ),
    Candidate(
        name="notion",
        package="@notionhq/notion-mcp-server",
        versions=("1.9.1", "2.1.0", "2.4.1", "2.5.2"),
        entry="bin/cli.mjs",
        env={"NOTION_TOKEN": "ntn_not_a_token"},
    ),
    Candidate(
        name="git",
        package="mcp-server-git",
        versions=("2026.7.10", "2026.8.18", "2026.10.10", "2026.10.19"),
        entry="mcp-server-git",
        python=True,
        beside={"2026.7.10": "mcp<2"},
    ),
    Candidate(
        name="time",
        package="mcp-server-time",
        versions=("2026.7.10", "2026.8.18", "2026.10.10", "2026.10.19"),
        entry="mcp-server-time",
        python=True,
        beside={"2026.7.10": "mcp<2"},
    ),
    Candidate(
        name="fetch",
        package="mcp-server-fetch",
        versions=("2026.8.18", "2026.10.10", "2026.10.19", "2026.10.24"),
        entry="mcp-server-fetch",
        python=True,
    ),
)


def _configuration(folder: Path, name: str, server: dict[str, Any]) -> Path:
    document = {
        "store": "sqlite:///state.db",
        "servers": {name: server},
        "agents": {"default": {"discoverable": ["*"]}},
    }
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps(document))
    return path


async def _unpinned(_plugin: Any, manifest: Any, _policy: Any, *, stored: bool = False) -> Any:
    """Take a list as it is: what happened before there were pins."""
    return manifest


def _undigested(_plugin: str, manifest: Any) -> Any:
    """Keep a list without the digests of its definitions."""
    return manifest


async def lists(rounds: int) -> list[dict[str, object]]:
    """Return what a list of 3,000 tools takes with pins and without, read again and opened from the store, in turn."""
    took: dict[tuple[str, bool], list[float]] = {(what, on): [] for what in ("read", "open") for on in (True, False)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many.py").write_text(SERVER)
        args = [str(folder / "many.py"), str(TOOLS)]
        config = _configuration(folder, "many", {"command": sys.executable, "args": args})
        async with Pegboard.open(config) as board:
            loader, pins = board.services.loader, board.services.pins
            await loader.fetch(PluginRequest(plugin="many"))
            await pins.aclose()
            judged, digested = pins.compare, pins.with_digests
            for at in range(2 * rounds):
                pins.compare = judged if at % 2 else _unpinned  # type: ignore[method-assign]
                pins.with_digests = digested if at % 2 else _undigested  # type: ignore[method-assign]
                began = time.perf_counter()
                await loader.fetch(PluginRequest(plugin="many"))
                took["read", bool(at % 2)].append(time.perf_counter() - began)
            assert len(board.world.catalog.plugins["many"].tools) == TOOLS
        from pegboard.board.catalog.pins import DefinitionPins

        judging = DefinitionPins.compare
        try:
            for at in range(2 * rounds):
                DefinitionPins.compare = judging if at % 2 else lambda _, *a, **k: _unpinned(*a, **k)  # type: ignore
                began = time.perf_counter()
                async with Pegboard.open(config):
                    took["open", bool(at % 2)].append(time.perf_counter() - began)
        finally:
            DefinitionPins.compare = judging  # type: ignore[method-assign]
    return [_row(what, took[what, True], took[what, False]) for what in ("read", "open")]


def _row(what: str, pinned: list[float], plain: list[float]) -> dict[str, object]:
    """Return the medians; the ratio is that of the sums of pairs that ran one after the other."""
    ratio = statistics.median(one / other for one, other in zip(pinned, plain, strict=True))
    return {
        "what": f"{what} a list of {TOOLS} tools that is what it was",
        "pinned_ms": round(statistics.median(pinned) * 1e3, 1),
        "plain_ms": round(statistics.median(plain) * 1e3, 1),
        "more": f"{(ratio - 1) * 100:+.1f} %",
        "rounds": len(pinned),
    }


def _server(one: Candidate, version: str, folder: Path) -> dict[str, Any]:
    """Return how a version is started, installed where it is missing."""
    where = f"pins-{one.name}-{version}"
    arguments = [argument.format(folder=folder) for argument in one.arguments]
    if one.python:
        wanted = [f"{one.package}=={version}", *([one.beside[version]] if version in one.beside else [])]
        return {"command": str(environment(where, *wanted) / one.entry), "args": arguments}
    program = packages(where, {one.package: version}) / one.package / one.entry
    return {"command": node(), "args": [str(program), *arguments], "env": one.env}


async def versions_of(one: Candidate) -> list[dict[str, object]]:
    """Return for each version but the first how many of its tools are as pinned, pass and wait."""
    found: list[dict[str, object]] = []
    known = set[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for version in one.versions:
            config = _configuration(folder, one.name, await asyncio.to_thread(_server, one, version, folder))
            async with Pegboard.open(config) as board:
                await board.services.loader.ask_anew([PluginRequest(plugin=one.name)])
                if reason := board.world.catalog.plugins[one.name].unavailable:
                    found.append({"server": one.name, "version": version, "failed": reason[:200]})
                    continue
                every = await board.pins.list(one.name)
                tools = [tool for tool in every if tool.tool]
                states = Counter(tool.status for tool in tools)
                fresh = {tool.tool for tool in tools if tool.status == "pinned"} - known if known else set[str]()
                known |= {tool.tool for tool in tools}
                found.append(
                    {
                        "server": one.name,
                        "version": version,
                        "tools": sum(states.values()) - states["gone"],
                        "as pinned": states["pinned"],
                        "of them new": len(fresh),
                        "changed, wait": states["changed"],
                        "new, wait": states["new"],
                        "not listed": states["gone"],
                        "its own description": "waits" if len(every) > len(tools) else "as pinned",
                    }
                )
                await board.pins.accept(one.name, by="benchmark")
    return found


async def servers() -> list[dict[str, object]]:
    """Return what each version of each server comes to."""
    rows: list[dict[str, object]] = []
    for one in CANDIDATES:
        try:
            rows += await versions_of(one)
        except InstallError as error:
            rows.append({"server": one.name, "failed": str(error)})
    listed = [row for row in rows if "tools" in row]
    later = [row for row in listed if row is not next(one for one in listed if one["server"] == row["server"])]
    total = {
        name: sum(int(str(row[name])) for row in later) for name in ("tools", "as pinned", "changed, wait", "new, wait")
    }
    return [*rows, {"server": "all", "version": f"{len(later)} changes of version", **total}]


def main(arguments: list[str]) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pins", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--lists", action="store_true", help="only what a list costs")
    which.add_argument("--servers", action="store_true", help="only what versions of servers come to")
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--clean", action="store_true", help="remove what was installed afterwards")
    options = parser.parse_args(arguments)
    found: dict[str, object] = {}
    if not options.servers:
        found["lists"] = asyncio.run(lists(options.rounds))
    if not options.lists:
        found["servers"] = asyncio.run(servers())
    if options.clean:
        for folder in CACHE.glob("pins-*"):
            shutil.rmtree(folder)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, rows in found.items():
        print(f"\n{name}")
        for row in rows if isinstance(rows, list) else ():
            print("  " + ", ".join(value if key in BARE else f"{key} {value}" for key, value in row.items()))
    return 0
