"""Carry out the host's own tools, for agents that list them: each by a function of its own (§4, X4)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from pegboard.board.calls.call_request import Answered, CallRequest, deny_call
from pegboard.board.calls.commands import apply_command
from pegboard.board.meta_tools import host_tool_fault
from pegboard.board.services import Services
from pegboard.board.session_info import child_of
from pegboard.board.snapshot import Snapshot, read_snapshot
from pegboard.core.access.names import lookup
from pegboard.core.access.permissions import delegates
from pegboard.core.access.settings.own_settings import (
    OFF,
    VALUES,
    OwnSetting,
    OwnSettings,
    lease_of,
    names_off,
    values_of,
)
from pegboard.core.model.naming import did_you_mean, label_problem, one_line
from pegboard.core.model.tools import Frozen, JsonObject, Tool, joined_text, text_result
from pegboard.core.state.call_plans import CallAnswer, answer, refused_as_unavailable
from pegboard.core.state.commands import SetLoadout
from pegboard.core.state.subjects import active_plugins
from pegboard.errors import UsageError
from pegboard.ports import CallDetails

log = logging.getLogger("pegboard")

SMALLEST: Final = "task"
"""The kind of a child that no one states a kind for: it has the smallest loadout."""
_LOADOUT: Final = "loadout"
_BY_ITSELF: Final = "The agent set it for itself."


async def unavailable_host_tool(call: CallRequest, snapshot: Snapshot, tool: Tool) -> CallAnswer | None:
    """Return the answer that one of the host's own tools cannot run now, or None (P6)."""
    fault = host_tool_fault(call.services, tool.wire)
    return await deny_call(call, snapshot, refused_as_unavailable(tool, fault), tool.wire) if fault else None


async def call_host_tool(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
    """Return the session after a call of one of the host's own tools, and its answer; it is audited as any call."""
    digest, started = await services.recorder.digest(arguments), time.perf_counter()
    status, error = "cancelled", ""
    try:
        snapshot, answered = await _CALLS[tool.wire](services, snapshot, tool, arguments)
        status, error = answered.status, joined_text(answered.result) if answered.is_error else ""
    finally:
        duration = round((time.perf_counter() - started) * 1000, 3)
        key, turn = snapshot.info.key, snapshot.state.turn
        record = services.recorder.entry(
            key, turn, "call", tool.wire, "allowed", reason=error, duration=duration, outcome=status, arguments=digest,
            by=snapshot.info.by,
        )  # fmt: skip
        days = snapshot.permissions.agent.record.days
        services.recorder.note_later(record, "called", CallDetails(days=days))
    return snapshot, answered


async def delegate(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
    """Return what the host's callback answers for a child session that does the task.

    With an agent that this one may delegate to, the child works under that agent's profile; without an agent it is a
    child of the kind. Another agent's name is not found.
    """
    run, agent = services.delegation.run, arguments.get("agent")
    assert run is not None
    known = delegates(snapshot.permissions)
    if agent is not None and agent not in known:
        hint = did_you_mean(agent, known) or (f"There are: {', '.join(known)}." if known else "Name none.")
        message = f"Agent '{one_line(agent, limit=100)}' was not found. {hint}"
        return snapshot, answer("not_found", message, tool=tool)
    try:
        child = child_of(
            snapshot.info, services.world, str(arguments.get("kind") or agent or SMALLEST), agent, delegates=known
        )
    except UsageError as error:
        return snapshot, answer("refused", f"{error.message} {error.hint}".strip(), tool=tool)
    return snapshot, await _task_answer(services, tool, run(child, str(arguments["task"])))


async def _task_answer(services: Services, tool: Tool, work: Awaitable[object]) -> CallAnswer:
    """Return what the host's callback answers; what it raises is the error of this call alone."""
    try:
        text = await work
    except Exception as error:  # the host's own code may raise anything
        log.debug("a delegated task failed", exc_info=True)
        why = services.masker.text(f"{type(error).__name__}: {error}")
        return answer("error", f"The task was not done. {why}", tool=tool)
    if not isinstance(text, str):
        return answer("error", f"The task has no answer: board.on_delegate returned {type(text).__name__}.", tool=tool)
    return CallAnswer(status="ok", result=text_result(services.masker.text(text)), tool=tool)


# -- the agent's own settings ------------------------------------------------------------------------


async def self_config(services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject) -> Answered:
    """Return the session after a look at, or a change of, the agent's own settings, and the answer."""
    action, name = arguments["action"], arguments.get("name")
    if action == "show":
        return snapshot, await _settings(services, snapshot, tool)
    if problem := label_problem(name):
        return snapshot, answer("invalid_arguments", f"`name` {problem}", tool=tool)
    setting = name if name in (_LOADOUT, *VALUES) else "switches"
    if setting not in snapshot.permissions.agent.self_config:
        shown = one_line(str(name), limit=100)
        return snapshot, answer("refused", f"'{shown}' cannot be changed by you.", tool=tool)
    value = arguments.get("value") if action == "set" else None
    if action == "set" and value is None:
        return snapshot, answer("invalid_arguments", "`value` is missing.", tool=tool)
    if setting == _LOADOUT:
        return await _set_loadout(services, snapshot, tool, value)
    if setting == "switches":
        return await _set_switch(services, snapshot, tool, str(name), value)
    return await _set_value(services, snapshot, tool, setting, value)


async def _settings(services: Services, snapshot: Snapshot, tool: Tool) -> CallAnswer:
    permissions, agent = snapshot.permissions, snapshot.permissions.agent
    own = await _own_settings(services, snapshot)
    lease = None if agent.lease is None else str(agent.lease)
    document = {
        "switches": dict(permissions.switches.effective),
        "loadout": snapshot.state.loadout,
        "initial_toolkits": list(agent.initial_toolkits),
        "lease": lease,
        "set_by_yourself": {**dict.fromkeys(names_off(own), False), **values_of(own)},
        "may_change": list(agent.self_config),
    }
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    return CallAnswer(status="ok", result=text_result(text), tool=tool)


async def _set_switch(services: Services, snapshot: Snapshot, tool: Tool, name: str, value: Any) -> Answered:
    """Take something away, or give back what the agent has taken away itself: it grants nothing."""
    if value is not None and not isinstance(value, bool):
        return snapshot, answer("invalid_arguments", "A switch is true or false.", tool=tool)
    shown = one_line(name, limit=100)
    own, setting = names_off(await _own_settings(services, snapshot)), OwnSetting("off", name)
    if value is False:
        if lookup(snapshot.permissions, name) is None and name not in own:
            return snapshot, answer("not_found", f"'{shown}' was not found.", tool=tool)
        return await _store_setting(services, snapshot, tool, setting, OFF, f"'{shown}' is off.")
    if name in own:
        return await _store_setting(services, snapshot, tool, setting, None, f"'{shown}' is unchanged.")
    if value is None or lookup(snapshot.permissions, name) is not None:
        return snapshot, _ok_answer(tool, f"You have not switched '{shown}' off; nothing was changed.")
    return snapshot, answer("not_found", f"'{shown}' was not found.", tool=tool)


async def _set_value(services: Services, snapshot: Snapshot, tool: Tool, setting: str, value: Any) -> Answered:
    if value is not None and (fault := _why_not_settable(snapshot, setting, value)):
        return snapshot, answer("invalid_arguments", fault, tool=tool)
    text = json.dumps(value, sort_keys=True) if value is not None else None
    done = "is set" if value is not None else "was set by your operator"
    return await _store_setting(services, snapshot, tool, OwnSetting("value", setting), text, f"'{setting}' {done}.")


def _why_not_settable(snapshot: Snapshot, setting: str, value: Any) -> str:
    """Return why a value cannot be set, or nothing."""
    if setting == "lease":
        fits = lease_of(value) is not None
        return "" if fits else "A lease is {kind: turn}, {kind: idle, turns: n} or {kind: unload}."
    allowed = snapshot.permissions.agent.allowed_toolkits
    if not isinstance(value, list) or not all(name in allowed for name in cast("list[Any]", value)):
        return f"Initial toolkits are a list of those that you may load: {', '.join(allowed) or 'none'}."
    return ""


async def _set_loadout(services: Services, snapshot: Snapshot, tool: Tool, value: Any) -> Answered:
    """Narrow the session, or go back to what its host gave it; another's narrowing is never widened."""
    state, base, permissions = snapshot.state, snapshot.info.start.loadout, snapshot.permissions
    if value is not None and not (isinstance(value, str) and value.casefold() in permissions.world.loadouts):
        return snapshot, answer("not_found", "There is no such loadout.", tool=tool)
    if state.loadout != base and not state.own_loadout:
        return snapshot, answer("refused", "The host of this session restricts it; you cannot change that.", tool=tool)
    if (
        value is not None
        and base is not None
        and not active_plugins(permissions, value) <= active_plugins(permissions, base)
    ):
        return snapshot, answer("refused", f"'{value}' is wider than '{base}', which this session has.", tool=tool)
    chosen = base if value is None else value
    after, outcome = await apply_command(services, snapshot, SetLoadout(loadout=chosen, own=value is not None))
    return after, _ok_answer(tool, outcome.message)


async def _own_settings(services: Services, snapshot: Snapshot) -> OwnSettings:
    """Return what the agent has set for itself, for this principal, or for this child alone (P10)."""
    info = snapshot.info
    if info.parent is not None:
        return info.settings
    return (await services.store.stored_permissions()).own_settings.get(info.key.agent, {}).get(info.key.principal, {})


async def _store_setting(
    services: Services, snapshot: Snapshot, tool: Tool, setting: OwnSetting, value: str | None, message: str
) -> Answered:
    """Store a setting of the agent for its principal, or of a child for itself, with its record (P10, X4)."""
    key, settings = snapshot.info.key, snapshot.info.settings
    state, by = "unset" if value is None else "off" if setting.kind == "off" else "set", f"agent {key.agent}"
    record = services.recorder.entry(
        key, snapshot.state.turn, "permission", setting.name, state, reason=_BY_ITSELF, by=by
    )
    if snapshot.info.parent is not None:
        await services.recorder.note(record)
        settings.pop(setting, None)
        settings.update({} if value is None else {setting: value})
        services.compiler.note_settings()
    else:
        await services.store.set_own(key.agent, key.principal, {setting: value}, audit=[record])
    services.events.emit("permissions_changed", {"agent": key.agent, "subject": setting.name, "by": by})
    return await read_snapshot(services, snapshot.info), _ok_answer(tool, message)


def _ok_answer(tool: Tool, message: str) -> CallAnswer:
    return CallAnswer(status="ok", result=text_result(message), tool=tool)


HostToolCall = Callable[[Services, Snapshot, Tool, JsonObject], Awaitable[Answered]]
"""A function that carries out a call whose arguments are valid."""
_CALLS: Final[Mapping[str, HostToolCall]] = Frozen({"delegate": delegate, "self_config": self_config})
