"""Catalogs with requests, as they lie in the folder of data: ``tools.jsonl`` and ``queries.jsonl``."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.core.model.tools import Frozen, Tool
from pegboard.core.surface.searchable import Searchable

ROOT = Path(__file__).resolve().parent.parent.parent
DEVELOPMENT = ("bfcl_v4", "bfcl_multi_turn", "seal_tools", "aws_ops", "api_bank", "tooltalk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A request, or one turn of a conversation, with the tools that it needs.

    Attributes:
        text: what the user says.
        gold: the tools that it needs: of each any of these names.
        before: what the user said before.
        session: whose turn it is, in the order of the file.
    """

    text: str
    gold: tuple[frozenset[str], ...]
    before: tuple[str, ...] = ()
    session: int = 0

    @property
    def half(self) -> int:
        """Return which half of a set the query belongs to, 0 or 1: by its text, so that equal ones stay together."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuerySet:
    """A catalog and its requests."""

    name: str
    among: Searchable
    queries: tuple[Query, ...]


def folder() -> Path:
    """Return the folder of the data; exits with a clear message where there is none."""
    path = Path(os.environ.get("PEGBOARD_DATA") or ROOT.parent / "shared" / "data")
    if not path.is_dir():
        sys.exit(f"The data of this benchmark is missing: {path}. Set PEGBOARD_DATA to the folder that has it.")
    return path


def named(names: list[str]) -> list[str]:
    """Return the names of the sets to run: these, or all in the folder that have queries."""
    known = sorted(path.parent.name for path in folder().glob("*/queries.jsonl"))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"There is no set {unknown[0]!r} in {folder()}: there are {', '.join(known) or 'none'}.")
    if not known:
        sys.exit(f"No folder in {folder()} has queries.jsonl beside tools.jsonl.")
    return names or [*(name for name in DEVELOPMENT if name in known), *(n for n in known if n not in DEVELOPMENT)]


def read(name: str, sample: int | None = None) -> QuerySet:
    """Return a set; of its queries all that need a tool, or a sample that is always the same."""
    path = folder() / name
    queries = _queries(path / "queries.jsonl")
    if sample is not None and sample < len(queries):
        kept = sorted(range(len(queries)), key=lambda at: hashlib.sha256(f"{at}".encode()).digest())[:sample]
        queries = [queries[at] for at in sorted(kept)]
    return QuerySet(name=name, among=catalog(name), queries=tuple(queries))


def catalog(name: str) -> Searchable:
    """Return the tools of a set."""
    tools: list[Tool] = []
    plugins: dict[str, str] = {}
    for line in _lines(folder() / name / "tools.jsonl"):
        server, wire = line["server"], line["name"]
        tools.append(
            Tool(
                plugin=server,
                name=wire.removeprefix(f"{server}__"),
                wire=wire,
                description=line.get("description") or "",
                input_schema=Frozen(line.get("input_schema") or {}),
            )
        )
        plugins[server] = line.get("server_description") or ""
    return Searchable(tools=tuple(tools), plugins=plugins)


def pooled(count: int, names: tuple[str, ...]) -> Searchable:
    """Return so many tools: those of these sets, then the same again in plugins of other names."""
    sets = [catalog(name) for name in names]
    tools = [tool for one in sets for tool in one.tools]
    plugins = {name: text for one in sets for name, text in one.plugins.items()}
    found: list[Tool] = []
    texts: dict[str, str] = {}
    for copy in range(count // len(tools) + 1):
        mark = f"-{copy}" if copy else ""
        for tool in tools[: count - len(found)]:
            again = replace(tool, plugin=tool.plugin + mark, wire=tool.wire + mark) if mark else tool
            found.append(again)
            texts[again.plugin] = plugins[tool.plugin]
    return Searchable(tools=tuple(found), plugins=texts)


def _queries(path: Path) -> list[Query]:
    found: list[Query] = []
    for session, line in enumerate(_lines(path)):
        others = line.get("gold_alts") or {}
        before: list[str] = []
        for turn in line.get("turns") or [{"user": line["query"], "gold": line["gold"]}]:
            gold = tuple(frozenset(others.get(name, [name])) for name in dict.fromkeys(turn["gold"]))
            if gold:
                found.append(Query(text=turn["user"], gold=gold, before=tuple(before), session=session))
            before.append(turn["user"])
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        sys.exit(f"The data of this benchmark is missing: {path}. Set PEGBOARD_DATA to the folder that has it.")
    try:
        return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    except ValueError as error:
        sys.exit(f"{path}: every line has to be one JSON object ({error}).")
