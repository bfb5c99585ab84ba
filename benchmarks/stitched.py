"""The stitched conversations: each is several recorded tasks in a row, with the tools that they call."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.tools import Frozen, Plugin, Tool, Variant

FOLDER = "bfcl_multi_turn"
ROOT = Path(__file__).resolve().parent.parent
LEAST_TURNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Hold what the user says, and the wire names of the tools that answering it takes."""

    user: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Hold a catalog and the conversations that can be had with it."""

    world: World
    conversations: tuple[tuple[Turn, ...], ...]

    @property
    def tools(self) -> int:
        return sum(len(plugin.tools) for plugin in self.world.catalog.plugins.values())


def read() -> Recording:
    """Return all tools and all conversations; exits with a clear message where the data is missing."""
    folder = Path(os.environ.get("PEGBOARD_DATA") or ROOT.parent / "shared" / "data") / FOLDER
    files = {name: folder / f"{name}.jsonl" for name in ("tools", "sessions_stitched")}
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        sys.exit(
            f"The data of this benchmark is missing: {', '.join(missing)}. "
            f"Set PEGBOARD_DATA to the folder that holds {FOLDER}/."
        )
    conversations = (
        tuple(Turn(user=turn["user"], gold=tuple(turn["gold"])) for turn in session["turns"])
        for session in _lines(files["sessions_stitched"])
    )
    return Recording(world=_world(_lines(files["tools"])), conversations=tuple(conversations))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _world(rows: Iterable[dict[str, Any]]) -> World:
    tools = [
        Tool(
            plugin=row["server"],
            name=row["orig_name"],
            wire=row["name"],
            description=row["description"],
            input_schema=Frozen(row["input_schema"]),
        )
        for row in rows
    ]
    return _world_of(tools)


def _world_of(tools: list[Tool]) -> World:
    tools = sorted(tools, key=lambda tool: tool.plugin)
    groups = ((name, tuple(held)) for name, held in groupby(tools, key=lambda tool: tool.plugin))
    plugins = [
        Plugin(
            name=name,
            kind="server",
            tools=held,
            variants=Frozen({"": Variant(tools=tuple(tool.name for tool in held))}),
        )
        for name, held in groups
    ]
    return World(catalog=Catalog(plugins))


def narrowed(recording: Recording, size: int) -> Recording:
    """Return the most called tools, and of each conversation the turns that need no other.

    Conversations with fewer than five such turns are omitted.
    """
    calls = Counter(name for turns in recording.conversations for turn in turns for name in turn.gold)
    chosen = {name for name, _ in calls.most_common(size)}
    conversations = (
        tuple(turn for turn in turns if turn.gold and chosen.issuperset(turn.gold)) for turns in recording.conversations
    )
    tools = [t for p in recording.world.catalog.plugins.values() for t in p.tools if t.wire in chosen]
    return Recording(
        world=_world_of(tools),
        conversations=tuple(turns for turns in conversations if len(turns) >= LEAST_TURNS),
    )
