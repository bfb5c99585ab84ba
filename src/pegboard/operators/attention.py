"""What needs a person, the most urgent first: calls, logins, servers, tools, edits, pauses, problems, budgets (F5).

Another subject is another function in ``SUBJECTS``; its place there is its rank.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.board.services import Services
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.access.switches import NOTHING_PAUSED
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject
from pegboard.operators.configuration import ConfigurationState, ShownProblem
from pegboard.operators.known_problems import BudgetUse, KnownProblems
from pegboard.operators.login_standing import may_be_used, standings
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.schema_fields import value_text
from pegboard.operators.servers import NotRunning, not_running, rules_without_effect

AttentionKind = Literal[
    "approval", "login", "server", "pin", "refused_edit", "waiting_edit", "pause", "problem", "budget", "hook", "store"
]
"""What an item is about."""
AttentionAction = Literal["decide", "log_in", "restart", "accept", "resume", "look"]
"""What helps: answer the call, log in, start the server again, accept the tools or the edit, resume, or look at it."""
DETAIL: Final = 300
"""How many characters of the arguments of a call an item has."""
NEARLY: Final = 0.9
"""From which part of a budget on someone should look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionItem:
    """Something that needs a person.

    Attributes:
        kind: what it is about.
        severity: how grave it is.
        subject: the tool, the server, the file or the agent; of a problem its plugin, or nothing.
        detail: whose call it is and its arguments, on one line; nothing of what is no call.
        text: what is the matter.
        hint: why, or what would help.
        since: since when, in seconds since the epoch, where that is known.
        until: when it ends by itself, or None.
        agent: whose call or budget it is, or nothing.
        id: the approval that is asked for, or nothing.
        place: where it is written, as ``file:line``, or nothing.
        action: what helps.
    """

    kind: AttentionKind
    severity: Literal["error", "warning", "waiting"]
    subject: Name = ""
    detail: str = ""
    text: str
    hint: str = ""
    since: float | None = None
    until: float | None = None
    agent: Name = ""
    id: Verbatim = ""
    place: Verbatim = ""
    action: AttentionAction = "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The most urgent items, of ``total`` in all; ``next_end`` is when the first of them ends by itself, or None."""

    items: tuple[AttentionItem, ...] = ()
    total: int = 0
    next_end: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFault:
    """A hook that does not take messages: its host, why, since when, how many messages were given up, and its place."""

    host: str
    why: str
    since: float
    dropped: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What subjects look at.

    Attributes:
        services: the services of the board.
        read: the newest reading of the configuration, with what is wrong with plugins.
        edits: what the newest edits would widen, which waits for a person, as texts.
        budgets: what agents' starts take of their budgets, as far as it is known.
        agents: the agents that the operator sees; None is every one, who sees servers and the configuration too.
        hooks: the hooks that do not take messages.
    """

    services: Services
    read: ConfigurationState
    edits: Sequence[str]
    budgets: Sequence[BudgetUse]
    agents: frozenset[str] | None
    hooks: Sequence[HookFault] = ()


Subject = Callable[[Situation], Awaitable[Sequence[AttentionItem]]]
"""Returns what of one subject needs a person, the most urgent first."""


async def find_attention(
    services: Services,
    known: KnownProblems,
    read: ConfigurationState,
    edits: Sequence[str],
    *,
    agents: frozenset[str] | None = None,
    hooks: Sequence[HookFault] = (),
    limit: int = 50,
) -> Attention:
    """Return what needs a person, the most urgent first (F5); the arguments are those of ``Situation``."""
    bounded = (name for name, agent in services.world.agents.items() if agent.budget)
    if agents is None or not agents.isdisjoint(bounded):
        read = await known.added_to(read)
    situation = Situation(services=services, read=read, edits=edits, budgets=known.budgets, agents=agents, hooks=hooks)
    subjects = SUBJECTS if situation.services.store_health.reachable else WITHOUT_STORE
    found = [item for subject in subjects for item in await subject(situation)]
    shown = mask_value(tuple(found[:limit]), await shown_names(situation.services))
    ends = (item.until for item in found if item.until is not None)
    return Attention(items=shown, total=len(found), next_end=min(ends, default=None))


async def lost_store(situation: Situation) -> Sequence[AttentionItem]:
    """Return that the store cannot be reached; where it is, those know who see all of the configuration."""
    health = situation.services.store_health
    return [
        AttentionItem(
            kind="store",
            severity="error",
            text=health.why if situation.agents is None else "The store cannot be reached now.",
            hint="Calls of loaded tools go on for a while; loads, switches and answers are refused until then.",
            since=health.lost_at,
        )
    ]


async def waiting_calls(situation: Situation) -> Sequence[AttentionItem]:
    """Return the calls that wait for an answer; the one that expires first comes first."""
    seen = situation.agents
    found = [
        AttentionItem(
            kind="approval",
            severity="waiting",
            subject=one.tool,
            detail=_call_line(situation.services, one),
            text=f"A call of '{one.tool}' by agent '{one.binding.agent}' waits for an answer.",
            hint=one.reason,
            since=one.asked_at,
            until=one.expires_at,
            agent=one.binding.agent,
            id=one.id,
            action="decide",
        )
        for one in await situation.services.store.approvals(open_at=situation.services.store.clock())
        if one.status == "waiting" and (seen is None or one.binding.agent in seen)
    ]
    return sorted(found, key=lambda item: (item.until is None, item.until or 0.0, item.since or 0.0))


def _call_line(services: Services, approval: Approval) -> str:
    """Return who calls with which arguments, secrets masked, on one line."""
    who = f"{approval.binding.agent}, {approval.binding.principal}"
    try:
        given: JsonObject = services.masker.value(dict(approval.arguments))
        arguments = ", ".join(f"{name}: {one_line(value_text(value), limit=120)}" for name, value in given.items())
    except RecursionError:
        arguments = ", ".join(approval.arguments)
    return one_line(f"{who}: {arguments}" if arguments else who, limit=DETAIL)


async def missing_logins(situation: Situation) -> Sequence[AttentionItem]:
    """Return the servers that want a login which no one has, of those that the operator's agents may use (G11)."""
    services = situation.services
    needing = [name for name, one in (await standings(services)).items() if one.login == "needed"]
    return [
        AttentionItem(
            kind="login",
            severity="waiting",
            subject=name,
            text=f"Server '{name}' needs a login; no user has logged in.",
            place=str(services.loader.specs[name].place or ""),
            action="log_in",
        )
        for name in needing
        if may_be_used(services, name, situation.agents)
    ]


async def servers_down(situation: Situation) -> Sequence[AttentionItem]:
    """Return the servers that do not run although they should."""
    if situation.agents is not None:
        return ()
    return [
        AttentionItem(
            kind="server",
            severity="error",
            subject=one.name,
            text=f"Server '{one.name}' {_PHASES[one.state]}.",
            hint=one.error,
            since=one.since,
            place=one.place,
            action="restart" if one.restartable else "look",
        )
        for one in not_running(situation.services)
    ]


_PHASES: Final = {"unavailable": "cannot run", "down": "is down", "backing_off": "is down and will be tried again"}


async def waiting_tools(situation: Situation) -> Sequence[AttentionItem]:
    """Return the servers of which tools wait, since they changed or are new (A4)."""
    if situation.agents is not None:
        return ()
    return [
        AttentionItem(
            kind="pin",
            severity="waiting",
            subject=plugin.name,
            text=f"{count:,} {'tool' if count == 1 else 'tools'} of server '{plugin.name}'"
            f" {'waits' if count == 1 else 'wait'} for a person and cannot be used until then.",
            hint=plugin.unreviewed.text,
            place=str(plugin.place or ""),
            action="accept",
        )
        for plugin in situation.services.world.catalog.plugins.values()
        if (count := plugin.unreviewed.count)
    ]


async def edits(situation: Situation) -> Sequence[AttentionItem]:
    """Return the newest edit, where it was refused, and what of it waits for a person."""
    read, waiting = situation.read, situation.edits
    if situation.agents is not None:
        return ()
    found: list[AttentionItem] = []
    if read.refused:
        errors = [problem for problem in read.problems if problem.severity == "error"] or list(read.problems)
        count = f"{len(errors)} {'error' if len(errors) == 1 else 'errors'}"
        first = errors[0] if errors else None
        found.append(
            AttentionItem(
                kind="refused_edit",
                severity="error",
                subject=read.file,
                text=f"The newest edit is refused: it has {count}. The last good configuration stays in force.",
                hint=f"{first.message} {first.hint}".strip() if first is not None else "",
                since=read.read_at,
                place=_place_text(first.file, first.line) if first is not None else read.file,
            )
        )
    if waiting:
        count = f"{len(waiting)} {'change' if len(waiting) == 1 else 'changes'}"
        found.append(
            AttentionItem(
                kind="waiting_edit",
                severity="waiting",
                subject=read.file,
                text=f"{count} of the configuration would grant more, and"
                f" {'waits' if len(waiting) == 1 else 'wait'} to be accepted.",
                hint=waiting[0],
                since=read.read_at,
                action="accept",
            )
        )
    return found


async def pauses(situation: Situation) -> Sequence[AttentionItem]:
    """Return the agents that are paused, and the servers and plugins that are for some agents."""
    stored, seen = (await situation.services.store.stored_permissions()).pauses, situation.agents
    agents = [name for name in situation.services.world.agents if seen is None or name in seen]
    paused = {agent: stored.get(agent, NOTHING_PAUSED) for agent in agents}
    plugins = dict.fromkeys(name for one in paused.values() for name in sorted(one.plugins))
    found = [
        AttentionItem(
            kind="pause",
            severity="waiting",
            subject=agent,
            text=f"Agent '{agent}' is paused: none of its tools can be called.",
            agent=agent,
            action="resume",
        )
        for agent, one in paused.items()
        if one.agent
    ]
    for name in plugins:
        count = sum(name in one.plugins for one in paused.values())
        text = f"'{name}' is paused for {count} of {len(agents)} {'agent' if len(agents) == 1 else 'agents'}."
        found.append(AttentionItem(kind="pause", severity="waiting", subject=name, text=text, action="resume"))
    return found


async def problems(situation: Situation) -> Sequence[AttentionItem]:
    """Return what `pegboard check` warns of, without servers that do not run and tools that wait; errors first."""
    if situation.agents is not None:
        return ()
    down, read = tuple(not_running(situation.services)), situation.read
    found = [*(() if read.refused else read.problems), *read.of_plugins]
    return [
        AttentionItem(
            kind="problem",
            severity=one.severity,
            text=one.message,
            hint=one.hint,
            place=_place_text(one.file, one.line),
        )
        for one in sorted(found, key=lambda one: one.severity)
        if one.code not in ("pin_waits", "needs_login") and not _is_said_of(down, one)
    ]


def _is_said_of(down: Sequence[NotRunning], problem: ShownProblem) -> bool:
    """Return whether a problem is why one of these servers does not run, which is an item already."""
    if problem.code not in ("unavailable", "env_missing"):
        return False
    return any(
        f"{problem.path}.".startswith(f"servers.{one.name}.") or (one.error and one.error in problem.message)
        for one in down
    )


async def idle_rules(situation: Situation) -> Sequence[AttentionItem]:
    """Return the rules of plugins that name none of their tools (G10)."""
    if situation.agents is not None:
        return ()
    return [
        AttentionItem(
            kind="problem",
            severity="warning",
            subject=one.plugin,
            text=f"Plugin '{one.plugin}': {one.text}",
            place=one.place,
        )
        for one in rules_without_effect(situation.services)
    ]


async def budgets(situation: Situation) -> Sequence[AttentionItem]:
    """Return the agents whose start nearly takes their budget; those that exceed it are among the problems."""
    seen = situation.agents
    found = [one for one in situation.budgets if seen is None or one.agent in seen]
    return [
        AttentionItem(
            kind="budget",
            severity="warning",
            subject=one.agent,
            text=f"The start of agent '{one.agent}' takes {one.share:.0%} of its budget: {one.text}.",
            hint="Raise it, or have less loaded from the start.",
            agent=one.agent,
            place=one.place,
        )
        for one in sorted(found, key=lambda one: -one.share)
        if NEARLY <= one.share <= 1 or (seen is not None and one.share > 1)
    ]


async def hooks(situation: Situation) -> Sequence[AttentionItem]:
    """Return the hooks that do not take messages."""
    if situation.agents is not None:
        return ()
    return [
        AttentionItem(
            kind="hook",
            severity="warning",
            subject=one.host,
            text=f"Messages about waiting calls do not reach '{one.host}': {one.why}.",
            hint=f"Messages given up: {one.dropped:,}." if one.dropped else "",
            since=one.since,
            place=one.place,
        )
        for one in situation.hooks
    ]


def _place_text(file: str, line: int | None) -> str:
    return f"{file}:{line}" if file and line else file


SUBJECTS: Final[tuple[Subject, ...]] = (
    waiting_calls,
    missing_logins,
    servers_down,
    waiting_tools,
    edits,
    pauses,
    problems,
    idle_rules,
    hooks,
    budgets,
)
"""What may need a person, by rank."""
WITHOUT_STORE: Final[tuple[Subject, ...]] = (lost_store, servers_down, waiting_tools, edits, hooks)
"""What is known of it while the store cannot be reached."""
