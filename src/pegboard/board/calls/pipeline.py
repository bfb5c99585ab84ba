"""Run what a model calls: permission, arguments, the tool itself, the audit (X1, X2, X4)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from pegboard.board.calls.approval_gate import pass_gate, waiting
from pegboard.board.calls.call_request import Answered, CallRequest, denied, guarded
from pegboard.board.calls.commands import apply_command, carry_out
from pegboard.board.calls.eliciting import asked_client
from pegboard.board.discover import discover_called
from pegboard.board.meta_tools import command_context, dialect_of
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import DecidedCall, Snapshot, read
from pegboard.core.access.approvals.demands import rules_of
from pegboard.core.access.guards import broken
from pegboard.core.access.pool_scope import pool_scope
from pegboard.core.model.naming import did_you_mean, some_of
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool, text_result
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.call_plans import (
    CallAnswer,
    LoadFirst,
    Plan,
    Refuse,
    Run,
    answer,
    not_read_only,
    outside_focus,
    plan_call,
    same_batch,
)
from pegboard.core.state.commands import Load, Use
from pegboard.core.state.narrowing import reachable
from pegboard.core.state.requirements import unknown_plugins, unknown_toolkits
from pegboard.core.state.transitions import used
from pegboard.dialects.names import schema_of
from pegboard.errors import PegboardError, ToolUnavailableError, UpstreamError, UpstreamTimeoutError

MOST_DECIDED: Final = 4096
"""How many decided calls a session object keeps."""


async def run(call: CallRequest, snapshot: Snapshot) -> Answered:
    """Return the session after a call of a tool, and what came of it.

    Where its client can be asked for an approval that it needs, and answers, everything is decided anew (A3).
    """
    snapshot, answered = await _run(call, snapshot)
    approval = answered.approval
    if approval is None or answered.status != "needs_approval" or call.client is None:
        return snapshot, answered
    why = await asked_client(call, call.client, approval)
    if why:
        return snapshot, waiting(approval, answered.tool, why)
    return await _run(call, await read(call.services, snapshot.info))


async def _run(call: CallRequest, snapshot: Snapshot) -> Answered:
    decided = _known(snapshot, call.name)
    if decided is None:
        snapshot, plan = await _decided(call, snapshot)
        if isinstance(plan, CallAnswer):
            return snapshot, plan
        decided = plan
    elif (refusal := _refused_here(call, snapshot, decided.tool.tool)) is not None:
        return snapshot, await denied(call.services, snapshot, refusal, call.name)
    tool = decided.tool.tool
    if call.request.started_before_load_of(tool.id) and decided.permissions.agent.unloaded_call != "run":
        refusal = same_batch(tool)
        result = answer(refusal.status, refusal.message, data=schema_of(tool)).result
        return snapshot, await denied(call.services, snapshot, refusal, call.name, result=result)
    return await _execute(call, snapshot, decided)


def _known(snapshot: Snapshot, name: str) -> DecidedCall | None:
    """Return how a call of this name runs, if it was decided for these permissions and this state (P4)."""
    call = snapshot.decided.get(name)
    if call is None or call.permissions is not snapshot.permissions:
        return None
    return call if call.stored is snapshot.stored or call.stored == snapshot.stored else None


async def _decided(call: CallRequest, snapshot: Snapshot) -> tuple[Snapshot, DecidedCall | CallAnswer]:
    """Return how a call runs, or the answer to one that does not; what is not loaded is loaded first (X1)."""
    snapshot, plan = await _planned(call, snapshot)
    if isinstance(plan, Refuse):
        return snapshot, await denied(call.services, snapshot, _with_hint(call, snapshot, plan), call.name)
    if isinstance(plan, LoadFirst):
        snapshot, loaded = await _load_first(call, snapshot, plan)
        if loaded is not None:
            return snapshot, loaded
        tool, snapshot = plan.tool, await read(call.services, snapshot.info)
        plan = plan_call(snapshot.permissions, snapshot.state, call.name)
        if not isinstance(plan, Run):
            return snapshot, answer("not_loaded", f"'{tool.wire}' could not be loaded.", tool=tool)
    decided = _call_of(call.services, snapshot, plan)
    if len(snapshot.decided) >= MOST_DECIDED:
        snapshot.decided.clear()
    snapshot.decided[call.name] = decided
    return snapshot, decided


async def _planned(call: CallRequest, snapshot: Snapshot) -> tuple[Snapshot, Plan]:
    """Return what a call comes to, once the plugin that may have its tool has been seen (X1)."""
    plan = plan_call(snapshot.permissions, snapshot.state, call.name)
    if isinstance(plan, Refuse) and plan.tool is None:
        snapshot = await discover_called(call.services, snapshot, plan.owner)
        plan = plan_call(snapshot.permissions, snapshot.state, call.name)
    if isinstance(plan, Refuse):
        return snapshot, plan
    if isinstance(plan, LoadFirst) and call.shown.still_lists(plan.tool):
        plan = replace(plan, then="run", renews=True)
    tool = plan.tool if isinstance(plan, LoadFirst) else plan.loaded.tool
    return snapshot, _refused_here(call, snapshot, tool) or plan


def _refused_here(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Refuse | None:
    """Return the refusal of a call that the focus or the way it came excludes, or None (F3, G6)."""
    focus = call.shown.focus
    if focus is not None and tool.wire not in focus:
        return outside_focus(tool, focus)
    plugins = snapshot.permissions.world.catalog.plugins
    if call.read_only and not call.services.trust.reads_only(plugins[tool.plugin], tool):
        return not_read_only(tool)
    return None


def _call_of(services: Services, snapshot: Snapshot, plan: Run) -> DecidedCall:
    info, permissions, tool = snapshot.info, snapshot.permissions, plan.loaded.tool
    spec, plugin = services.loader.specs[tool.plugin], permissions.world.catalog.plugins[tool.plugin]
    lapses = info.stable and tool.id not in starting_tools(permissions).head
    return DecidedCall(
        permissions=permissions,
        stored=snapshot.stored,
        tool=plan.loaded,
        spec=spec,
        source=services.loader.source_of(spec),
        scope=pool_scope(permissions, spec, info.key.principal),
        guards=spec.guards,
        renews=lapses and used(permissions, snapshot.state, tool.id) is not snapshot.state,
        rules=rules_of(plugin, spec, tool, services.trust.counted(plugin.name)),
    )


def _with_hint(call: CallRequest, snapshot: Snapshot, refusal: Refuse) -> Refuse:
    """Return a refusal with what may have been meant, or what is not known yet, where nothing was found (P9, X1)."""
    if refusal.status != "not_found":
        return refusal
    hint = did_you_mean(call.name, (tool.wire for tool in reachable(snapshot.permissions, snapshot.state)))
    return replace(refusal, message=f"{refusal.message} {hint or _not_known_yet(call.services, snapshot)}".strip())


def _not_known_yet(services: Services, snapshot: Snapshot) -> str:
    """Return what may have a tool that is not known, under the names by which the dialect loads it (X1)."""
    permissions = snapshot.permissions
    if not snapshot.info.stable:
        return ""
    if dialect_of(services, permissions).name == "toolkits":
        names = unknown_toolkits(permissions)
        return f"The tools of these toolkits are not all known yet: {some_of(names)}." if names else ""
    names = unknown_plugins(permissions)
    return f"The tools of these plugins are not known yet, load one to see them: {some_of(names)}." if names else ""


async def _load_first(call: CallRequest, snapshot: Snapshot, plan: LoadFirst) -> tuple[Snapshot, CallAnswer | None]:
    """Load the called tool alone; the answer is None where it is to run now (X1)."""
    services, tool = call.services, plan.tool
    command = Load(names=(f"tool:{tool.id}",), renews=plan.renews)
    snapshot, outcome = await carry_out(services, snapshot, command, None if plan.renews else call.request)
    item = outcome.items[0]
    if outcome.status != "ok":
        return snapshot, answer(item.status, item.message, tool=tool)
    fits = not services.validator.problems(tool, call.arguments)
    later = command_context(services, snapshot.info, snapshot.permissions).from_next_turn and not plan.renews
    if plan.then == "run" and fits and not later:
        return snapshot, None
    when = "It can be called from the next request on, not in this turn." if later else "Call it again."
    message = f"'{tool.wire}' was not loaded; it is now, and has not run. {when}"
    policy = {"policy": outcome.policy} if outcome.policy else {}
    return snapshot, answer("not_loaded", message, tool=tool, data={**schema_of(tool), **policy})


async def _execute(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> Answered:
    """Check arguments and guards, pass the gate, run the tool, and audit what came of it (X2, T10, A1, X4)."""
    services, arguments, tool = call.services, call.arguments, decided.tool.tool
    info, turn, started = snapshot.info, snapshot.state.turn, time.perf_counter()
    digest = await services.recorder.digest(arguments)
    if problems := services.validator.problems(tool, arguments):
        _called(services, info, turn, tool, "invalid_arguments", digest, started)
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        return snapshot, answer("invalid_arguments", message, tool=tool, data=schema_of(tool))
    if decided.guards and (rule := broken(decided.guards, tool, arguments)):
        return snapshot, await guarded(services, snapshot, tool, text_result(rule, is_error=True))
    context = call.context(info, decided.scope)
    if decided.rules is not None:
        passed = await pass_gate(call, snapshot, decided, decided.rules, context, digest)
        if isinstance(passed, CallAnswer):
            if passed.status == "ok":
                _called(services, info, turn, tool, "ok", digest, started)
            return snapshot, passed
        arguments = passed
    if decided.renews:
        snapshot, _ = await apply_command(services, snapshot, Use(tool=tool.id))
    try:
        result = await decided.source.call(decided.spec, decided.tool.overrides, tool, arguments, context)
    except PegboardError as error:
        failed = _failed(services, tool, error)
        _called(services, info, turn, tool, failed.status, digest, started)
        return snapshot, failed
    except BaseException:
        _called(services, info, turn, tool, "cancelled", digest, started)
        raise
    if not isinstance(decided.spec, ServerSpec) and result.is_error:
        result = replace(result, content=tuple(services.masker.value(result.content)))
    if result.meta.get("pegboard/refused_by") == "guard":
        return snapshot, await guarded(services, snapshot, tool, result)
    status = "error" if result.is_error else "ok"
    _called(services, info, turn, tool, status, digest, started)
    if status == "ok" and decided.permissions.agent.remember and (needs := info.conversation.add_call(tool.id, turn)):
        services.uses.remember(info.key, needs, tool.id)
    return snapshot, CallAnswer(status=status, result=result, tool=tool)


def _failed(services: Services, tool: Tool, error: PegboardError) -> CallAnswer:
    """Return the answer to a call that its source could not bring to an end."""
    message = services.masker.text(error.text)
    failed = answer(failure_of(error), message, tool=tool)
    return replace(failed, server_error=error.answer) if isinstance(error, UpstreamError) else failed


def _called(
    services: Services, info: SessionInfo, turn: int, tool: Tool, status: str, digest: str, started: float
) -> None:
    decision = "refused" if status == "invalid_arguments" else "allowed"
    duration = round((time.perf_counter() - started) * 1000, 3)
    recorder = services.recorder
    entry = recorder.entry(
        info.key, turn, "call", tool.wire, decision, duration=duration, outcome=status, arguments=digest
    )
    recorder.note_later(entry, "called")


def failure_of(error: PegboardError) -> str:
    """Return the status of a request that failed this way."""
    match error:
        case UpstreamTimeoutError():
            return "timeout"
        case ToolUnavailableError():
            return "tool_unavailable"
        case _:
            return "error"
