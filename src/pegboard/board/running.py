"""Run what a model calls: permission, arguments, the tool itself, the audit (X1, X2, X4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.board import children, economics, focusing
from pegboard.board.keeper import LOOK_WAIT, Want
from pegboard.core.agents import Agent
from pegboard.core.calls import CallAnswer, LoadFirst, Refuse, Run, answer, find_called, plan_call
from pegboard.core.commands import Load, Use
from pegboard.core.guards import broken, guards_of
from pegboard.core.naming import did_you_mean
from pegboard.core.permissions import Access
from pegboard.core.resolving import base
from pegboard.core.sessions import State
from pegboard.core.specs import PluginSpec, ServerSpec
from pegboard.core.surfaces import Out
from pegboard.core.tools import CallResult, JsonObject, Tool, text_result
from pegboard.core.transitions import used
from pegboard.dialects.names import schema_of
from pegboard.errors import PegboardError, ToolUnavailableError, UpstreamTimeoutError
from pegboard.ports import CallContext, SessionKey

if TYPE_CHECKING:
    from pegboard.board.session import Session


async def run(
    session: Session,
    name: str,
    arguments: JsonObject,
    context: CallContext,
    *,
    allowed: Callable[[Tool], bool] | None = None,
) -> CallAnswer:
    """Run a tool that the model named; ``allowed`` narrows what may run this way (G6).

    Whoever calls this has just looked at the stored switches (P4): it is not done twice.
    """
    access = children.access_now(session)
    if find_called(access, name) is None:
        access = await _reachable(session, name)
    state = session.settled(access, (await session.stored())[0])
    plan = plan_call(access, state, name)
    if isinstance(plan, Refuse):
        return await _refuse(session, plan, state, name)
    if isinstance(plan, LoadFirst) and economics.still_wired(session, plan.tool):
        plan = replace(plan, then="run")
    tool = plan.tool if isinstance(plan, LoadFirst) else plan.out.tool
    if (outside := await focusing.outside(session, state, tool)) is not None:
        return outside
    if allowed is not None and not allowed(tool):
        message = f"'{tool.wire}' may change things: call it through call_tool."
        return answer("refused", message, tool=tool)
    if isinstance(plan, LoadFirst):
        loaded = await _load_first(session, plan, arguments)
        if loaded is not None:
            return loaded
        access, state = await session.access(), await session.state()
        again = plan_call(access, state, name)
        if not isinstance(again, Run):
            return answer("not_loaded", f"'{tool.wire}' could not be loaded.", tool=tool)
        plan = again
    problems = session.board.parts.validator.problems(tool, arguments)
    if problems:
        digest = await session.board.recorder.digest(arguments)
        _called(session, state, tool, "invalid_arguments", digest, time.perf_counter())
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        return answer("invalid_arguments", message, tool=tool, data=schema_of(tool))
    if rule := broken(guards_of(session.board.keeper.specs[tool.plugin]), tool, arguments):
        return await _guarded(session, state, tool, text_result(rule, is_error=True))
    return await _execute(session, access, state, plan.out, arguments, context)


async def _reachable(session: Session, name: str) -> Access:
    """Return the access once the plugin that the called name belongs to has been seen."""
    access = await session.access()
    owner = session.owner_of(access, name)
    if owner is not None:
        await session.board.keeper.ready([Want(plugin=owner)], retry=True)
    else:
        wants = session.out_wants(access, await session.state())
        await session.board.look(access, wants, wait=LOOK_WAIT)
    return await session.access()


async def _refuse(session: Session, plan: Refuse, state: State, name: str) -> CallAnswer:
    await session.board.recorder.decided(
        session.key,
        state.turn,
        "denied",
        kind="deny",
        subject=plan.tool.wire if plan.tool is not None else name,
        decision="refused",
        reason=plan.reason.text,
        outcome=plan.reason.code,
    )
    message = plan.message
    if plan.status == "not_found":
        access = await session.access()
        hint = did_you_mean(name, (tool.wire for tool in access.permitted))
        message = f"{message} {hint}".strip()
    return answer(plan.status, message, tool=plan.tool)


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


async def _execute(
    session: Session,
    access: Access,
    state: State,
    out: Out,
    arguments: JsonObject,
    context: CallContext,
) -> CallAnswer:
    tool, started = out.tool, time.perf_counter()
    keeper = session.board.keeper
    spec = keeper.specs[tool.plugin]
    scoped = CallContext(
        principal=context.principal,
        agent=context.agent,
        session=context.session,
        scope=pool_scope(access, spec, session.key),
        progress=context.progress,
        meta=context.meta,
    )
    digest = await session.board.recorder.digest(arguments)
    if tool.id not in base(access).head:
        await _use(session, access, state, tool)
    try:
        result = await keeper.source_of(spec).call(spec, out.overrides, tool, arguments, scoped)
    except PegboardError as error:
        message = session.board.masker.text(f"{error.message} {error.hint}".strip())
        failed = answer(_failure(error), message, tool=tool)
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
    await session.board.recorder.decided(
        session.key,
        state.turn,
        "denied",
        kind="deny",
        subject=tool.wire,
        decision="refused",
        reason=said,
        outcome="guard",
    )
    return CallAnswer(status="refused", result=result, message=said, tool=tool)


async def _use(session: Session, access: Access, state: State, tool: Tool) -> None:
    if session.stable and used(access, state, tool.id) is not state:
        await session.change(Use(tool=tool.id))


def _called(session: Session, state: State, tool: Tool, status: str, digest: str, started: float) -> None:
    session.board.recorder.called(
        session.key,
        state.turn,
        subject=tool.wire,
        outcome=status,
        duration=round((time.perf_counter() - started) * 1000, 3),
        arguments=digest,
    )


def _failure(error: PegboardError) -> str:
    match error:
        case UpstreamTimeoutError():
            return "timeout"
        case ToolUnavailableError():
            return "tool_unavailable"
        case _:
            return "error"


LOCAL = "local"
"""The principal of whoever started the process: connections that describe a server are its own."""


def pool_scope(access: Access, spec: PluginSpec, key: SessionKey) -> str:
    """Return which pool a connection is taken from: never one of another principal's (G9)."""
    agent: Agent = access.agent
    scope = access.circumstances.worker_scope or agent.worker_scope
    if scope == "user_agent":
        return f"user:{key.principal}:agent:{key.agent}"
    if scope == "user" or agent.private_per is not None:
        return f"user:{key.principal}"
    own = isinstance(spec, ServerSpec) and spec.command is not None and not spec.shared
    if own and key.principal != LOCAL:
        return f"user:{key.principal}"
    return "shared"
