"""Switches and pauses of several agents that are set together, all or none, and taken back together (P2, P4)."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pegboard.board.permissions import (
    GRANTS,
    ask_and_require_switch,
    first_agent_granted_more,
    may_not_grant,
    require_name,
)
from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.core.access.switches import NOTHING_PAUSED, is_paused, other_spellings
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.errors import UsageError
from pegboard.ports import AuditRecord, SessionKey, SwitchAction, SwitchChange, SwitchKind

_HINT: Final = "Look at its current state, and decide again."


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """One switch or pause for several agents: what it is to be, and what that changes of what is stored.

    ``name`` and ``value`` are those of ``SwitchChange``. ``seen`` differs wherever any stored switch in question, or
    which agents there are, differs.
    """

    agents: tuple[str, ...]
    kind: SwitchKind
    name: str
    value: bool | None
    changes: tuple[SwitchChange, ...]

    @property
    def digest_seen(self) -> str:
        """Return what the person who decides hands back, so that nothing is set on what they no longer see."""
        changes = [(one.agent, one.name, one.value, one.expected) for one in self.changes]
        text = json.dumps([self.agents, self.kind, self.name, self.value, changes])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


async def plan_switch(services: Services, agents: Sequence[str], name: str, value: bool | None) -> SwitchPlan:
    """Return what a switch for several agents would change of what is stored; nothing is changed.

    ``value`` None takes the stored switches back. Raises ``UsageError`` where the name means nothing known.
    """
    for agent in agents:
        await ask_and_require_switch(services, agent, name, value)
    stored = (await services.store.stored_permissions()).switches
    changes = (change for agent in agents for change in _changes(services, agent, stored.get(agent, {}), name, value))
    return SwitchPlan(agents=tuple(agents), kind="switch", name=name, value=value, changes=tuple(changes))


async def planned_pause(services: Services, agents: Sequence[str], plugin: str | None, *, on: bool) -> SwitchPlan:
    """Return what a pause of agents, or of a plugin for them, or the end of it, would change; nothing is changed.

    ``plugin`` None is all that they may use. Resumed, every switch counts as before. Raises ``UsageError`` where there
    is no such plugin.
    """
    for agent in agents:
        agent_of(services.world, agent)
    plugins = services.world.catalog.plugins
    if plugin is not None and on and plugin not in plugins:
        raise UsageError(
            f"There is no server or plugin '{one_line(plugin, limit=100)}'.",
            code="unknown_name",
            hint=did_you_mean(plugin, plugins),
        )
    paused, value = (await services.store.stored_permissions()).pauses, False if on else None
    kind: SwitchKind = "agent_pause" if plugin is None else "plugin_pause"
    changes = tuple(
        SwitchChange(agent=agent, name=plugin or "", value=value, expected=None if on else False, kind=kind)
        for agent in agents
        if is_paused(paused.get(agent, NOTHING_PAUSED), plugin) is not on
    )
    return SwitchPlan(agents=tuple(agents), kind=kind, name=plugin or "", value=value, changes=changes)


def _changes(
    services: Services, agent: str, stored: Mapping[str, bool], name: str, value: bool | None
) -> Iterator[SwitchChange]:
    others = other_spellings(services.world, name, stored)
    if stored.get(name) is not value or others:
        yield SwitchChange(agent=agent, name=name, value=value, expected=stored.get(name))
    yield from (SwitchChange(agent=agent, name=other, value=None, expected=stored[other]) for other in others)


async def apply_plan(
    services: Services, plan: SwitchPlan, *, by: str, seen: str | None = None, may_grant: bool = True
) -> SwitchAction:
    """Set what was planned, all or nothing, in one transaction with one record for each agent (X4).

    ``seen`` is that of the plan that whoever decides was shown, None is any; ``may_grant`` is whether it may grant what
    the file does not. What is returned has the mark that its records have in common. Raises ``UsageError``:
    ``switch_changed`` where someone else was first, ``right_required`` where it may not grant.
    """
    require_name(by)
    if seen is not None and seen != plan.digest_seen:
        raise _switch_changed_error()
    action = _action(plan.name, by, plan.changes)
    await _store(services, action, f"together {action.mark}", may_grant=may_grant)
    return action


async def undo_action(
    services: Services, mark: str, *, by: str, agents: Collection[str] | None = None, may_grant: bool = True
) -> SwitchAction:
    """Restore what stood before an action, if all of it is still as that set it.

    ``agents`` are those whose switches whoever decides may set, None is every one. What is returned is an action of its
    own, which can be taken back as well. Raises ``UsageError``: ``unknown_name`` where no such action is kept,
    ``switch_changed`` where one of its switches was set meanwhile, ``right_required`` where it may not grant.
    """
    require_name(by)
    found = next((one for one in await services.store.switch_actions() if one.mark == mark), None)
    if found is None or (agents is not None and any(one.agent not in agents for one in found.changes)):
        raise UsageError(
            f"There is no action '{one_line(mark, limit=40)}' to undo.",
            code="unknown_name",
            hint="The newest 200 are kept.",
        )
    changes = tuple(replace(one, value=one.expected, expected=one.value) for one in found.changes)
    action = _action(mark, by, changes)
    await _store(services, action, f"together {action.mark}, undoes {mark}", may_grant=may_grant)
    return action


async def last_standing(services: Services, agents: Collection[str]) -> Mapping[str, SwitchAction]:
    """Return by switch the newest action of each, over these agents alone, that could be taken back now."""
    stored = (await services.store.stored_permissions()).switches
    found: dict[str, SwitchAction] = {}
    for action in await services.store.switch_actions():
        if (
            action.kind == "switch"
            and action.subject not in found
            and all(
                one.agent in agents and stored.get(one.agent, {}).get(one.name) is one.value for one in action.changes
            )
        ):
            found[action.subject] = action
    return found


def _action(subject: str, by: str, changes: Sequence[SwitchChange]) -> SwitchAction:
    return SwitchAction(mark=secrets.token_hex(6), subject=subject, at=time.time(), by=by, changes=changes)


async def _store(services: Services, action: SwitchAction, reason: str, *, may_grant: bool) -> None:
    if not action.changes:
        return
    if (whose := await first_agent_granted_more(services, action.changes)) is not None:
        if not may_grant:
            raise may_not_grant(whose, action.subject, action.by)
        reason = f"{reason}. {GRANTS}"
    records = [_record(services, one, reason, action.by) for one in action.changes]
    if not await services.store.set_together(action, audit=records):
        raise _switch_changed_error()
    for one in action.changes:
        subject = one.name or one.agent
        services.events.emit("permissions_changed", {"agent": one.agent, "subject": subject, "by": action.by})


def _record(services: Services, change: SwitchChange, reason: str, by: str) -> AuditRecord:
    key = SessionKey(principal="local", agent=change.agent, session="")
    name, state = change.name or change.agent, "unset" if change.value is None else "on" if change.value else "off"
    if change.kind != "switch":
        state = "resumed" if change.value is None else "paused"
    return services.recorder.entry(key, 0, "permission", name, state, reason=reason, by=by)


def _switch_changed_error() -> UsageError:
    return UsageError(
        "One of these switches, or the list of agents, was changed in the meantime; nothing was changed.",
        code="switch_changed",
        hint=_HINT,
    )
