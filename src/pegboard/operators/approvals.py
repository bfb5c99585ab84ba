"""What operators see of approvals: what waits, what was allowed and still counts, what has ended (A1–A3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from pegboard.board.services import Services
from pegboard.core.access.approvals.approval import (
    MAY_LAST,
    Approval,
    ApprovalKind,
    ApprovalStatus,
    Binding,
    Decider,
    Lasting,
    next_end,
    unknown_approval,
    why_mismatch,
)
from pegboard.core.access.approvals.demands import rules_of
from pegboard.core.access.approvals.digests import binding_of
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.errors import PegboardError
from pegboard.operators.approval_rules import ProposedRule, RuleChoices, proposed_rule, rule_choices
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.schema_fields import (
    FieldOverview,
    FieldProblem,
    field_problems,
    fields_of,
    properties_of,
    text_of,
    types_of,
    value_text,
)

NEWEST: Final = 5
"""How many of the calls that wait are named where they are counted."""
TOO_DEEP: Final = "It is nested too deeply to be shown."
Sees = Callable[[str], bool]
"""Whether an operator sees an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentOverview:
    """One argument of a call: its value as text, and what the tool's schema has of it.

    Attributes:
        name: its name.
        title: its title, or nothing.
        description: what it is for, or nothing.
        type: the JSON types that it may have, or nothing.
        text: its value: a string as it is, anything else as indented JSON.
        structured: whether the text is JSON of more than one value.
    """

    name: str
    title: str
    description: str
    type: str
    text: str
    structured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOverview:
    """An approval as operators see it, secrets masked.

    Attributes:
        id: its name.
        tool: the wire name of the tool.
        plugin: the plugin of the tool.
        title: the title of the tool, or nothing.
        description: what the tool does, or nothing where the tool is not known now.
        read_only: whether its source says that it changes nothing; None where it does not say.
        destructive: the same of destroying something.
        open_world: the same of reaching beyond a closed domain.
        kind: ``confirm``, ``user_input`` or ``external``.
        status: waiting, allowed, refused, used or expired.
        lasts: whether the answer is for this call once, for the session, or always.
        may_last: what it can be allowed for; none where it is not answered here.
        reason: what demands it.
        where: where the configuration names the plugin, or nothing.
        outdated: why it no longer counts although it has not ended, or nothing.
        principal: whose call it is.
        agent: whose model made it.
        session: in which session.
        turn: in which turn.
        arguments: those of the call; none once it is used.
        fields: what a person fills in.
        asked_at: when it was asked for, in seconds since the epoch.
        expires_at: from when on it does not count; None is never.
        decided_at: when it was answered, or None.
        by: who did that.
        elicited: whether that was the user of the client of the call, whom the client asked.
        decider: who may answer it: an operator, or the user of the client, too.
        message: what they said to it.
    """

    id: Verbatim
    tool: Name
    plugin: Name
    title: str
    description: str
    read_only: bool | None
    destructive: bool | None
    open_world: bool | None
    kind: ApprovalKind
    status: ApprovalStatus
    lasts: Lasting
    may_last: tuple[Lasting, ...]
    reason: str
    where: Verbatim
    outdated: str
    principal: Name
    agent: Name
    session: Name
    turn: int
    arguments: tuple[ArgumentOverview, ...]
    fields: tuple[FieldOverview, ...]
    asked_at: float
    expires_at: float | None
    decided_at: float | None
    by: Name
    elicited: bool
    decider: Decider
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApprovals:
    """The approvals of which something may still come, the newest first.

    ``waiting`` are calls that wait for an answer, at most as many as were asked for of ``waiting_total``; ``allowed``
    calls that may run once, ``standing`` the answers that let every call of a tool run. ``next_end`` is when the
    first of them expires, in seconds since the epoch, or None.
    """

    waiting: tuple[ApprovalOverview, ...]
    waiting_total: int
    allowed: tuple[ApprovalOverview, ...]
    standing: tuple[ApprovalOverview, ...]
    next_end: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCalls:
    """How many calls wait for an answer.

    ``next_end`` is when the first of them expires, in seconds, or None; ``newest`` are the ids of the newest.
    """

    count: int = 0
    next_end: float | None = None
    newest: tuple[Verbatim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedApprovals:
    """Approvals that were refused, are used or have expired, the newest first, of ``total`` in all."""

    rows: tuple[ApprovalOverview, ...]
    total: int


def _sees_all(_agent: str) -> bool:
    return True


class OperatorApprovals:
    """The approvals of every session, as operators see them: only those of agents that ``sees`` says they see."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def open(self, sees: Sees = _sees_all, *, offset: int = 0, limit: int = 50) -> OpenApprovals:
        """Return what waits, ``limit`` of it behind ``offset``, and what was allowed; raises ``StoreError``."""
        store = self._services.store
        found = [one for one in await store.approvals(open_at=store.clock()) if sees(one.binding.agent)]
        waiting = [one for one in found if one.status == "waiting"]
        allowed = [one for one in found if one.status == "allowed"]
        return OpenApprovals(
            waiting=await self._overviews(waiting[offset : offset + limit]),
            waiting_total=len(waiting),
            allowed=await self._overviews(one for one in allowed if one.lasts == "once"),
            standing=await self._overviews(one for one in allowed if one.lasts != "once"),
            next_end=next_end(found),
        )

    async def ended(self, sees: Sees = _sees_all, *, offset: int = 0, limit: int = 50) -> EndedApprovals:
        """Return what has ended, kept for a day after it would have expired; raises ``StoreError``."""
        now = self._services.store.clock()
        every = (one.as_of(now) for one in await self._services.store.approvals())
        found = [one for one in every if not one.open and sees(one.binding.agent)]
        return EndedApprovals(rows=await self._overviews(found[offset : offset + limit]), total=len(found))

    async def one(self, approval_id: str, sees: Sees = _sees_all) -> ApprovalOverview:
        """Return one approval; raises ``UsageError`` where there is none, or none that is seen."""
        (found,) = await self._overviews([await self._find_approval(approval_id, sees)])
        return found

    async def field_problems(
        self, approval_id: str, given: JsonObject, sees: Sees = _sees_all
    ) -> tuple[FieldProblem, ...]:
        """Return what is wrong with what was filled in, each field for itself; raises ``UsageError`` as ``one``."""
        services, found = self._services, await self._find_approval(approval_id, sees)
        problems = await field_problems(services, found.tool, found.fields, given)
        return mask_value(problems, await shown_names(services))

    async def waiting(self, sees: Sees = _sees_all) -> WaitingCalls:
        """Return how many calls wait for an answer; raises ``StoreError``."""
        found = await self._services.store.approvals(open_at=self._services.store.clock())
        waiting = [one for one in found if one.status == "waiting" and sees(one.binding.agent)]
        newest = tuple(one.id for one in waiting[:NEWEST])
        return WaitingCalls(count=len(waiting), next_end=next_end(waiting), newest=newest)

    async def rule_choices(self, approval_id: str, sees: Sees = _sees_all) -> RuleChoices:
        """Return what can be made of the rule that asked about a call; raises ``UsageError`` as ``one``."""
        found = rule_choices(self._services, await self._find_approval(approval_id, sees))
        return mask_value(found, await shown_names(self._services))

    async def proposed_rule(
        self, approval_id: str, argument: str, pattern: str, sees: Sees = _sees_all
    ) -> ProposedRule:
        """Return a rule about calls like one; raises ``UsageError`` as ``one``, and where it cannot be one."""
        return proposed_rule(self._services, await self._find_approval(approval_id, sees), argument, pattern)

    async def _find_approval(self, approval_id: str, sees: Sees) -> Approval:
        found = await self._services.store.approval(approval_id)
        if found is None or not sees(found.binding.agent):
            raise unknown_approval(approval_id)
        return found.as_of(self._services.store.clock())

    async def _overviews(self, approvals: Iterable[Approval]) -> tuple[ApprovalOverview, ...]:
        key = await self._services.store.digest_key()
        found = tuple(_overview(self._services, one, key) for one in approvals)
        return mask_value(found, await shown_names(self._services))


def _overview(services: Services, approval: Approval, key: bytes) -> ApprovalOverview:
    own = approval.binding
    plugin, _, _ = own.tool.partition("/")
    catalog = services.world.catalog
    tool, home = catalog.by_id(own.tool), catalog.plugins.get(plugin)
    hints: JsonObject = tool.annotations if tool is not None else {}
    return ApprovalOverview(
        id=approval.id,
        tool=approval.tool,
        plugin=plugin,
        title=tool.stated_title if tool is not None else "",
        description=tool.description if tool is not None else "",
        read_only=_flag(hints, "readOnlyHint"),
        destructive=_flag(hints, "destructiveHint"),
        open_world=_flag(hints, "openWorldHint"),
        kind=approval.kind,
        status=approval.status,
        lasts=approval.lasts,
        may_last=MAY_LAST[approval.kind],
        reason=approval.reason,
        where=str(home.place) if home is not None and home.place is not None else "",
        outdated=_why_outdated(services, approval, tool, key) if approval.open else "",
        principal=own.principal,
        agent=own.agent,
        session=own.session,
        turn=approval.turn,
        arguments=_arguments(services, approval, tool),
        fields=tuple(fields_of(approval.fields)),
        asked_at=approval.asked_at,
        expires_at=approval.expires_at,
        decided_at=approval.decided_at,
        by=approval.by,
        elicited=approval.elicited,
        decider=approval.decider,
        message=approval.message,
    )


def _flag(hints: JsonObject, name: str) -> bool | None:
    found = hints.get(name)
    return found if isinstance(found, bool) else None


def _why_outdated(services: Services, approval: Approval, tool: Tool | None, key: bytes) -> str:
    """Return why an approval counts for no call any longer; nothing where the tool is not known now."""
    if tool is None:
        return ""
    return why_mismatch(approval, _bound_now(services, approval, tool, key))


def _bound_now(services: Services, approval: Approval, tool: Tool, key: bytes) -> Binding:
    """Return what an approval of the call is bound to now: as this one is, where that is so under some settings."""
    plugin, spec = services.world.catalog.plugins[tool.plugin], services.loader.specs[tool.plugin]
    rules = rules_of(plugin, spec, tool, services.pins.claims_of(plugin.name))
    own, asked, in_force = approval.binding, approval.asked, rules.in_force if rules is not None else EMPTY
    try:
        fingerprint = services.loader.source_of(spec).fingerprint(spec)
    except PegboardError:
        rules, fingerprint = None, ""
    variants = ("", *plugin.variants)
    later = services.pins.later_digest(tool)
    bound = [binding_of(key, own, tool, asked, in_force, variant, fingerprint, later=later) for variant in variants]
    same = (one for one in bound if rules is not None and one.rules == own.rules)
    return next(same, replace(bound[0], rules=""))


def _arguments(services: Services, approval: Approval, tool: Tool | None) -> tuple[ArgumentOverview, ...]:
    """Return the arguments of a call, in its order; what is nested too deeply to be shown is reported as that."""
    properties = properties_of(tool.input_schema if tool is not None else {}) | properties_of(approval.fields)
    try:
        harmless: JsonObject = services.masker.value(dict(approval.arguments))
        return tuple(_argument(name, value, properties.get(name, {})) for name, value in harmless.items())
    except RecursionError:
        return tuple(_argument(name, TOO_DEEP, {}) for name in approval.arguments)


def _argument(name: str, value: Any, schema: JsonObject) -> ArgumentOverview:
    return ArgumentOverview(
        name=name,
        title=text_of(schema, "title"),
        description=text_of(schema, "description"),
        type=types_of(schema),
        text=value_text(value),
        structured=isinstance(value, dict | list),
    )
