"""Find tools for what is needed, among what the session can reach (P3)."""

from __future__ import annotations

from pegboard.board.bring_in import bring_in_searchable
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.rank_context import note_search, rank_context
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.narrowing import reachable_in_category
from pegboard.core.surface.hints import plugin_lines
from pegboard.core.surface.searchable import searchable
from pegboard.dialects.names import Found, FoundTool, Search
from pegboard.ports import RankContext

HINT_TOKENS = 150


async def search(services: Services, snapshot: Snapshot, needs: Search) -> tuple[Snapshot, Found]:
    """Return what answers the needs best, once the plugins that could be searched have been seen."""
    snapshot = await bring_in_searchable(services, snapshot)
    await services.ranker.prepare(searchable(snapshot.access, snapshot.state.loadout))
    context = await rank_context(services, snapshot, needs.queries, messages=needs.context)
    return snapshot, _ranked(services, snapshot, needs, context)


def _ranked(services: Services, snapshot: Snapshot, needs: Search, context: RankContext) -> Found:
    """Rank what is permitted; report what is loaded already, and how to go on when nothing fits."""
    access, state = snapshot.access, snapshot.state
    loaded = active_tools(access, state)
    results = tuple(
        FoundTool(
            name=tool.wire,
            plugin=tool.plugin,
            description=tool.description,
            score=score,
            loaded=tool.id in loaded,
        )
        for tool, score in _best(services, snapshot, needs, context)
    )
    return Found(query=needs.queries, results=results, hint=_hint(services, snapshot, results))


def _best(services: Services, snapshot: Snapshot, needs: Search, context: RankContext) -> list[tuple[Tool, float]]:
    """Return the best tools; a query that names a category (``category:Git``) stands for its tools."""
    access, state = snapshot.access, snapshot.state
    best: dict[str, tuple[Tool, float]] = {}
    words: list[str] = []
    for query in needs.queries:
        tools = reachable_in_category(access, state, query)
        best.update((tool.id, (tool, 1.0)) for tool in tools)
        if not tools:
            words.append(query)
    if words:
        among = searchable(access, state.loadout)
        ranking = services.ranker.rank(words, among, context, limit=needs.limit)
        note_search(services, snapshot, words, ranking)
        for hit in ranking.hits:
            if isinstance(hit.found, Tool):
                best.setdefault(hit.found.id, (hit.found, hit.score))
    return list(best.values())[: needs.limit]


def _hint(services: Services, snapshot: Snapshot, results: tuple[FoundTool, ...]) -> str:
    loaded = [result.name for result in results if result.loaded]
    if loaded:
        verb = "is" if len(loaded) == 1 else "are"
        return f"{', '.join(loaded)} {verb} loaded already: call by name."
    if results:
        return ""
    lines = plugin_lines(snapshot.access, services.counter.count, budget=HINT_TOKENS, state=snapshot.state)
    known = f" There are: {'; '.join(lines)}." if lines else ""
    return f"Nothing fits these words. Try other words, one need per query.{known}"
