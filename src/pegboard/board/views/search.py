"""Find tools for what is needed, among what the session can reach (P3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pegboard.board.discover import discover_searchable
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.rank_context import rank_context, ranked
from pegboard.board.views.search_results import described, names_of, siblings
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.narrowing import reachable_in_category
from pegboard.core.state.sessions import HintForm
from pegboard.core.surface.hints import hints
from pegboard.core.surface.searchable import Group, searchable
from pegboard.dialects.names import Found, FoundTool, Search
from pegboard.ports import UNLIKELY, Evidence, RankContext, Ranked, Ranking

NEEDS: Final = 50
"""How many needs one search answers."""
FURTHER: Final = 10
"""How many names follow the results."""
FAINT: Final = 0.4
"""A further result with less than this share of its need's best score is not named."""
SIBLINGS: Final = 4
SERVERS: Final = 2
"""How many names of other tools follow, of how many of the best plugins."""
HINT_TOKENS: Final = 150
NEAREST_HINT_TOKENS: Final = 40
"""What the names of plugins may take where nothing is found, and where something is that hardly fits."""
QUOTED_CHARACTERS: Final = 60

_GO_ON: Final = "Try other words, one need per query."


async def search(services: Services, snapshot: Snapshot, needs: Search) -> tuple[Snapshot, Found]:
    """Return what answers the needs best, once the plugins that could be searched have been seen."""
    snapshot = await discover_searchable(services, snapshot)
    await services.ranker.prepare(searchable(snapshot.permissions, snapshot.state.loadout))
    context = await rank_context(services, snapshot, needs.queries, messages=needs.context)
    return snapshot, _found(services, snapshot, needs, context)


def _found(services: Services, snapshot: Snapshot, needs: Search, context: RankContext) -> Found:
    """Return what is found of what is permitted, what follows it, and how to go on when nothing fits."""
    ranking = best_hits(
        snapshot, needs, lambda queries, limit: ranked(services, snapshot, queries, context, limit=limit)
    )
    best = ranking.hits[: needs.limit]
    names = names_of((*best, *_not_faint(ranking.hits, needs.limit)))
    results = described(snapshot, best)
    firsts = _firsts(results)
    return Found(
        query=needs.queries,
        results=results,
        hint=_hint(services, snapshot, needs, ranking, results),
        further=names[needs.limit :],
        siblings=tuple(siblings(snapshot, best, frozenset(names), servers=SERVERS, limit=SIBLINGS)),
        clear=tuple(result.name for result in firsts if ranking.needs[result.need].clear),
        likely=tuple(result.name for result in firsts if ranking.needs[result.need].fits >= UNLIKELY),
    )


def _not_faint(hits: Sequence[Ranked], after: int) -> list[Ranked]:
    """Return the hits after the first ones, but for those that are far behind the best of their need."""
    best: dict[int, float] = {}
    for hit in hits:
        best[hit.need] = max(best.get(hit.need, 0.0), hit.score)
    return [hit for hit in hits[after:] if hit.score >= FAINT * best[hit.need]]


def best_hits(snapshot: Snapshot, needs: Search, rank: Callable[[Sequence[str], int], Ranking]) -> Ranking:
    """Return the best hits; a query may stand for something by its name alone.

    Args:
        snapshot: the session.
        needs: what is searched for.
        rank: ranks those that do not, as many as it is told.
    """
    best: dict[str, Ranked] = {}
    evidence = [Evidence() for _ in needs.queries]
    words: list[tuple[int, str]] = []
    for place, query in enumerate(needs.queries[:NEEDS]):
        named = _named(snapshot, query)
        best.update((_key(found), Ranked(found=found, score=1.0, need=place)) for found in named)
        if not named:
            words.append((place, query))
    if words:
        ranking = rank([query for _, query in words], needs.limit + FURTHER)
        for (place, _), known in zip(words, ranking.needs, strict=False):
            evidence[place] = known
        for hit in ranking.hits:
            best.setdefault(_key(hit.found), replace(hit, need=words[hit.need][0]))
    return Ranking(hits=tuple(best.values())[: needs.limit + FURTHER], needs=tuple(evidence))


def _named(snapshot: Snapshot, query: str) -> tuple[Tool | Group, ...]:
    """Return what a query stands for by its name: the tools of a category (``category:Git``).

    Where the model loads toolkits only, it is the toolkits of that name, and those that have such a member.
    """
    permissions, state = snapshot.permissions, snapshot.state
    if permissions.agent.dialect != "toolkits":
        return reachable_in_category(permissions, state, query)
    fold = query.strip().casefold()
    groups = searchable(permissions, state.loadout).groups
    found = [group for group in groups if fold in map(str.casefold, (group.name, *group.members))]
    return tuple(sorted(found, key=lambda group: group.name.casefold() != fold))


def _key(found: Tool | Group) -> str:
    return found.id if isinstance(found, Tool) else f"{found.kind}:{found.name}"


def _firsts(results: Sequence[FoundTool]) -> tuple[FoundTool, ...]:
    """Return the first result of each need, where it is a tool."""
    firsts: dict[int, FoundTool] = {}
    for result in results:
        firsts.setdefault(result.need, result)
    return tuple(result for result in firsts.values() if result.kind == "tool")


# -- how to go on ----------------------------------------------------------------------------------


def _hint(services: Services, snapshot: Snapshot, needs: Search, ranking: Ranking, results: Sequence[FoundTool]) -> str:
    """Return how to go on: softly, for what seems not to fit may be what is needed all the same."""
    if not results:
        return f"Nothing fits these words. {_GO_ON}{_there_are(services, snapshot, HINT_TOKENS)}"
    if len(needs.queries) > NEEDS:
        return f"Only the first {NEEDS} needs were searched for. Ask for the others in another search."
    if snapshot.permissions.agent.dialect == "toolkits":
        return ""  # whether it fits is known of tools only
    unlikely = [query for query, known in zip(needs.queries, ranking.needs, strict=True) if known.fits < UNLIKELY]
    if len(unlikely) == len(needs.queries):
        there_are = _there_are(services, snapshot, NEAREST_HINT_TOKENS)
        return f"Nothing seems to fit; these are the nearest. {_GO_ON}{there_are}"
    if unlikely:
        which = ", ".join(f"'{one_line(query, limit=QUOTED_CHARACTERS)}'" for query in unlikely)
        return f"Nothing seems to fit {which}. Try other words for it."
    loaded = [result.name for result in results if result.status == "callable" and result.kind == "tool"]
    verb = "is" if len(loaded) == 1 else "are"
    return f"{', '.join(loaded)} {verb} loaded already: call by name." if loaded else ""


def _there_are(services: Services, snapshot: Snapshot, budget: int) -> str:
    permissions, loadout, count = snapshot.permissions, snapshot.state.loadout, services.counter.count
    form: HintForm = "toolkits" if permissions.agent.dialect == "toolkits" else "plugins"
    lines = hints(permissions, count, budget=budget, loadout=loadout, form=form).lines
    return f" There are: {'; '.join(lines)}." if lines else ""
