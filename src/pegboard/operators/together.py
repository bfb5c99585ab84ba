"""What switches and pauses of several agents would change, summed over all of them, and setting them (P2, P4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pegboard.board.services import Services
from pegboard.board.switch_actions import SwitchPlan, apply_plan, plan_switch, planned_pause, undo_action
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names
from pegboard.operators.switch_preview import SwitchPreview, SwitchPreviews
from pegboard.ports import SwitchAction

BulkSwitchKind = Literal["switch", "pause"]
"""A switch of a toolkit, plugin or tool; a pause of agents, or of a plugin for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSwitch:
    """What is to be set for several agents.

    Attributes:
        kind: a switch or a pause.
        name: of a switch the toolkit, plugin or tool; of a pause the plugin, nothing for all that the agents may use.
        value: on, off, or None to take the stored switches back; of a pause whether it begins.
        agents: the names of the agents.
    """

    kind: BulkSwitchKind
    name: str
    value: bool | None
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSwitchPreview:
    """What switches of several agents would change, all together.

    Attributes:
        kind: a switch or a pause.
        name: what is switched or paused.
        value: what it would be.
        agents: how many agents it is about.
        changed: the agents of which something stored changes, each with what that comes to.
        sessions: how many sessions change, all agents together.
        tokens_before: those of what is loaded in these sessions now.
        tokens_after: those of what is loaded in them then.
        grants: whether it grants one of these agents what the file does not, which takes the right `configure`.
        unchanged: how many other sessions these agents have.
        unreadable: how many there are whose stored state is damaged.
        seen: what is handed back with the decision, so that nothing is set on what has changed meanwhile.
    """

    kind: BulkSwitchKind
    name: Name
    value: bool | None
    agents: int
    changed: tuple[SwitchPreview, ...]
    sessions: int
    tokens_before: int
    tokens_after: int
    grants: bool
    unchanged: int
    unreadable: int
    seen: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkActionDone:
    """What was set together.

    Attributes:
        mark: what its records in the audit trail have in common, and what takes it back; nothing where all was so.
        subject: what was switched or paused, or the mark of what was taken back.
        agents: the agents of which something stored was changed.
    """

    mark: Verbatim
    subject: Name
    agents: tuple[Name, ...]


async def preview_for_agents(services: Services, previews: SwitchPreviews, wanted: BulkSwitch) -> BulkSwitchPreview:
    """Return what would change, over all agents; nothing is stored, asked for or started."""
    plan = await _plan(services, wanted)
    names = dict.fromkeys(one.agent for one in plan.changes)
    changed = [await previews.of_change(agent, plan.name, plan.value, plan.kind) for agent in names]
    sessions = [one for of_agent in changed for one in of_agent.sessions]
    found = BulkSwitchPreview(
        kind=wanted.kind,
        name=wanted.name,
        value=wanted.value,
        agents=len(wanted.agents),
        changed=(),
        sessions=len(sessions),
        tokens_before=sum(one.tokens_before for one in sessions),
        tokens_after=sum(one.tokens_after for one in sessions),
        grants=any(one.grants for one in changed),
        unchanged=sum(one.unchanged for one in changed),
        unreadable=sum(one.unreadable for one in changed),
        seen=plan.digest_seen,
    )
    # Those of one agent are masked already: a mark is no name to be marked again.
    return replace(mask_value(found, await shown_names(services)), changed=tuple(changed))


async def set_for_agents(
    services: Services, wanted: BulkSwitch, *, by: str, seen: str | None = None, may_grant: bool
) -> BulkActionDone:
    """Set it for all of these agents or for none, in one transaction.

    Args:
        seen: that of the preview that the person who decides was shown; None is any.

    Raises:
        UsageError: the name means nothing known; ``switch_changed`` where someone else was first; ``right_required``
            where it may not grant.
    """
    return await _describe_action(
        services, await apply_plan(services, await _plan(services, wanted), by=by, seen=seen, may_grant=may_grant)
    )


async def undo_for_agents(
    services: Services, mark: str, *, by: str, agents: frozenset[str] | None = None, may_grant: bool
) -> BulkActionDone:
    """Restore what stood before an action, if all of it still is as that set it.

    Args:
        agents: those that the operator sees; None is every one.

    Raises:
        UsageError: no such action is kept; ``switch_changed`` where one of its switches was set meanwhile;
            ``right_required`` where it may not grant.
    """
    return await _describe_action(
        services, await undo_action(services, mark, by=by, agents=agents, may_grant=may_grant)
    )


async def _plan(services: Services, wanted: BulkSwitch) -> SwitchPlan:
    if wanted.kind == "switch":
        return await plan_switch(services, wanted.agents, wanted.name, wanted.value)
    return await planned_pause(services, wanted.agents, wanted.name or None, on=wanted.value is True)


async def _describe_action(services: Services, action: SwitchAction) -> BulkActionDone:
    agents = tuple(dict.fromkeys(one.agent for one in action.changes))
    done = BulkActionDone(mark=action.mark if agents else "", subject=action.subject, agents=agents)
    return mask_value(done, await shown_names(services))
