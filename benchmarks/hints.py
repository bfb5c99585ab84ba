"""What the dialect of seed 002 saves with hints as names and as whole descriptions, and at how many model calls."""

from __future__ import annotations

from benchmarks.conversations import FEW, recorded
from benchmarks.oracle import Asked, Oracle, Policy, count, size
from benchmarks.stitched import read
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.tools import Tool
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.hints import hints
from pegboard.dialects.invokeother import InvokeOtherDialect
from pegboard.dialects.names import META_PLUGIN, View

IDLE = LeaseTerm("idle", 5)
WAYS = {
    "names": Policy(name="names", until=IDLE),
    "whole descriptions": Policy(name="whole", until=IDLE, named=True),
}
"""With names alone the model searches; whoever reads the description of every tool loads what it needs by its name."""


def measure() -> list[dict[str, object]]:
    return [row(tools, way) for tools in (FEW, read().tools) for way in WAYS]


def row(tools: int, way: str) -> dict[str, object]:
    """Return tokens in a request on average, against everything loaded, and model calls a turn to search and load."""
    recording = recorded(tools)
    oracle = Oracle(recording, WAYS[way])
    view = View(permissions=oracle.permissions, state=DEFAULT, cut=way == "names")
    text = sum(count(line) + 1 for line in _lines(oracle, way))
    beside = sum(map(size, InvokeOtherDialect().tools(view))) + text
    asked = [event for turns in recording.conversations for event in oracle.converse(turns) if isinstance(event, Asked)]
    own = sum(size(tool) for event in asked for tool in event.tools if tool.plugin != META_PLUGIN) / len(asked)
    turns = sum(tally.turns for tally in oracle.tallies)
    calls = sum(tally.searches + tally.loads for tally in oracle.tallies)
    everything = sum(size(tool) for tool in recording.world.catalog)
    return {
        "tools": tools,
        "hints": way,
        "tokens of hints": text,
        "tokens in a request": round(own + beside),
        "everything loaded": everything,
        "less %": round(100 * (1 - (own + beside) / everything), 1),
        "model calls a turn to search and load": round(calls / turns, 2),
    }


def _lines(oracle: Oracle, way: str) -> tuple[str, ...]:
    """Return the hints: as names whatever the budget, so that few and many tools compare."""
    if way != "names":
        return hints(oracle.permissions, count, budget=None, form="tools").lines
    by_plugin: dict[str, list[Tool]] = {}
    for tool in oracle.permissions.permitted:
        by_plugin.setdefault(tool.plugin, []).append(tool)
    return tuple(f"{plugin}: {', '.join(tool.name for tool in tools)}" for plugin, tools in by_plugin.items())
