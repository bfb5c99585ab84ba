"""Let an agent look at and change its own settings, within what its operator allows (§4, X4)."""

from __future__ import annotations

import json
from typing import Any, cast

from pegboard.board.calls.commands import apply_command
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read
from pegboard.core.access.names import lookup
from pegboard.core.access.settings.own_settings import OFF, SELF, VALUES, lease_of, own_settings, stored_value
from pegboard.core.model.labels import label_problem
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.state.commands import SetLoadout
from pegboard.core.state.narrowing import active_plugins

Answered = tuple[Snapshot, CallAnswer]
_LOADOUT = "loadout"


async def self_config(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
    """Return the session after a look at, or a change of, the agent's own settings, and the answer."""
    action, name = arguments["action"], arguments.get("name")
    if action == "show":
        return snapshot, await _shown(services, snapshot, tool)
    if problem := label_problem(name):
        return snapshot, answer("invalid_arguments", f"`name` {problem}", tool=tool)
    setting = name if name in (_LOADOUT, *VALUES) else "switches"
    if setting not in snapshot.permissions.agent.self_config:
        shown = one_line(str(name), limit=100)
        return snapshot, answer("refused", f"'{shown}' is not yours to change.", tool=tool)
    value = arguments.get("value") if action == "set" else None
    if action == "set" and value is None:
        return snapshot, answer("invalid_arguments", "`value` is missing.", tool=tool)
    if setting == _LOADOUT:
        return await _loadout(services, snapshot, tool, value)
    if setting == "switches":
        return await _switch(services, snapshot, tool, str(name), value)
    return await _value(services, snapshot, tool, setting, value)


async def _shown(services: Services, snapshot: Snapshot, tool: Tool) -> CallAnswer:
    permissions, agent = snapshot.permissions, snapshot.permissions.agent
    own = own_settings((await services.store.all_switches()).get(agent.name, {}))
    lease = None if agent.lease is None else str(agent.lease)
    document = {
        "switches": dict(permissions.switches.effective),
        "loadout": snapshot.state.loadout,
        "initial_toolkits": list(agent.initial_toolkits),
        "lease": lease,
        "set_by_yourself": {**dict.fromkeys(own.off, False), **own.values},
        "may_change": list(agent.self_config),
    }
    text = json.dumps(services.masker.value(document), ensure_ascii=False, sort_keys=True)
    return CallAnswer(status="ok", result=text_result(text), tool=tool)


async def _switch(services: Services, snapshot: Snapshot, tool: Tool, name: str, value: Any) -> Answered:
    """Take something away, or give back what the agent has taken away itself: it grants nothing."""
    if value is not None and not isinstance(value, bool):
        return snapshot, answer("invalid_arguments", "A switch is true or false.", tool=tool)
    agent, shown = snapshot.permissions.agent.name, one_line(name, limit=100)
    own = own_settings((await services.store.all_switches()).get(agent, {})).off
    if value is False:
        if lookup(snapshot.permissions, name) is None and name not in own:
            return snapshot, answer("not_found", f"'{shown}' was not found.", tool=tool)
        return await _stored(services, snapshot, tool, {f"{OFF}{name}": False}, f"'{shown}' is off.")
    if name in own:
        return await _stored(services, snapshot, tool, {f"{OFF}{name}": None}, f"'{shown}' is as it was given to you.")
    if value is None or lookup(snapshot.permissions, name) is not None:
        return snapshot, _done(tool, f"You have not taken '{shown}' away; nothing has changed.")
    return snapshot, answer("not_found", f"'{shown}' was not found.", tool=tool)


async def _value(services: Services, snapshot: Snapshot, tool: Tool, setting: str, value: Any) -> Answered:
    agent = snapshot.permissions.agent
    if value is not None and (fault := _unfit(snapshot, setting, value)):
        return snapshot, answer("invalid_arguments", fault, tool=tool)
    stored = (await services.store.all_switches()).get(agent.name, {})
    before = [name for name in stored if name.startswith(f"{SELF}{setting}:")]
    fresh = {stored_value(setting, value): True} if value is not None else {}
    changes = {**fresh, **{name: None for name in before if name not in fresh}}
    done = "is set" if value is not None else "is as your operator has it"
    return await _stored(services, snapshot, tool, changes, f"'{setting}' {done}.")


def _unfit(snapshot: Snapshot, setting: str, value: Any) -> str:
    """Return why a value cannot be set, or nothing."""
    if setting == "lease":
        fits = lease_of(value) is not None
        return "" if fits else "A lease is {kind: turn}, {kind: idle, turns: n} or {kind: unload}."
    allowed = snapshot.permissions.agent.allowed_toolkits
    if not isinstance(value, list) or not all(name in allowed for name in cast("list[Any]", value)):
        return f"Initial toolkits are a list of those that you may load: {', '.join(allowed) or 'none'}."
    return ""


async def _loadout(services: Services, snapshot: Snapshot, tool: Tool, value: Any) -> Answered:
    """Narrow the session, or go back to what its host gave it; another's narrowing is never widened."""
    state, base, permissions = snapshot.state, snapshot.info.start.loadout, snapshot.permissions
    if value is not None and not (isinstance(value, str) and value.casefold() in permissions.world.loadouts):
        return snapshot, answer("not_found", "There is no such loadout.", tool=tool)
    if state.loadout != base and not state.own_loadout:
        return snapshot, answer("refused", "The host of this session has narrowed it: that is not yours.", tool=tool)
    if (
        value is not None
        and base is not None
        and not active_plugins(permissions, value) <= active_plugins(permissions, base)
    ):
        return snapshot, answer("refused", f"'{value}' is wider than '{base}', which this session has.", tool=tool)
    chosen = base if value is None else value
    after, outcome = await apply_command(services, snapshot, SetLoadout(loadout=chosen, own=value is not None))
    return after, _done(tool, outcome.message)


async def _stored(
    services: Services, snapshot: Snapshot, tool: Tool, changes: dict[str, bool | None], message: str
) -> Answered:
    """Store settings of the agent, each with its record in the audit trail."""
    key = snapshot.info.key
    for name, value in changes.items():
        state = "unset" if value is None else "on" if value else "off"
        by = f"agent {key.agent}"
        record = services.recorder.entry(key, snapshot.state.turn, "permission", name, state, by=by)
        await services.store.set_switch(key.agent, name, value, audit=[record])
        services.events.emit("permissions_changed", {"agent": key.agent, "subject": name, "by": by})
    return await read(services, snapshot.info), _done(tool, message)


def _done(tool: Tool, message: str) -> CallAnswer:
    return CallAnswer(status="ok", result=text_result(message), tool=tool)
