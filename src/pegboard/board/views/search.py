"""Find tools for what is needed, among what the session can reach (P3)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, cast

from pegboard.board.discover import discover_searchable
from pegboard.board.observability.conversations import cut_context, newest
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.names import name_to_load
from pegboard.core.access.permissions import tool_fault
from pegboard.core.model.naming import distinct_sentences, one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools
from pegboard.core.state.sessions import HintForm
from pegboard.core.state.subjects import excluded_by_loadout, reachable_in_category
from pegboard.core.surface.definitions import required_arguments
from pegboard.core.surface.hints import hints
from pegboard.core.surface.searchable import Group, searchable
from pegboard.dialects.names import Found, FoundTool, Search, Standing
from pegboard.errors import UsageError
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


def checked_search(queries: Sequence[object], limit: object, context: object) -> Search:
    """Return what is searched for.

    Raises ``UsageError`` for a query that is no text, a limit that is no number above zero, another context than texts.
    """
    texts = tuple(query for query in queries if isinstance(query, str))
    if len(texts) < len(queries):
        number, query = next((number, query) for number, query in enumerate(queries, 1) if not isinstance(query, str))
        hint = "Each query is a text: search('read a file', 'commit changes')."
        raise UsageError(f"Query {number} is of the type '{type(query).__name__}', not a text.", hint=hint)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise UsageError(f"The limit is {limit!r:.40}.", hint="It is a whole number from 1 on.")
    return Search(queries=texts, limit=limit, context=None if context is None else _texts(context))


def _texts(context: object) -> tuple[str, ...]:
    given = cast("Sequence[object]", context) if isinstance(context, Sequence) else ()
    texts = tuple(text for text in given if isinstance(text, str))
    if isinstance(context, str) or not isinstance(context, Sequence) or len(texts) < len(given):
        raise UsageError("The context is no list of texts.", hint="It is what the user wrote, the newest last.")
    return texts


async def search(services: Services, snapshot: Snapshot, needs: Search) -> tuple[Snapshot, Found]:
    """Return what answers the needs best, once the plugins that could be searched have been seen."""
    snapshot = await discover_searchable(services, snapshot)
    await services.ranker.prepare(searchable(snapshot.permissions, snapshot.state.loadout))
    context = await rank_context(services, snapshot, needs.queries, messages=needs.context)
    return snapshot, _find_tools(services, snapshot, needs, context)


def _find_tools(services: Services, snapshot: Snapshot, needs: Search, context: RankContext) -> Found:
    """Return what is found of what is permitted, what follows it, and how to go on when nothing fits."""
    ranking = best_hits(
        snapshot, needs, lambda queries, limit: rank_and_note(services, snapshot, queries, context, limit=limit)
    )
    best = ranking.hits[: needs.limit]
    names = names_of(snapshot, (*best, *_above_threshold(ranking.hits, needs.limit)))
    results = describe_hits(snapshot, best)
    firsts = _first_results(results)
    return Found(
        query=needs.queries,
        results=results,
        hint=_hint_to_go_on(services, snapshot, needs, ranking, results),
        further=names[needs.limit :],
        siblings=tuple(siblings(snapshot, best, frozenset(names), servers=SERVERS, limit=SIBLINGS)),
        clear=tuple(one.name for one in firsts if ranking.needs[one.need].clear and ranking.needs[one.need].loads),
        likely=tuple(
            one.name for one in firsts if ranking.needs[one.need].fits >= UNLIKELY and ranking.needs[one.need].loads
        ),
    )


def _above_threshold(hits: Sequence[Ranked], after: int) -> list[Ranked]:
    """Return the hits after the first ones, but for those that are far behind the best of their need."""
    best: dict[int, float] = {}
    for hit in hits:
        best[hit.need] = max(best.get(hit.need, 0.0), hit.score)
    return [hit for hit in hits[after:] if hit.score >= FAINT * best[hit.need]]


def best_hits(snapshot: Snapshot, needs: Search, rank: Callable[[Sequence[str], int], Ranking]) -> Ranking:
    """Return the best hits; a query may stand for something by its name alone.

    ``rank`` ranks those that do not, as many as it is told.
    """
    best: dict[str, Ranked] = {}
    evidence = [Evidence() for _ in needs.queries]
    words: list[tuple[int, str]] = []
    for place, query in enumerate(needs.queries[:NEEDS]):
        named = _tools_by_query_name(snapshot, query)
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


def _tools_by_query_name(snapshot: Snapshot, query: str) -> tuple[Tool | Group, ...]:
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


def _first_results(results: Sequence[FoundTool]) -> tuple[FoundTool, ...]:
    """Return the first result of each need, where it is a tool."""
    firsts: dict[int, FoundTool] = {}
    for result in results:
        firsts.setdefault(result.need, result)
    return tuple(result for result in firsts.values() if result.kind == "tool")


# -- how to go on ----------------------------------------------------------------------------------


def _hint_to_go_on(
    services: Services, snapshot: Snapshot, needs: Search, ranking: Ranking, results: Sequence[FoundTool]
) -> str:
    """Return how to go on: softly, for what seems not to fit may be what is needed all the same."""
    if not results:
        return f"Nothing fits these words. {_GO_ON}{_inventory_text(services, snapshot, HINT_TOKENS)}"
    if len(needs.queries) > NEEDS:
        return f"Only the first {NEEDS} needs were searched for. Ask for the others in another search."
    if snapshot.permissions.agent.dialect == "toolkits":
        return ""  # whether it fits is known of tools only
    unlikely = [query for query, known in zip(needs.queries, ranking.needs, strict=True) if known.fits < UNLIKELY]
    if len(unlikely) == len(needs.queries):
        there_are = _inventory_text(services, snapshot, NEAREST_HINT_TOKENS)
        return f"Nothing seems to fit; these are the nearest. {_GO_ON}{there_are}"
    if unlikely:
        which = ", ".join(f"'{one_line(query, limit=QUOTED_CHARACTERS)}'" for query in unlikely)
        return f"Nothing seems to fit {which}. Try other words for it."
    loaded = [result.name for result in results if result.status == "callable" and result.kind == "tool"]
    verb = "is" if len(loaded) == 1 else "are"
    return f"{', '.join(loaded)} {verb} loaded already: call by name." if loaded else ""


def _inventory_text(services: Services, snapshot: Snapshot, budget: int) -> str:
    permissions, loadout, count = snapshot.permissions, snapshot.state.loadout, services.counter.count
    form: HintForm = "toolkits" if permissions.agent.dialect == "toolkits" else "plugins"
    lines = hints(permissions, count, budget=budget, loadout=loadout, form=form).lines
    return f" There are: {'; '.join(lines)}." if lines else ""


# -- what a ranker is given of the conversation, and what its answers add to it --------------------


HARDLY: Final = 0.2
"""Below which probability that anything fits a search leans on earlier ones."""


async def rank_context(
    services: Services, snapshot: Snapshot, queries: Sequence[str], *, messages: Sequence[str] | None = None
) -> RankContext:
    """Return what is known of the conversation before these queries.

    ``messages`` is what the host gives of the conversation, the newest last; None takes what it gave with surfaces.
    What was used is only of what is within reach (P9).
    """
    info, permissions = snapshot.info, snapshot.permissions
    if messages is None:
        before = info.conversation.messages_before([services.recorder.masker.value(query) for query in queries])
    else:
        before = newest(*(text for message in messages if (text := cut_context(message))))
    if not permissions.agent.remember:
        return RankContext(messages=before)
    used = await services.uses.within_reach(info.key, permissions, snapshot.state)
    return RankContext(messages=before, used=used)


def rank_and_note(
    services: Services, snapshot: Snapshot, queries: Sequence[str], context: RankContext, *, limit: int
) -> Ranking:
    """Return the best answers to what is searched for, and note both: what is called next is their use."""
    ranking, _ = rank_queries(services, snapshot, queries, context, limit=limit)
    masked = [services.recorder.masker.value(query) for query in queries]
    snapshot.info.conversation.add_search(masked, ranking, snapshot.state.turn)
    return ranking


def rank_queries(
    services: Services, snapshot: Snapshot, queries: Sequence[str], context: RankContext, *, limit: int
) -> tuple[Ranking, RankContext]:
    """Return the best answers to what is searched for, and the context that they were ranked with; nothing is noted.

    In a gateway, which sees no message, the session's earlier searches are the context where the queries alone fit
    hardly anything; what is known of the answers is what the queries alone tell. As context of every search they
    would cost more than they bring: most searches say all that they need.
    """
    among = searchable(snapshot.permissions, snapshot.state.loadout)
    ranking = services.ranker.rank(queries, among, context, limit=limit)
    if snapshot.info.host.calls_through and not context.messages and _is_weak_match(ranking):
        masked = [services.recorder.masker.value(query) for query in queries]
        earlier = snapshot.info.conversation.searches_before(masked)
        if earlier:
            context = replace(context, messages=earlier)
            helped = services.ranker.rank(queries, among, context, limit=limit)
            ranking = replace(helped, needs=ranking.needs)
    return ranking, context


def _is_weak_match(ranking: Ranking) -> bool:
    return all(known.fits < HARDLY for known in ranking.needs)


# -- what an answer says of each hit ---------------------------------------------------------------


def describe_hits(snapshot: Snapshot, hits: Sequence[Ranked]) -> tuple[FoundTool, ...]:
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
    status, reason = _availability_of(snapshot, loaded, tool)
    return FoundTool(
        name=_name(snapshot, loaded, tool),
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


def _availability_of(snapshot: Snapshot, loaded: Mapping[str, LoadedTool], tool: Tool) -> tuple[Standing, str]:
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


def names_of(snapshot: Snapshot, hits: Sequence[Ranked]) -> tuple[str, ...]:
    """Return the names under which hits are loaded."""
    loaded = active_tools(snapshot.permissions, snapshot.state)
    found = (hit.found for hit in hits)
    return tuple(_name(snapshot, loaded, one) if isinstance(one, Tool) else one.name for one in found)


def _name(snapshot: Snapshot, loaded: Container[str], tool: Tool) -> str:
    return tool.wire if tool.id in loaded else name_to_load(snapshot.permissions, tool)


def siblings(
    snapshot: Snapshot, best: Sequence[Ranked], named: frozenset[str], *, servers: int, limit: int
) -> Iterator[str]:
    """Yield the names of other tools of the best results' plugins, those of the best plugin first."""
    permissions, state = snapshot.permissions, snapshot.state
    plugins = list(dict.fromkeys(hit.found.plugin for hit in best if isinstance(hit.found, Tool)))
    others = (
        name_to_load(permissions, tool)
        for name in plugins[:servers]
        for tool in permissions.world.catalog.plugins[name].tools
        if tool.wire not in named and permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
    )
    return islice(others, limit)


# -- the record of a search: what for is kept where arguments are (X4) -----------------------------


def note_search(services: Services, snapshot: Snapshot, needs: Search, found: Found) -> None:
    """Note a search and how much it found, within 50 ms (S2)."""
    from pegboard.board.observability.call_details import EndedCall, details_of  # no start needs it

    recorder, info = services.recorder, snapshot.info
    outcome = f"{len(found.results)} found"
    entry = recorder.entry(info.key, snapshot.state.turn, "search", "search", "allowed", outcome=outcome, by=info.by)
    ended = EndedCall("", {"queries": list(needs.queries)})
    recorder.note_later(entry, details=details_of(recorder.masker, snapshot.permissions.agent.record, ended))
    services.metrics.count_search(info.key)
