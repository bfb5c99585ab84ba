"""Find tools for what is needed, among what the session can reach (P3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.narrowing import reachable
from pegboard.core.state.sessions import State
from pegboard.core.surface.hints import plugin_lines
from pegboard.dialects.names import Found, FoundTool, Search
from pegboard.ports import RankContext

if TYPE_CHECKING:
    from pegboard.board.session import Session


def find(session: Session, access: CompiledPermissions, state: State, search: Search) -> Found:
    """Rank what is permitted; say what is out already, and how to go on when nothing fits."""
    context = RankContext(used=state.recent)
    among = reachable(access, state)
    ranked = session.board.parts.ranker.rank(search.queries, among, context, limit=search.limit)
    outs = active_tools(access, state)
    results = tuple(
        FoundTool(
            name=hit.tool.wire,
            plugin=hit.tool.plugin,
            description=hit.tool.description,
            score=hit.score,
            loaded=hit.tool.id in outs,
        )
        for hit in ranked
    )
    return Found(query=search.queries, results=results, hint=_hint(session, access, state, results))


def _hint(session: Session, access: CompiledPermissions, state: State, results: tuple[FoundTool, ...]) -> str:
    out = [result.name for result in results if result.loaded]
    if out:
        verb = "is" if len(out) == 1 else "are"
        return f"{', '.join(out)} {verb} loaded already: call by name."
    if results:
        return ""
    lines = plugin_lines(access, session.board.parts.counter.count, budget=150, state=state)
    known = f" There are: {'; '.join(lines)}." if lines else ""
    return f"Nothing fits these words. Try other words, one need per query.{known}"
