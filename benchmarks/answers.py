"""What finding a tool costs a model: tokens and model calls from a need to its result, and what an answer names.

Every request of the development sets is searched for once, in its own words, over the whole catalog of its set, through
a board whose host is the gateway (schemas in answers, calls through ``call_tool``). The turns of a dialogue share a
session: a tool whose schema came in an earlier turn is no need any longer. Then the model is assumed

- to know the tool it needs when it is named, and to load in one call all that it needs of what was named;
- where a needed tool is not named, to search once more, and to find it then: one more search of the same size, and
  its load;
- to call each needed tool once, in a model call of its own (``calls / need``), or all of them in parallel
  (``calls / request``).

Nothing is loaded ahead of being asked for: ``benchmarks conversations`` has what that costs and saves.
A tool that the search has loaded takes no load; a wrong one loaded is no help and costs its tokens. Tokens are those of
the answers to searches and loads until every schema is known.
``--against COMMIT`` measures the same of that commit, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard import Host, Pegboard, Session
from pegboard.core.model.agents import Agent
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, Frozen, Manifest, Tool
from pegboard.ports import Adapters
from pegboard.stores.sql import MemoryStore
from pegboard.tokens import OfflineTokenCounter

WITHOUT_SIBLINGS = {"anticipate": False} if "anticipate" in Agent.__dataclass_fields__ else {}
"""An earlier commit that is measured beside this one has no such key."""

ROOT = Path(__file__).resolve().parent.parent
SETS = ("bfcl_v4", "bfcl_multi_turn", "seal_tools", "aws_ops", "api_bank", "tooltalk")
GATEWAY = Host(delivery=("result",), calls_through=True)
SEED = 1
SCHEMAS = {"inputSchema", "arguments"}
"""Under which keys the schema of a result stands, if it has been loaded."""
COUNTER = OfflineTokenCounter()


# -- data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for, and the tools that it needs, each with those that would do as well."""

    text: str
    needed: tuple[frozenset[str], ...]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as rows:
        yield from (json.loads(row) for row in rows if row.strip())


def tools_of(folder: Path) -> dict[str, list[Tool]]:
    """Return the tools of a set by their servers, under the names that the set gives them."""
    servers: dict[str, list[Tool]] = {}
    for row in lines(folder / "tools.jsonl"):
        server, name = row.get("server") or "tools", row["name"]
        own = name.removeprefix(f"{server}__")
        schema = Frozen(row.get("input_schema") or {"type": "object", "properties": {}})
        made = Tool(plugin=server, name=own, wire=name, description=row.get("description") or "", input_schema=schema)
        servers.setdefault(server, []).append(made)
    return servers


def conversations_of(folder: Path) -> Iterator[tuple[Request, ...]]:
    """Yield the requests of each conversation; one that stands for itself is a conversation of one."""
    for row in lines(folder / "queries.jsonl"):
        same: Mapping[str, list[str]] = row.get("gold_alts", {})
        asked = [(t["user"], t["gold"]) for t in row["turns"]] if "turns" in row else [(row["query"], row["gold"])]
        yield tuple(
            Request(text=text, needed=tuple(frozenset(same.get(name, [name])) for name in dict.fromkeys(gold)))
            for text, gold in asked
            if gold and text.strip()
        )


class DataSource:
    """A source that brings in the servers of a set as they are written down."""

    def __init__(self, servers: Mapping[str, list[Tool]]) -> None:
        self._servers = servers

    def handles(self, spec: PluginSpec) -> bool:
        return spec.name in self._servers

    def fingerprint(self, spec: PluginSpec) -> str:
        return ""

    async def describe(self, spec: PluginSpec, overrides: object) -> Manifest:
        return Manifest(tools=tuple(self._servers[spec.name]))

    async def call(self, *_: object) -> Any:
        raise NotImplementedError("the benchmark calls no tools")

    def on_changed(self, callback: object) -> None:
        pass

    async def aclose(self) -> None:
        pass


# -- the model -------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one request took."""

    needs: int
    tokens: int = 0
    answer: int = 0
    searches: int = 0
    loads: int = 0
    named: int = 0
    ready: int = 0
    wrong: int = 0
    arguments: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an answer of a search gives: the names in it, which are loaded, and of how many arguments it informs."""

    named: frozenset[str]
    loaded: frozenset[str]
    text: str
    parts: Mapping[str, str] = field(default_factory=dict)


def read_answer(text: str, known: Mapping[str, Tool]) -> Answer:
    """Return what an answer gives, in the form of any commit: results, further names, schemas."""
    document = json.loads(text)
    named = {str(result["name"]) for result in document.get("results", ())}
    loaded = {str(result["name"]) for result in document.get("results", ()) if result.keys() & SCHEMAS}
    for key in ("more", "siblings"):
        rest: Any = document.get(key, ())
        groups = rest.values() if isinstance(rest, dict) else (rest,)
        named.update(name for group in groups for name in names_in(group))
    parts = {str(result["name"]): json.dumps(result) for result in document.get("results", ())}
    return Answer(named=frozenset(named & known.keys()) | loaded, loaded=frozenset(loaded), text=text, parts=parts)


def names_in(group: Any) -> Iterable[str]:
    if not isinstance(group, str):
        return [str(name) for name in group]
    parts = re.findall(r"[^,{}\s]*\{[^}]*\}|[^,{}\s]+", group)
    return [name for part in parts for name in spelled_out(part)]


def spelled_out(part: str) -> list[str]:
    lead, brace, rest = part.partition("{")
    return [lead + own.strip() for own in rest.rstrip("}").split(",")] if brace else [part]


async def converse(session: Session, requests: Iterable[Request], known: Mapping[str, Tool]) -> list[Tally]:
    """Return what a model takes for each request of a conversation that needs what it does not have yet."""
    had: set[str] = set()
    tallies: list[Tally] = []
    for request in requests:
        needed = tuple(alternatives for alternatives in request.needed if not alternatives & had)
        if needed:
            tallies.append(await find(session, replace(request, needed=needed), known, had))
        await session.end_turn()
    return tallies


async def find(session: Session, request: Request, known: Mapping[str, Tool], had: set[str]) -> Tally:
    """Return what a model takes to have every schema that a request needs."""
    found = await session.call("search_tools", {"queries": [request.text]})
    answer = read_answer(found.result.content[0]["text"], known)
    had |= answer.loaded
    tally = Tally(needs=len(request.needed), searches=1, answer=tokens_of(found.result))
    tally.tokens = tally.answer
    missing: list[str] = []
    to_load: list[str] = []
    for alternatives in request.needed:
        ready, named = alternatives & answer.loaded, alternatives & answer.named
        tally.ready += bool(ready)
        tally.named += bool(named)
        if not ready:
            (to_load if named else missing).append(min(named or alternatives & known.keys()))
        shown = next((answer.parts[name] for name in sorted(alternatives) if name in answer.parts), "")
        tally.arguments += share_of_arguments(known[min(alternatives & known.keys())], shown)
    tally.wrong = len(answer.loaded - frozenset().union(*request.needed))
    if missing:
        tally.searches += 1
        tally.tokens *= 2
    for names in filter(None, (to_load, missing)):
        tally.loads += 1
        tally.tokens += await loaded(session, names)
        had.update(names)
    return tally


async def loaded(session: Session, names: list[str]) -> int:
    """Return the tokens of a load's answer."""
    done = await session.call("load_tools", {"names": names})
    assert not done.result.is_error, done.message
    return tokens_of(done.result)


def tokens_of(result: CallResult) -> int:
    return sum(COUNTER.count(str(block["text"])) for block in result.content)


def share_of_arguments(tool: Tool, shown: str) -> float:
    """Return the share of a tool's required arguments that its part of an answer names."""
    required = tool.input_schema.get("required", ())
    return sum(str(name) in shown for name in required) / len(required) if required else 1.0


# -- measuring -------------------------------------------------------------------------------------


def configuration(servers: Iterable[str]) -> dict[str, Any]:
    return {
        "store": "memory:",
        "servers": {name: {"url": "http://127.0.0.1:9/mcp", "prefix": ""} for name in servers},
        "agents": {"default": {"discoverable": ["*"], "dialect": "pegboard", **WITHOUT_SIBLINGS}},
    }


async def measure_set(folder: Path, sample: int) -> dict[str, Any]:
    servers = tools_of(folder)
    known = {tool.wire: tool for tools in servers.values() for tool in tools}
    conversations = list(conversations_of(folder))
    random.Random(SEED).shuffle(conversations)
    adapters = Adapters(store=MemoryStore(), sources=[DataSource(servers)])
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "pegboard.yaml"
        path.write_text(json.dumps(configuration(servers)))
        async with Pegboard.open(path, adapters=adapters) as board:
            await (await board.session(session_id="first", host=GATEWAY)).search("anything")
            for number, requests in enumerate(conversations):
                if sample is not None and len(tallies) >= sample:
                    break
                session = await board.session(session_id=str(number), host=GATEWAY)
                tallies += await converse(session, requests, known)
    return row(folder.name, len(known), tallies)


def row(name: str, tools: int, tallies: list[Tally]) -> dict[str, Any]:
    needs = sum(tally.needs for tally in tallies)
    steps = [tally.searches + tally.loads for tally in tallies]
    single = [s + 1 for s, t in zip(steps, tallies, strict=True) if t.needs == 1]
    return {
        "set": name,
        "tools": tools,
        "requests": len(tallies),
        "answer": round(statistics.mean(t.answer for t in tallies), 1),
        "tokens": round(statistics.mean(t.tokens for t in tallies), 1),
        "named %": round(100 * sum(t.named / t.needs for t in tallies) / len(tallies), 1),
        "arguments %": round(100 * sum(t.arguments for t in tallies) / needs, 1),
        "loaded, right %": round(100 * sum(t.ready for t in tallies) / needs, 1),
        "loaded, wrong": round(sum(t.wrong for t in tallies) / len(tallies), 2),
        "calls / need": round(statistics.mean((s + t.needs) / t.needs for s, t in zip(steps, tallies, strict=True)), 2),
        "calls / request": round(statistics.mean(steps) + 1, 2),
        "calls, one need": round(statistics.mean(single), 2) if single else None,
    }


def means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    mean: dict[str, Any] = {"set": "mean", "tools": "", "requests": sum(row["requests"] for row in rows)}
    for key in list(rows[0])[3:]:
        values = [row[key] for row in rows if row[key] is not None]
        mean[key] = round(statistics.mean(values), 2)
    return mean


def measured_at(commit: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of another commit: its source runs under this file."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", str(tree), commit], cwd=ROOT, check=True)
        try:
            command = [
                sys.executable,
                str(Path(__file__).resolve()),
                "--json",
                "--sample",
                str(options.sample),
                *options.sets,
            ]
            env = {**os.environ, "PYTHONPATH": str(tree / "src"), "PEGBOARD_DATA": str(data())}
            printed = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=True).stdout
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    return json.loads(printed)["answers"]


def data() -> Path:
    return Path(os.environ.get("PEGBOARD_DATA") or ROOT.parent / "shared" / "data").absolute()


def measure(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        print(f"answers: {name} …", file=sys.stderr)
        rows.append(asyncio.run(measure_set(data() / name, options.sample)))
    return {"answers": [*rows, means(rows)]}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks answers", description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET", help=f"by default {', '.join(SETS)}")
    parser.add_argument("--sample", type=int, default=200, help="requests of each set; 0 for all")
    parser.add_argument("--against", metavar="COMMIT", help="measure that commit, too")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    options.sample = options.sample or None
    results = measure(options)
    if options.against:
        results[options.against] = measured_at(options.against, options)
    if options.json:
        print(json.dumps(results, indent=2))
        return 0
    for name, rows in results.items():
        print(f"\n## {name}\n\n| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
        for one in rows:
            print("| " + " | ".join(str(value) for value in one.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
