"""Run what a model calls: permission, arguments, the tool itself, the audit (X1, X2, X4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pegboard.board.calls.approval_gate import guarded, pass_gate, waiting
from pegboard.board.calls.commands import apply_command, carry_out
from pegboard.board.calls.eliciting import asked_client
from pegboard.board.discover import discover_called
from pegboard.board.meta_tools import command_context, dialect_of
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.session_info import CallerChannel, SessionInfo
from pegboard.board.snapshot import DecidedCall, Snapshot, read
from pegboard.board.views.shown_to_model import Shown
from pegboard.core.access.approvals.demands import rules_of
from pegboard.core.access.guards import broken
from pegboard.core.access.pool_scope import pool_scope
from pegboard.core.model.naming import did_you_mean, some_of
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import JsonObject, Tool, text_result
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.call_plans import CallAnswer, LoadFirst, Refuse, Run, answer, find_called, plan_call
from pegboard.core.state.commands import Load, Use
from pegboard.core.state.narrowing import reachable
from pegboard.core.state.requirements import unknown_plugins, unknown_toolkits
from pegboard.core.state.transitions import used
from pegboard.dialects.names import schema_of
from pegboard.errors import PegboardError, ToolUnavailableError, UpstreamError, UpstreamTimeoutError
from pegboard.ports import CallContext

Allowed = Callable[[Tool], bool]
Answered = tuple[Snapshot, CallAnswer]
MOST_DECIDED: Final = 4096
"""How many decided calls a session object keeps."""


async def run(
    services: Services,
    snapshot: Snapshot,
    shown: Shown,
    name: str,
    arguments: JsonObject,
    channel: CallerChannel,
    *,
    allowed: Allowed | None = None,
) -> Answered:
    """Return the session after a call of a tool, and what came of it; ``allowed`` narrows what may run (G6).

    Where its client can be asked for an approval that it needs, and answers, everything is decided anew (A3).
    """
    snapshot, answered = await _run(services, snapshot, shown, name, arguments, channel, allowed)
    approval = answered.approval
    if approval is None or answered.status != "needs_approval" or channel.client is None:
        return snapshot, answered
    why = await asked_client(services, approval, channel, channel.client)
    if why:
        return snapshot, waiting(approval, answered.tool, why)
    snapshot = await read(services, snapshot.info)
    return await _run(services, snapshot, shown, name, arguments, channel, allowed)


async def _run(
    services: Services,
    snapshot: Snapshot,
    shown: Shown,
    name: str,
    arguments: JsonObject,
    channel: CallerChannel,
    allowed: Allowed | None,
) -> Answered:
    call = _known(snapshot, name)
    if call is None:
        snapshot, found = await _decided(services, snapshot, shown, name, arguments, channel.request, allowed)
        if isinstance(found, CallAnswer):
            return snapshot, found
        call = found
    elif shown.focus is not None or allowed is not None:
        refused = await _refused_here(services, snapshot, shown, call.tool.tool, allowed)
        if refused is not None:
            return snapshot, refused
    if channel.request.started_before_load_of(call.tool.tool.id) and call.permissions.agent.unloaded_call != "run":
        return snapshot, await _too_early(services, snapshot, call.tool.tool)
    return await _execute(services, snapshot, call, arguments, channel)


async def _too_early(services: Services, snapshot: Snapshot, tool: Tool) -> CallAnswer:
    """Audit a call that started before the load of its tool was answered, and return what the model reads (D2)."""
    message = f"'{tool.wire}' was loaded in the same batch of calls; this call has not run. Call it again."
    key, turn = snapshot.info.key, snapshot.state.turn
    await services.recorder.denied(key, turn, subject=tool.wire, reason=message, outcome="same_batch")
    return answer("not_loaded", message, tool=tool, data=schema_of(tool))


def _known(snapshot: Snapshot, name: str) -> DecidedCall | None:
    """Return how a call of this name runs, if it was decided for these permissions and this state (P4)."""
    call = snapshot.decided.get(name)
    if call is None or call.permissions is not snapshot.permissions:
        return None
    return call if call.stored is snapshot.stored or call.stored == snapshot.stored else None


async def _decided(
    services: Services,
    snapshot: Snapshot,
    shown: Shown,
    name: str,
    arguments: JsonObject,
    request: Request,
    allowed: Allowed | None,
) -> tuple[Snapshot, DecidedCall | CallAnswer]:
    """Return how a call runs, or the answer to one that does not; what is not loaded is loaded first (X1)."""
    if find_called(snapshot.permissions, name) is None:
        snapshot = await discover_called(services, snapshot, name)
    plan = plan_call(snapshot.permissions, snapshot.state, name)
    if isinstance(plan, Refuse):
        return snapshot, await _refuse(services, snapshot, plan, name)
    if isinstance(plan, LoadFirst) and shown.still_lists(plan.tool):
        plan = replace(plan, then="run", renews=True)
    tool = plan.tool if isinstance(plan, LoadFirst) else plan.loaded.tool
    if (refused := await _refused_here(services, snapshot, shown, tool, allowed)) is not None:
        return snapshot, refused
    if isinstance(plan, LoadFirst):
        snapshot, loaded = await _load_first(services, snapshot, plan, arguments, request)
        if loaded is not None:
            return snapshot, loaded
        snapshot = await read(services, snapshot.info)
        plan = plan_call(snapshot.permissions, snapshot.state, name)
        if not isinstance(plan, Run):
            return snapshot, answer("not_loaded", f"'{tool.wire}' could not be loaded.", tool=tool)
    call = _call_of(services, snapshot, plan)
    if len(snapshot.decided) >= MOST_DECIDED:
        snapshot.decided.clear()
    snapshot.decided[name] = call
    return snapshot, call


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


async def _refused_here(
    services: Services, snapshot: Snapshot, shown: Shown, tool: Tool, allowed: Allowed | None
) -> CallAnswer | None:
    """Return the refusal of a call that the focus or the way it came excludes, or None (F3, G6)."""
    key, turn = snapshot.info.key, snapshot.state.turn
    if shown.focus is not None and tool.wire not in shown.focus:
        message = f"'{tool.wire}' is outside the focus of this step: {', '.join(sorted(shown.focus))}."
        await services.recorder.denied(key, turn, subject=tool.wire, reason=message, outcome="focus")
        return answer("refused", message, tool=tool)
    if allowed is not None and not allowed(tool):
        reason = "It does not count as read-only."
        await services.recorder.denied(key, turn, subject=tool.wire, reason=reason, outcome="not_read_only")
        return answer("refused", f"'{tool.wire}' may change things: call it through call_tool.", tool=tool)
    return None


async def _refuse(services: Services, snapshot: Snapshot, plan: Refuse, name: str) -> CallAnswer:
    """Audit a refusal with its true reason, and return what the model reads of it (P9)."""
    subject = plan.tool.wire if plan.tool is not None else name
    key, turn = snapshot.info.key, snapshot.state.turn
    await services.recorder.denied(key, turn, subject=subject, reason=plan.reason.text, outcome=plan.reason.code)
    message = plan.message
    if plan.status == "not_found":
        hint = did_you_mean(name, (tool.wire for tool in reachable(snapshot.permissions, snapshot.state)))
        message = f"{message} {hint or _not_known_yet(services, snapshot)}".strip()
    return answer(plan.status, message, tool=plan.tool)


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


async def _load_first(
    services: Services, snapshot: Snapshot, plan: LoadFirst, arguments: JsonObject, request: Request
) -> tuple[Snapshot, CallAnswer | None]:
    """Load the called tool alone; the answer is None where it is to run now (X1)."""
    tool = plan.tool
    command = Load(names=(f"tool:{tool.id}",), renews=plan.renews)
    snapshot, outcome = await carry_out(services, snapshot, command, None if plan.renews else request)
    item = outcome.items[0]
    if outcome.status != "ok":
        return snapshot, answer(item.status, item.message, tool=tool)
    fits = not services.validator.problems(tool, arguments)
    later = command_context(services, snapshot.info, snapshot.permissions).from_next_turn and not plan.renews
    if plan.then == "run" and fits and not later:
        return snapshot, None
    when = "It can be called from the next request on, not in this turn." if later else "Call it again."
    message = f"'{tool.wire}' was not loaded; it is now, and has not run. {when}"
    policy = {"policy": outcome.policy} if outcome.policy else {}
    return snapshot, answer("not_loaded", message, tool=tool, data={**schema_of(tool), **policy})


async def _execute(
    services: Services, snapshot: Snapshot, call: DecidedCall, arguments: JsonObject, channel: CallerChannel
) -> Answered:
    """Check arguments and guards, pass the gate, run the tool, and audit what came of it (X2, T10, A1, X4)."""
    tool, info, turn, started = call.tool.tool, snapshot.info, snapshot.state.turn, time.perf_counter()
    digest = await services.recorder.digest(arguments)
    if problems := services.validator.problems(tool, arguments):
        _called(services, info, turn, tool, "invalid_arguments", digest, started)
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        return snapshot, answer("invalid_arguments", message, tool=tool, data=schema_of(tool))
    if call.guards and (rule := broken(call.guards, tool, arguments)):
        return snapshot, await guarded(services, snapshot, tool, text_result(rule, is_error=True))
    context = _context(info, call.scope, channel)
    if call.rules is not None:
        passed = await pass_gate(services, snapshot, call, call.rules, arguments, digest, context, channel)
        if isinstance(passed, CallAnswer):
            if passed.status == "ok":
                _called(services, info, turn, tool, "ok", digest, started)
            return snapshot, passed
        arguments = passed
    if call.renews:
        snapshot, _ = await apply_command(services, snapshot, Use(tool=tool.id))
    try:
        result = await call.source.call(call.spec, call.tool.overrides, tool, arguments, context)
    except PegboardError as error:
        failed = _failed(services, tool, error)
        _called(services, info, turn, tool, failed.status, digest, started)
        return snapshot, failed
    except BaseException:
        _called(services, info, turn, tool, "cancelled", digest, started)
        raise
    if not isinstance(call.spec, ServerSpec) and result.is_error:
        result = replace(result, content=tuple(services.masker.value(result.content)))
    if result.meta.get("pegboard/refused_by") == "guard":
        return snapshot, await guarded(services, snapshot, tool, result)
    status = "error" if result.is_error else "ok"
    _called(services, info, turn, tool, status, digest, started)
    if status == "ok" and call.permissions.agent.remember and (needs := info.conversation.add_call(tool.id, turn)):
        services.uses.remember(info.key, needs, tool.id)
    return snapshot, CallAnswer(status=status, result=result, tool=tool)


def _failed(services: Services, tool: Tool, error: PegboardError) -> CallAnswer:
    """Return the answer to a call that its source could not bring to an end."""
    message = services.masker.text(error.text)
    failed = answer(failure_of(error), message, tool=tool)
    return replace(failed, server_error=error.answer) if isinstance(error, UpstreamError) else failed


def _context(info: SessionInfo, scope: str, channel: CallerChannel) -> CallContext:
    key = info.key
    return CallContext(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        scope=scope,
        progress=channel.progress,
        client=channel.client,
        meta=channel.meta,
    )


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
