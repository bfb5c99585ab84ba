"""What an answer of a search says of each hit: what tells it from the others, what it requires, where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pegboard.board.snapshot import Snapshot
from pegboard.core.access.permissions import tool_fault
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools
from pegboard.core.state.narrowing import excluded_by_loadout
from pegboard.core.surface.brief_schema import required_arguments
from pegboard.core.surface.distinct_sentences import distinct_sentences
from pegboard.core.surface.searchable import Group
from pegboard.dialects.names import FoundTool, Standing
from pegboard.ports import Ranked


def described(snapshot: Snapshot, hits: Sequence[Ranked]) -> tuple[FoundTool, ...]:
    """Return hits as results, each told from the others."""
    loaded = active_tools(snapshot.permissions, snapshot.state)
    sentences = distinct_sentences([hit.found.description for hit in hits])
    return tuple(
        _tool(snapshot, loaded, hit, hit.found, sentence)
        if isinstance(hit.found, Tool)
        else _group(snapshot, loaded, hit, hit.found, sentence)
        for hit, sentence in zip(hits, sentences, strict=True)
    )


def _tool(snapshot: Snapshot, loaded: Mapping[str, LoadedTool], hit: Ranked, tool: Tool, sentence: str) -> FoundTool:
    status, reason = _standing(snapshot, loaded, tool)
    return FoundTool(
        name=tool.wire,
        plugin=tool.plugin,
        description=tool.description,
        score=hit.score,
        loaded=tool.id in loaded,
        sentence=sentence,
        required=required_arguments(tool.input_schema),
        status=status,
        reason=reason,
        need=hit.need,
    )


def _standing(snapshot: Snapshot, loaded: Mapping[str, LoadedTool], tool: Tool) -> tuple[Standing, str]:
    permissions = snapshot.permissions
    known = loaded.get(tool.id)
    if fault := tool_fault(permissions, tool, known.key if known is not None else None):
        return "unavailable", fault
    if known is None:
        return "loadable", ""
    return ("next_request" if known.pending else "callable"), ""


def _group(snapshot: Snapshot, loaded: Mapping[str, LoadedTool], hit: Ranked, group: Group, sentence: str) -> FoundTool:
    plugins = snapshot.permissions.world.catalog.plugins
    fault = plugins[group.name].unavailable if group.kind == "plugin" else ""
    whole = bool(group.tools) and all(tool_id in loaded for tool_id in group.tools)
    ready = whole and not any(loaded[tool_id].pending for tool_id in group.tools)
    return FoundTool(
        name=group.name,
        plugin=group.name if group.kind == "plugin" else "",
        description=group.description,
        score=hit.score,
        loaded=whole,
        kind=group.kind,
        sentence=sentence,
        status="unavailable" if fault else "callable" if ready else "next_request" if whole else "loadable",
        reason=fault,
        need=hit.need,
    )


def names_of(hits: Sequence[Ranked]) -> tuple[str, ...]:
    """Return the names under which hits are loaded."""
    return tuple(hit.found.wire if isinstance(hit.found, Tool) else hit.found.name for hit in hits)


def siblings(
    snapshot: Snapshot, best: Sequence[Ranked], named: frozenset[str], *, servers: int, limit: int
) -> Iterator[str]:
    """Yield the names of other tools of the best results' plugins, those of the best plugin first."""
    permissions, state = snapshot.permissions, snapshot.state
    plugins = list(dict.fromkeys(hit.found.plugin for hit in best if isinstance(hit.found, Tool)))
    others = (
        tool.wire
        for name in plugins[:servers]
        for tool in permissions.world.catalog.plugins[name].tools
        if tool.wire not in named and permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
    )
    return islice(others, limit)
