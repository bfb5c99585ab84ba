"""Run what a model calls: permission, arguments, the tool itself, the audit (X1, X2, X4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.board.calls import focus
from pegboard.board.calls.decision_cache import CallerChannel, DecidedCall
from pegboard.board.catalog.loader import SERVER_WAIT, PluginRequest
from pegboard.board.views import wire_list
from pegboard.core.access.guards import broken
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import CallResult, JsonObject, Tool, text_result
from pegboard.core.state.calls import CallAnswer, LoadFirst, Refuse, Run, answer, find_called, plan_call
from pegboard.core.state.commands import Load, Use
from pegboard.core.state.sessions import State
from pegboard.dialects.names import schema_of
from pegboard.errors import PegboardError, ToolUnavailableError, UpstreamTimeoutError
from pegboard.ports import CallContext

if TYPE_CHECKING:
    from pegboard.board.session import Session


async def run(
    session: Session,
    access: CompiledPermissions,
    name: str,
    arguments: JsonObject,
    channel: CallerChannel,
    *,
    allowed: Callable[[Tool], bool] | None = None,
) -> CallAnswer:
    """Run a tool that the model named; ``allowed`` narrows what may run this way (G6).

    ``access`` has just been looked at: the stored switches are not read twice (P4).
    """
    stored = session.remembered()
    if stored is None:
        stored = (await session.stored())[0]
    route = session.board.routes.find(session, name, access, stored)
    if route is None:
        found = await _decided(session, access, name, arguments, allowed)
        if isinstance(found, CallAnswer):
            return found
        route = found
    elif session.focus is not None or allowed is not None:
        refused = await _outside(session, route.state, route.out.tool, allowed)
        if refused is not None:
            return refused
    return await _execute(session, route, arguments, channel)


async def _decided(
    session: Session,
    access: CompiledPermissions,
    name: str,
    arguments: JsonObject,
    allowed: Callable[[Tool], bool] | None,
) -> DecidedCall | CallAnswer:
    """Return how a call runs, or the answer to one that does not; what is not loaded is loaded first (X1)."""
    if find_called(access, name) is None:
        access = await _reachable(session, name)
    stored = (await session.stored())[0]
    state = session.settled(access, stored)
    plan = plan_call(access, state, name)
    if isinstance(plan, Refuse):
        return await _refuse(session, plan, state, name)
    if isinstance(plan, LoadFirst) and wire_list.still_wired(session, plan.tool):
        plan = replace(plan, then="run")
    tool = plan.tool if isinstance(plan, LoadFirst) else plan.out.tool
    if (refused := await _outside(session, state, tool, allowed)) is not None:
        return refused
    if isinstance(plan, LoadFirst):
        loaded = await _load_first(session, plan, arguments)
        if loaded is not None:
            return loaded
        access, stored = await session.access(), (await session.stored())[0]
        state = session.settled(access, stored)
        again = plan_call(access, state, name)
        if not isinstance(again, Run):
            return answer("not_loaded", f"'{tool.wire}' could not be loaded.", tool=tool)
        plan = again
    return session.board.routes.keep(session, name, access, stored, state, plan)


async def _outside(
    session: Session, state: State, tool: Tool, allowed: Callable[[Tool], bool] | None
) -> CallAnswer | None:
    """Return the refusal of a call that the focus or the way it came leaves out, or None (F3, G6)."""
    if (refused := await focus.outside(session, state, tool)) is not None:
        return refused
    if allowed is not None and not allowed(tool):
        return await _not_allowed(session, state, tool)
    return None


async def _reachable(session: Session, name: str) -> CompiledPermissions:
    """Return the access once the plugin that the called name belongs to has been seen."""
    access = await session.access()
    owner = session.owner_of(access, name)
    if owner is not None:
        await session.board.keeper.ready([PluginRequest(plugin=owner)], retry=True)
    else:
        wants = session.out_wants(access, await session.state())
        await session.board.look(access, wants, wait=SERVER_WAIT)
    return await session.access()


async def _refuse(session: Session, plan: Refuse, state: State, name: str) -> CallAnswer:
    await session.board.recorder.denied(
        session.key,
        state.turn,
        subject=plan.tool.wire if plan.tool is not None else name,
        reason=plan.reason.text,
        outcome=plan.reason.code,
    )
    message = plan.message
    if plan.status == "not_found":
        access = await session.access()
        hint = did_you_mean(name, (tool.wire for tool in access.permitted))
        message = f"{message} {hint}".strip()
    return answer(plan.status, message, tool=plan.tool)


async def _not_allowed(session: Session, state: State, tool: Tool) -> CallAnswer:
    """Audit under its real name that a tool does not count as read-only (G6)."""
    await session.board.recorder.denied(
        session.key, state.turn, subject=tool.wire, reason="It does not count as read-only.", outcome="not_read_only"
    )
    return answer("refused", f"'{tool.wire}' may change things: call it through call_tool.", tool=tool)


async def _load_first(session: Session, plan: LoadFirst, arguments: JsonObject) -> CallAnswer | None:
    """Load the called tool alone; return the answer, or None where it is to run now (X1)."""
    tool = plan.tool
    _, outcome = await session.carry_out(Load(names=(f"tool:{tool.id}",)))
    item = outcome.items[0]
    if outcome.status != "ok":
        return answer(item.status, item.message, tool=tool)
    fits = not session.board.parts.validator.problems(tool, arguments)
    if plan.then == "run" and fits:
        return None
    message = f"'{tool.wire}' was not loaded; it is now, and has not run. Call it again."
    told = {"policy": outcome.policy} if outcome.policy else {}
    return answer("not_loaded", message, tool=tool, data={**schema_of(tool), **told})


async def _execute(session: Session, route: DecidedCall, arguments: JsonObject, channel: CallerChannel) -> CallAnswer:
    """Check the arguments and the guards, run the tool, and audit what came of it (X2, T10, X4)."""
    tool, state, spec, started = route.out.tool, route.state, route.spec, time.perf_counter()
    digest = await session.board.recorder.digest(arguments)
    if problems := session.board.parts.validator.problems(tool, arguments):
        _called(session, state, tool, "invalid_arguments", digest, started)
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        return answer("invalid_arguments", message, tool=tool, data=schema_of(tool))
    if route.guards and (rule := broken(route.guards, tool, arguments)):
        return await _guarded(session, state, tool, text_result(rule, is_error=True))
    if route.renews:
        await session.change(Use(tool=tool.id))
    key = session.key
    context = CallContext(
        principal=key.principal,
        agent=key.agent,
        session=key.session,
        scope=route.scope,
        progress=channel.progress,
        client=channel.client,
        meta=channel.meta,
    )
    try:
        result = await route.source.call(spec, route.out.overrides, tool, arguments, context)
    except PegboardError as error:
        message = session.board.masker.text(f"{error.message} {error.hint}".strip())
        failed = answer(failure_of(error), message, tool=tool)
        _called(session, state, tool, failed.status, digest, started)
        return failed
    except BaseException:
        _called(session, state, tool, "cancelled", digest, started)
        raise
    if not isinstance(spec, ServerSpec) and result.is_error:
        result = replace(result, content=tuple(session.board.masker.value(result.content)))
    if result.meta.get("pegboard/refused_by") == "guard":
        return await _guarded(session, state, tool, result)
    status = "error" if result.is_error else "ok"
    _called(session, state, tool, status, digest, started)
    return CallAnswer(status=status, result=result, tool=tool)


async def _guarded(session: Session, state: State, tool: Tool, result: CallResult) -> CallAnswer:
    """Audit that a guard of the plugin refused the call, before anything ran (T10)."""
    said = " ".join(str(block.get("text", "")) for block in result.content)
    await session.board.recorder.denied(session.key, state.turn, subject=tool.wire, reason=said, outcome="guard")
    return CallAnswer(status="refused", result=result, message=said, tool=tool)


def _called(session: Session, state: State, tool: Tool, status: str, digest: str, started: float) -> None:
    session.board.recorder.called(
        session.key,
        state.turn,
        subject=tool.wire,
        decision="refused" if status == "invalid_arguments" else "allowed",
        outcome=status,
        duration=round((time.perf_counter() - started) * 1000, 3),
        arguments=digest,
    )


def failure_of(error: PegboardError) -> str:
    """Return the status of a request that failed this way."""
    match error:
        case UpstreamTimeoutError():
            return "timeout"
        case ToolUnavailableError():
            return "tool_unavailable"
        case _:
            return "error"
