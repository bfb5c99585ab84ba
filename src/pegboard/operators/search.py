"""Search all tools while someone types: for one agent, or for several at once (P3, F5).

A look leaves no trace: nothing is remembered, noted in the conversation, loaded, or asked of a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.explain import approval_reason
from pegboard.board.views.search import FAINT, best_hits, checked_search, describe_hits, rank_context, rank_queries
from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import LOCAL, CompiledPermissions
from pegboard.core.model.agents import World
from pegboard.core.model.naming import first_sentence
from pegboard.core.model.tools import Tool
from pegboard.core.state.subjects import exclusion_reason, exclusion_text, may_bring
from pegboard.core.surface.searchable import Group, Searchable, all_searchable, searchable
from pegboard.dialects.names import FoundTool, Search, Standing
from pegboard.operators.explain import (
    Fix,
    PlainReason,
    Subject,
    denial_of,
    fixes_of,
    plain_reason,
    subject_of,
    whole_group,
)
from pegboard.operators.masked import Name, ShownNames, mask_value, shown_names
from pegboard.operators.near_names import NamedSubject, NameKind, NameMatch, NearNames
from pegboard.operators.snapshots import look
from pegboard.ports import RankContext, Ranked, Ranking, ScorePart
from pegboard.support.background import BackgroundComputations

MOST: Final = 100
"""So many hits are returned at most."""

SOON: Final = 0.1
"""For so many seconds the first search of all waits for the index."""

BY_NAME: Final = (ScorePart(kind="name", value=1.0),)

HitStanding = Standing | Literal["denied", "excluded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One answer of an operator's search.

    Attributes:
        kind: what it is.
        name: the name under which it is loaded; a tool's is its wire name.
        plugin: the plugin that a tool belongs to, or that it is; a toolkit has none.
        title: its name for people.
        sentence: the sentence of its description that tells it from the others.
        standing: where it is in the session: as its model would be told, or denied, or excluded by the active
            loadout.
        permitted: whether the agent may use it.
        reason: why it is unavailable, denied or excluded; else None.
        approval: what its calls need of a person, or which standing allowance counts; None where that is nothing.
        score: how well it answers, between 0 and 1; None of what is here for its name alone.
        parts: what the score is made of, the greatest first.
        match: how its name answers, where it does.
    """

    kind: NameKind
    name: Name
    plugin: Name
    title: str
    sentence: str
    standing: HitStanding
    permitted: bool
    reason: PlainReason | None = None
    approval: PlainReason | None = None
    score: float | None = None
    parts: tuple[ScorePart, ...] = ()
    match: NameMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What an operator's search found.

    Attributes:
        query: what was typed.
        names: what the text names, whoever may use it: shown first. It may be among the hits, too.
        hits: what the agent's model would find, in its order and with its scores.
        rest: what else there is, and is not among the names: what the agent may not use, or its model does not find.
        indexing: whether everything is still being indexed, so that names and rest are missing; ask again.
        tools: how many tools there are.
    """

    query: str
    names: tuple[SearchHit, ...] = ()
    hits: tuple[SearchHit, ...] = ()
    rest: tuple[SearchHit, ...] = ()
    indexing: bool = False
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonHit:
    """One answer of a search for several agents.

    Attributes:
        kind: what it is.
        name: the name under which it is loaded; a tool's is its wire name.
        plugin: the plugin that a tool belongs to, or that it is; a toolkit has none.
        title: its name for people.
        sentence: the first sentence of its description.
        agents: how many of the agents may use it.
        score: how well it answers, between 0 and 1; None of what is here for its name alone.
        parts: what the score is made of, the greatest first.
        match: how its name answers, where it does.
    """

    kind: NameKind
    name: Name
    plugin: Name
    title: str
    sentence: str
    agents: int
    score: float | None = None
    parts: tuple[ScorePart, ...] = ()
    match: NameMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonAnswer:
    """What a search for several agents found: first what the text names, then what answers it, the best first.

    ``agents`` is for how many it was searched, ``tools`` how many there are. While ``indexing``, nothing is found yet.
    """

    query: str
    agents: int
    hits: tuple[CommonHit, ...] = ()
    indexing: bool = False
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPermission:
    """Whether an agent may use something, what decided, and what would permit it."""

    agent: Name
    permitted: bool
    reason: PlainReason | None
    fixes: tuple[Fix, ...]


class OperatorSearch:
    """The search of operators over one board, with its index of everything."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._whole = WholeCatalog(services)

    async def aclose(self) -> None:
        """End what is being indexed; a search that waits for it says ``indexing``."""
        await self._whole.aclose()

    async def for_agent(
        self, agent: str, query: str, *, principal: str = LOCAL, session: str = "", limit: int = 20
    ) -> SearchAnswer:
        """Return what the model of an agent would find for a text, and what else there is (P3).

        A session without an id is a new one. At most 100 hits are returned.
        """
        services, needs = self._services, checked_search((query,), limit, None)
        needs = replace(needs, limit=min(needs.limit, MOST))
        await discover_every(services, IN_PROCESS)
        snapshot = await look(services, agent, principal=principal, session=session)
        found = await _search_answer(services, self._whole, snapshot, needs, query)
        known: dict[str, PlainReason | None] = {}
        found = replace(
            found,
            names=await _with_approvals(services, snapshot, found.names, known),
            hits=await _with_approvals(services, snapshot, found.hits, known),
            rest=await _with_approvals(services, snapshot, found.rest, known),
        )
        return mask_value(found, await shown_names(services))

    async def for_agents(self, agents: Sequence[str], query: str, *, limit: int = 20) -> CommonAnswer:
        """Return what of everything answers a text, and how many of these agents may use each."""
        services, needs = self._services, checked_search((query,), limit, None)
        await discover_every(services, IN_PROCESS)
        await services.compiler.refresh()
        indexed = await self._whole.indexed()
        tools = len(services.world.catalog)
        if indexed is None or not query.strip():
            unknown = CommonAnswer(query=query, agents=len(agents), indexing=indexed is None, tools=tools)
            return mask_value(unknown, await shown_names(services))
        permissions = [services.compiler.permissions_of_agent(agent) for agent in agents]
        hits = tuple(_common_hits(services, indexed, permissions, query, min(needs.limit, MOST)))
        found = CommonAnswer(query=query, agents=len(agents), hits=hits, tools=tools)
        return mask_value(found, await shown_names(services))


async def _with_approvals(
    services: Services, snapshot: Snapshot, hits: tuple[SearchHit, ...], known: dict[str, PlainReason | None]
) -> tuple[SearchHit, ...]:
    """Return hits with what calls of those that the agent may use need of a person (A5)."""
    for hit in hits:
        tool = snapshot.permissions.world.catalog.find_tool(hit.name) if hit.kind == "tool" and hit.permitted else None
        if tool is not None and hit.name not in known:
            reason = await approval_reason(services, snapshot, tool)
            known[hit.name] = plain_reason(reason) if reason is not None else None
    return tuple(replace(hit, approval=known[hit.name]) if known.get(hit.name) else hit for hit in hits)


async def _search_answer(
    services: Services, whole: WholeCatalog, snapshot: Snapshot, needs: Search, query: str
) -> SearchAnswer:
    indexed = await whole.indexed()
    if not query.strip():
        return SearchAnswer(query=query, indexing=indexed is None, tools=len(services.world.catalog))
    among = await asyncio.to_thread(searchable, snapshot.permissions, snapshot.state.loadout)
    if not await whole.is_prepared(among):
        return SearchAnswer(query=query, indexing=True, tools=len(services.world.catalog))
    context = await rank_context(services, snapshot, needs.queries)
    hits, context = _found_by_model(services, snapshot, needs, among, context)
    if indexed is None:
        return SearchAnswer(query=query, hits=hits, indexing=True, tools=len(services.world.catalog))
    rest = _found_besides(services, snapshot, needs, indexed.among, among, context)
    names = tuple(_hits_by_name(snapshot, indexed, query, (*hits, *rest)))
    called = {(hit.kind, hit.name) for hit in names}
    return SearchAnswer(
        query=query,
        names=names,
        hits=hits,
        rest=tuple(hit for hit in rest if (hit.kind, hit.name) not in called),
        tools=len(indexed.among.tools),
    )


def _found_by_model(
    services: Services, snapshot: Snapshot, needs: Search, among: Searchable, context: RankContext
) -> tuple[tuple[SearchHit, ...], RankContext]:
    """Return what the model would find, as ``search_tools`` does, and the context that it was ranked with."""
    used = [context]

    def rank(queries: Sequence[str], limit: int) -> Ranking:
        ranking, used[0] = rank_queries(services, snapshot, queries, context, limit=limit)
        return ranking

    ranked = best_hits(snapshot, needs, rank).hits[: needs.limit]
    parts = services.ranker.parts(needs.queries[0], among, used[0], [hit.found for hit in ranked])
    by_name = [BY_NAME if hit.score == 1.0 else made for hit, made in zip(ranked, parts, strict=True)]
    return tuple(_hits(snapshot, ranked, by_name)), used[0]


def _found_besides(
    services: Services, snapshot: Snapshot, needs: Search, whole: Searchable, among: Searchable, context: RankContext
) -> tuple[SearchHit, ...]:
    """Return what answers of everything that the model does not find; nothing that is far behind the best of it."""
    if len(among.tools) == len(whole.tools) and len(among.groups) == len(whole.groups):
        return ()
    ranker = services.ranker
    ranked = ranker.rank(needs.queries, whole, context, limit=needs.limit, without=among).hits
    ranked = [hit for hit in ranked if hit.score >= FAINT * ranked[0].score]
    parts = ranker.parts(needs.queries[0], whole, context, [hit.found for hit in ranked])
    return tuple(_hits(snapshot, ranked, parts))


def _hits_by_name(
    snapshot: Snapshot, indexed: IndexedCatalog, query: str, found: Sequence[SearchHit]
) -> Iterator[SearchHit]:
    """Yield what a text names; what is found anyway with its score."""
    known = {(hit.kind, hit.name): hit for hit in found}
    for named, match in indexed.names.find(query):
        hit = known.get((named.kind, named.name))
        if hit is None:
            subject = named.tool or _group(snapshot.permissions, indexed.among, named)
            ((hit),) = _hits(snapshot, [Ranked(found=subject, score=0.0)], [()])
            hit = replace(hit, score=None)
        yield replace(hit, match=match)


def _group(permissions: CompiledPermissions, among: Searchable, named: NamedSubject) -> Group:
    """Return a toolkit, or a plugin with those of its tools that the agent may use."""
    if named.kind == "toolkit":
        return next(group for group in among.groups if group.kind == "toolkit" and group.name == named.name)
    plugin = permissions.world.catalog.plugins[named.name]
    tools = tuple(tool.id for tool in plugin.tools if permissions.permits(tool))
    return Group(kind="plugin", name=plugin.name, description=plugin.description, tools=tools)


def _hits(snapshot: Snapshot, ranked: Sequence[Ranked], parts: Sequence[tuple[ScorePart, ...]]) -> Iterator[SearchHit]:
    """Yield what was ranked as an operator sees it."""
    for hit, found, made in zip(ranked, describe_hits(snapshot, ranked), parts, strict=True):
        standing, reason = _standing_of(snapshot, hit.found, found)
        yield SearchHit(
            kind=found.kind,
            name=found.name,
            plugin=found.plugin,
            title=title_of(snapshot.permissions.world, hit.found),
            sentence=found.sentence or first_sentence(found.description),
            standing=standing,
            permitted=standing != "denied",
            reason=plain_reason(reason) if reason is not None else None,
            score=hit.score,
            parts=made,
        )


def title_of(world: World, found: Tool | Group) -> str:
    """Return the name of something for people."""
    if isinstance(found, Tool):
        return found.title
    toolkit = world.toolkits.get(found.name) if found.kind == "toolkit" else None
    return toolkit.label or found.name if toolkit is not None else found.name


# -- where it stands -------------------------------------------------------------------------------


def _standing_of(snapshot: Snapshot, found: Tool | Group, described: FoundTool) -> tuple[HitStanding, Reason | None]:
    """Return where something stands, and why it is denied, excluded or unavailable."""
    permissions, state = snapshot.permissions, snapshot.state
    if (denial := denial_of(permissions, found)) is not None:
        return "denied", denial
    plugins = permissions.world.catalog.plugins
    if isinstance(found, Tool):
        why = exclusion_reason(permissions, state, found)
        if why is not None and why.code == "narrowed_loadout":
            return "excluded", why
    elif (
        found.kind == "plugin" and state.loadout is not None and not may_bring(permissions, state, plugins[found.name])
    ):
        return "excluded", Reason(code="narrowed_loadout", text=exclusion_text(state.loadout))
    if described.status == "unavailable":
        where = plugins[described.plugin].place if described.plugin else None
        return "unavailable", Reason(code="unavailable", text=described.reason, where=where)
    return described.status, None


def _common_hits(
    services: Services, indexed: IndexedCatalog, permissions: Sequence[CompiledPermissions], query: str, limit: int
) -> Iterator[CommonHit]:
    """Yield what a text names, then what answers it; nothing that is far behind the best."""
    context = RankContext()
    ranked = services.ranker.rank((query,), indexed.among, context, limit=limit).hits
    ranked = [hit for hit in ranked if hit.score >= FAINT * ranked[0].score]
    parts = services.ranker.parts(query, indexed.among, context, [hit.found for hit in ranked])
    scored = {_key(hit.found): (hit, made) for hit, made in zip(ranked, parts, strict=True)}
    order: dict[tuple[NameKind, str], tuple[Subject, NameMatch | None]] = {}
    for named, match in indexed.names.find(query):
        order[named.kind, named.name] = (_subject(indexed.world, named), match)
    for hit in ranked:
        order.setdefault(_key(hit.found), (hit.found, None))
    for key, (found, match) in order.items():
        hit, made = scored.get(key, (None, ()))
        yield CommonHit(
            kind=key[0],
            name=key[1],
            plugin=found.plugin if isinstance(found, Tool) else found.name if found.kind == "plugin" else "",
            title=title_of(indexed.world, found),
            sentence=first_sentence(found.description),
            agents=sum(_may_use(one, found) for one in permissions),
            score=hit.score if hit is not None else None,
            parts=made,
            match=match,
        )


def _subject(world: World, named: NamedSubject) -> Subject:
    if named.tool is not None:
        return named.tool
    return whole_group(world, "toolkit" if named.kind == "toolkit" else "plugin", named.name)


def _may_use(permissions: CompiledPermissions, found: Subject) -> bool:
    """Return whether an agent may use something that may have gone since it was indexed."""
    if isinstance(found, Tool) or found.kind == "toolkit" or found.name in permissions.world.catalog.plugins:
        return denial_of(permissions, found) is None
    return False


def _key(found: Subject) -> tuple[NameKind, str]:
    return ("tool", found.wire) if isinstance(found, Tool) else (found.kind, found.name)


async def who_may_use(services: Services, agents: Iterable[str], name: str) -> tuple[AgentPermission, ...]:
    """Return for each agent whether it may use something, and what would permit it; nothing for an unknown name."""
    await services.compiler.refresh()
    found = subject_of(services.world, name)
    if found is None:
        return ()
    found_for = (_permission(services.compiler.permissions_of_agent(agent), found) for agent in agents)
    return mask_value(tuple(found_for), await shown_names(services))


def _permission(permissions: CompiledPermissions, found: Subject) -> AgentPermission:
    denial = denial_of(permissions, found)
    decisive = denial
    if denial is None and isinstance(found, Tool):
        decisive = permissions.decide(found).reasons[0]
    return AgentPermission(
        agent=permissions.agent.name,
        permitted=denial is None,
        reason=plain_reason(decisive) if decisive is not None else None,
        fixes=fixes_of(permissions, found),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedCatalog:
    """Everything that a world has, of which the ranker has an index, and its names."""

    world: World
    among: Searchable
    names: NearNames


class WholeCatalog:
    """The index over everything of a board; it follows the catalog."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._indexed: IndexedCatalog | None = None
        self._making = BackgroundComputations[tuple[int, int, int], IndexedCatalog](
            "index everything", "could not index everything"
        )
        self._preparing = BackgroundComputations[Searchable, bool]("index a part", "could not index a part")

    async def indexed(self) -> IndexedCatalog | None:
        """Return everything that there is now; None while it is indexed for the first time and that takes long."""
        world, known, names = self._services.world, self._indexed, await shown_names(self._services)
        if known is not None and _is_same_world(known.world, world) and known.names.names.is_like(names):
            await self._services.ranker.prepare(known.among)
            return known
        key = id(world.catalog), id(world.toolkits), id(names.forms)
        return await self._making.value_within(
            SOON if known is None else None, key, partial(self._make_index, world, names)
        )

    async def is_prepared(self, among: Searchable) -> bool:
        """Return whether a part of it can be searched; waits a moment where that is indexed for the first time."""
        return bool(await self._preparing.value_within(SOON, among, partial(self._prepare_ranker, among)))

    async def aclose(self) -> None:
        """End what is being indexed; no one is told."""
        await self._making.aclose()
        await self._preparing.aclose()

    async def _make_index(self, world: World, names: ShownNames) -> IndexedCatalog:
        made = await asyncio.to_thread(_index_world, world, names)
        await self._services.ranker.prepare(made.among)
        if self._indexed is None or _is_same_world(world, self._services.world):
            self._indexed = made
        return made

    async def _prepare_ranker(self, among: Searchable) -> bool:
        await self._services.ranker.prepare(among)
        return True


def _is_same_world(one: World, other: World) -> bool:
    return one.catalog is other.catalog and one.toolkits is other.toolkits


def _index_world(world: World, names: ShownNames) -> IndexedCatalog:
    return IndexedCatalog(world=world, among=all_searchable(world), names=NearNames(world, names))
