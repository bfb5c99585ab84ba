"""What the palette finds: pages, agents, tools, sessions and servers, and what can be done with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.templating import query
from pegboard.core.model.naming import one_line
from pegboard.operators.masked import Name, Verbatim
from pegboard.operators.search import CommonHit, SearchHit
from pegboard.operators.servers import server_states
from pegboard.operators.sessions import list_sessions

EntryKind = Literal["page", "agent", "session", "server", "tool", "toolkit", "plugin", "action"]
MOST: Final = 24
"""How much is found at most."""
_TOOLS: Final = 8
_OTHERS: Final = 5
_DETAIL: Final = 300
"""Characters of what a tool says of itself that are shown."""
_TRY: Final = "/console/try"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntry:
    """One thing that was found.

    Attributes:
        kind: what it is; an ``action`` is done on the page that the address opens, which asks first.
        label: what is in the list.
        detail: what else tells it from others, or nothing.
        address: the page of it.
        agent: the agent that it is about, or nothing.
        tool: the tool, toolkit or plugin that it is about, or nothing.
    """

    kind: EntryKind
    label: str
    detail: str = ""
    address: Verbatim
    agent: Name = ""
    tool: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPages:
    """What answers a text; ``indexing`` is whether tools are still being indexed, so that some may be missing."""

    text: str
    entries: tuple[FoundEntry, ...]
    indexing: bool = False


async def find(context: Context, visit: OperatorRequest, text: str) -> FoundPages:
    """Return what answers a text, as someone types it; "coder send mail" is about an agent and a need."""
    words = " ".join(text.split())
    if not words:
        return FoundPages(text="", entries=tuple(_pages(context, visit, "")))
    agent, need = _agent_in(context.shown_agents(visit), words)
    entries: list[FoundEntry] = []
    indexing = False
    if agent:
        entries += _of_agent(agent, visit)
    if agent and need:
        hits, indexing = await _for_agent(context, visit, agent, need)
        entries = [*hits, *entries]
    else:
        entries += _pages(context, visit, words)
        named = (one for one in context.shown_agents(visit) if one != agent and _has_words(one, words))
        entries += (entry for one in named for entry in _of_agent(one, visit))
    entries += await _servers(context, visit, words)
    entries += await _sessions(context, visit, words)
    if not (agent and need):
        tools, indexing = await _tools(context, visit, words)
        entries += tools
    return FoundPages(text=words, entries=tuple(entries[:MOST]), indexing=indexing)


def _agent_in(agents: Sequence[str], words: str) -> tuple[str, str]:
    """Return the agent that a text names, the longest of several, and the rest of the text."""
    padded = f" {words.casefold()} "
    named = [one for one in agents if f" {one.casefold()} " in padded]
    if not named:
        return "", words
    agent = max(named, key=len)
    at = padded.index(f" {agent.casefold()} ")
    rest = f"{words[:at]} {words[at + len(agent) :]}"
    return agent, " ".join(rest.split())


def _has_words(name: str, words: str) -> bool:
    return all(word in name.casefold() for word in words.casefold().split())


def _pages(context: Context, visit: OperatorRequest, words: str) -> Iterator[FoundEntry]:
    for entry in context.templates.navigation(visit):
        if _has_words(f"{entry.title} {entry.words}", words):
            yield FoundEntry(kind="page", label=entry.title, detail="page", address=entry.address)


def _of_agent(name: str, visit: OperatorRequest) -> Iterator[FoundEntry]:
    address = query("/console/agent", agent=name)
    yield FoundEntry(kind="agent", label=name, detail="agent: its switches", address=address, agent=name)
    if "configure" in visit.operator.rights:
        edit = query("/console/edit/form", section="agents", name=name, back=address)
        label = f"Edit agent {name}"
        yield FoundEntry(kind="action", label=label, detail="its tools, budget, model …", address=edit, agent=name)


async def _servers(context: Context, visit: OperatorRequest, words: str) -> list[FoundEntry]:
    if visit.operator.agents is not None:
        return []
    states = await server_states(context.services, context.subjects.counting)
    found = [one for one in states if one.kind == "server" and _has_words(f"{one.name} server", words)][:_OTHERS]
    entries = [
        FoundEntry(
            kind="server",
            label=one.name,
            detail=f"server, {one.state.replace('_', ' ')}",
            address=query("/console/server", name=one.name),
            tool=one.name,
        )
        for one in found
    ]
    actions = [one for one in states if one.restartable and _has_words(f"restart {one.name} log", words)][:_OTHERS]
    return entries + [
        FoundEntry(
            kind="action",
            label=f"Restart {one.name}, or read its log",
            detail="server",
            address=query("/console/server", name=one.name),
            tool=one.name,
        )
        for one in actions
        if one not in found
    ]


async def _sessions(context: Context, visit: OperatorRequest, words: str) -> list[FoundEntry]:
    found = await list_sessions(
        context.services, context.subjects.counting, agents=visit.operator.agents, query=words, limit=_OTHERS
    )
    return [
        FoundEntry(
            kind="session",
            label=one.session or "without an id",
            detail=f"session of {one.agent}, {one.principal}",
            address=query("/console/session", principal=one.principal, agent=one.agent, session=one.session),
            agent=one.agent,
        )
        for one in found.rows
    ]


async def _tools(context: Context, visit: OperatorRequest, words: str) -> tuple[list[FoundEntry], bool]:
    """Return the tools that answer a text, whoever may use them."""
    agents = [agent.name for agent in context.agents(visit)]
    answer = await context.subjects.search.for_agents(agents, visit.names.meant(words), limit=_TOOLS)
    seen = [hit for hit in answer.hits if hit.agents or visit.operator.agents is None]
    return [entry for hit in seen[:_TOOLS] for entry in (_tool(hit), *_switch_entries(hit, visit))], answer.indexing


def _switch_entries(hit: CommonHit, visit: OperatorRequest) -> Iterator[FoundEntry]:
    """Yield the switch of a toolkit for every agent that the operator sees."""
    if hit.kind != "toolkit" or "switch" not in visit.operator.rights:
        return
    value = "off" if hit.agents else "on"
    whom = "everyone" if visit.operator.agents is None else "your agents"
    name = _subject(hit)
    yield FoundEntry(
        kind="action",
        label=f"Switch {hit.name} {value} for {whom} …",
        detail="shows what that changes first",
        address=query("/console/access/set", kind="switch", name=name, value=value, back="/console/access/matrix"),
        tool=hit.name,
    )


def _tool(hit: CommonHit) -> FoundEntry:
    return FoundEntry(
        kind=hit.kind,
        label=hit.name,
        detail=one_line(f"{hit.kind}: {hit.sentence}", limit=_DETAIL) if hit.sentence else hit.kind,
        address=query("/console/why", tool=_subject(hit)),
        tool=hit.name,
    )


def _subject(hit: SearchHit | CommonHit) -> str:
    """Return the name with which an address means a tool, a toolkit or a plugin and nothing else."""
    return hit.name if hit.kind == "tool" else f"{hit.kind}:{hit.name}"


async def _for_agent(context: Context, visit: OperatorRequest, agent: str, need: str) -> tuple[list[FoundEntry], bool]:
    """Return what can be done with the tools of which a text says what an agent should do with them."""
    name, meant = visit.names.meant(agent), visit.names.meant(need)
    answer = await context.subjects.search.for_agent(name, meant, limit=_TOOLS)
    hits = list({(hit.kind, hit.name): hit for hit in (*answer.names, *answer.hits, *answer.rest)}.values())
    first = [entry for hit in hits[:2] for entry in _actions(agent, hit, visit)]
    return first + [_entry_of_hit(agent, hit) for hit in hits[2:_TOOLS]], answer.indexing


def _entry_of_hit(agent: str, hit: SearchHit) -> FoundEntry:
    standing = hit.standing.replace("_", " ")
    return FoundEntry(
        kind=hit.kind,
        label=f"{agent}: {hit.name}",
        detail=one_line(f"{standing}: {hit.reason.text if hit.reason else 'why'}", limit=_DETAIL),
        address=query("/console/why", agent=agent, tool=_subject(hit)),
        agent=agent,
        tool=hit.name,
    )


def _actions(agent: str, hit: SearchHit, visit: OperatorRequest) -> Iterator[FoundEntry]:
    yield _entry_of_hit(agent, hit)
    if "switch" in visit.operator.rights:
        value = "off" if hit.permitted else "on"
        back = query("/console/agent", agent=agent, q=hit.name)
        yield FoundEntry(
            kind="action",
            label=f"Switch {hit.name} {value} for {agent} …",
            detail="shows what that changes first",
            address=query("/console/switch", agent=agent, name=f"{hit.kind}:{hit.name}", value=value, back=back),
            agent=agent,
            tool=hit.name,
        )
    if hit.kind == "tool" and "configure" in visit.operator.rights:
        yield FoundEntry(
            kind="action",
            label=f"Try {hit.name} as {agent}",
            address=query(_TRY, agent=agent, tool=hit.name),
            agent=agent,
            tool=hit.name,
        )
