"""Find tools for what is needed, among what the session can reach (P3)."""

from __future__ import annotations

from pegboard.board.bring_in import bring_in_searchable
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.narrowing import reachable
from pegboard.core.surface.hints import plugin_lines
from pegboard.dialects.names import Found, FoundTool, Search
from pegboard.ports import RankContext

HINT_TOKENS = 150


async def search(services: Services, snapshot: Snapshot, needs: Search) -> tuple[Snapshot, Found]:
    """Return what answers the needs best, once the plugins that could be searched have been seen."""
    snapshot = await bring_in_searchable(services, snapshot)
    return snapshot, _ranked(services, snapshot, needs)


def _ranked(services: Services, snapshot: Snapshot, needs: Search) -> Found:
    """Rank what is permitted; report what is loaded already, and how to go on when nothing fits."""
    access, state = snapshot.access, snapshot.state
    context = RankContext(used=state.recent)
    ranked = services.ranker.rank(needs.queries, reachable(access, state), context, limit=needs.limit)
    loaded = active_tools(access, state)
    results = tuple(
        FoundTool(
            name=hit.tool.wire,
            plugin=hit.tool.plugin,
            description=hit.tool.description,
            score=hit.score,
            loaded=hit.tool.id in loaded,
        )
        for hit in ranked
    )
    return Found(query=needs.queries, results=results, hint=_hint(services, snapshot, results))


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
