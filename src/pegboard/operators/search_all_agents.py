"""Search everything without an agent in mind, and who may use what was found (P3, F5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.views.check_input import checked_search
from pegboard.board.views.search import FAINT
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.plain_reasons import PlainReason, plain_reason
from pegboard.core.model.agents import World
from pegboard.core.model.naming import first_sentence
from pegboard.core.model.tools import Tool
from pegboard.operators.fixes import Fix, fixes_of
from pegboard.operators.groups import Subject, subject_of, whole_group
from pegboard.operators.near_names import Named, NameKind, NameMatch
from pegboard.operators.reasons import denial_of
from pegboard.operators.search import MOST, masked_parts, title_of
from pegboard.operators.whole_catalog import Indexed, WholeCatalog
from pegboard.ports import RankContext, ScorePart


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
    name: str
    plugin: str
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

    agent: str
    permitted: bool
    reason: PlainReason | None
    fixes: tuple[Fix, ...]


async def find_for_all(
    services: Services, whole: WholeCatalog, agents: Sequence[str], query: str, *, limit: int
) -> CommonAnswer:
    """Return what answers a text, whoever may use it; see :meth:`Operations.search_all`."""
    needs = checked_search((query,), limit, None)
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    indexed = await whole.indexed()
    shown, tools = services.masker.text(query), len(services.world.catalog)
    if indexed is None or not query.strip():
        return CommonAnswer(query=shown, agents=len(agents), indexing=indexed is None, tools=tools)
    permissions = [services.compiler.of_agent(agent) for agent in agents]
    hits = tuple(_hits(services, indexed, permissions, query, min(needs.limit, MOST)))
    return CommonAnswer(query=shown, agents=len(agents), hits=hits, tools=tools)


async def who_may_use(services: Services, agents: Iterable[str], name: str) -> tuple[AgentPermission, ...]:
    """Return of each agent whether it may use something; see :meth:`Operations.who_may_use`."""
    await services.compiler.refresh()
    found = subject_of(services.world, name)
    if found is None:
        return ()
    return tuple(_permission(services, services.compiler.of_agent(agent), found) for agent in agents)


def _permission(services: Services, permissions: CompiledPermissions, found: Subject) -> AgentPermission:
    denial, masker = denial_of(permissions, found), services.masker
    decisive = denial
    if denial is None and isinstance(found, Tool):
        decisive = permissions.decide(found).reasons[0]
    return AgentPermission(
        agent=permissions.agent.name,
        permitted=denial is None,
        reason=plain_reason(decisive, masker) if decisive is not None else None,
        fixes=fixes_of(permissions, found, masker),
    )


def _hits(
    services: Services, indexed: Indexed, permissions: Sequence[CompiledPermissions], query: str, limit: int
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
            title=services.masker.text(title_of(indexed.world, found)),
            sentence=services.masker.text(first_sentence(found.description)),
            agents=sum(_permits(one, found) for one in permissions),
            score=hit.score if hit is not None else None,
            parts=masked_parts(made, services.masker),
            match=match,
        )


def _subject(world: World, named: Named) -> Subject:
    if named.tool is not None:
        return named.tool
    return whole_group(world, "toolkit" if named.kind == "toolkit" else "plugin", named.name)


def _permits(permissions: CompiledPermissions, found: Subject) -> bool:
    """Return whether an agent may use something that may have gone since it was indexed."""
    if isinstance(found, Tool) or found.kind == "toolkit" or found.name in permissions.world.catalog.plugins:
        return denial_of(permissions, found) is None
    return False


def _key(found: Subject) -> tuple[NameKind, str]:
    return ("tool", found.wire) if isinstance(found, Tool) else (found.kind, found.name)
