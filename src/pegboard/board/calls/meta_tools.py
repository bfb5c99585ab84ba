"""Meta-tools: which there are, how a call of one is carried through (T4, X3, G6)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pegboard.board.calls import pipeline
from pegboard.board.calls.decision_cache import CallerChannel
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.calls import CallAnswer, answer
from pegboard.core.state.sessions import Failure, State
from pegboard.core.surface import policy
from pegboard.core.surface.hints import hints, plugin_lines
from pegboard.core.surface.suffix import suffix
from pegboard.dialects.names import Done, Payload, Search, Step, View, schema_of
from pegboard.dialects.through import CALL, CALL_READ_ONLY, call_through_tools

if TYPE_CHECKING:
    from pegboard.board.session import Session

GATEWAY_HINT_TOKENS = 100
FAILURES = 2
"""Equal failures of a meta-tool in a row after which the next is not executed (X3)."""


def view(session: Session, access: CompiledPermissions, state: State) -> View:
    """Return what the dialect sees; hints only where the host says them in descriptions (F2)."""
    lines: tuple[str, ...] = ()
    if session.host.calls_through:
        lines = _gateway_lines(session, access)
    return View(access=access, state=state, stable=session.stable, hints=lines)


def _gateway_lines(session: Session, access: CompiledPermissions) -> tuple[str, ...]:
    known: tuple[str, ...] | None = access.__dict__.get("_gateway_lines")
    if known is None:
        count = session.board.parts.counter.count
        if session.dialect.hints == "tools" or session.host.cache is not None:
            known = hints(access, count, budget=access.agent.hint_tokens)
        else:
            known = plugin_lines(access, count, budget=min(GATEWAY_HINT_TOKENS, access.agent.hint_tokens))
        access.__dict__["_gateway_lines"] = known
    return known


def tools(session: Session, shown: View) -> tuple[Tool, ...]:
    """Return the meta-tools of a session: none where there is nothing to load, or no id (T4, S4)."""
    if not session.stable or not loadable(shown.access):
        return ()
    through = call_through_tools() if session.host.calls_through else ()
    return (*session.dialect.tools(shown), *through)


def find(session: Session, access: CompiledPermissions, name: str) -> Tool | None:
    """Return the meta-tool of this name; without a session id a call of one still answers (S4)."""
    known = session.own
    if known is None or known[0] is not access or known[1] is not session.host:
        known = session.own = access, session.host, _by_wire(session, access)
    return known[2].get(name)


def _by_wire(session: Session, access: CompiledPermissions) -> dict[str, Tool]:
    kept: dict[tuple[object, ...], dict[str, Tool]] = access.__dict__.setdefault("_meta_by_wire", {})
    key = session.dialect, session.stable, session.host.calls_through
    known = kept.get(key)
    if known is None:
        known = kept[key] = {tool.wire: tool for tool in _own(session, access)}
    return known


def _own(session: Session, access: CompiledPermissions) -> tuple[Tool, ...]:
    if not loadable(access):
        return ()
    shown = View(access=access, state=State(), stable=session.stable)
    through = call_through_tools() if session.host.calls_through else ()
    return (*session.dialect.tools(shown), *through)


async def call(
    session: Session, access: CompiledPermissions, tool: Tool, arguments: JsonObject, channel: CallerChannel
) -> CallAnswer:
    """Carry a call of a meta-tool through; the third equal failure in a row is not executed (X3)."""
    through = tool.wire in (CALL, CALL_READ_ONLY)
    if through and not session.board.parts.validator.problems(tool, arguments):
        return await _through(session, access, tool, arguments, channel)
    arguments = _tidied(tool, arguments)
    state = await session.state()
    if _stopped(state, tool, arguments):
        message = (
            f"'{tool.wire}' failed {FAILURES} times with the same arguments in this turn; this call "
            "was not executed. Do something else, or go on without it."
        )
        return answer("stopped", message, tool=tool)
    problems = session.board.parts.validator.problems(tool, arguments)
    if problems:
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        return await _counted(session, tool, arguments, answer("invalid_arguments", message, tool=tool))
    payload = await _converse(session, tool, arguments, state)
    blocks = [payload.text()]
    if payload.schemas:
        blocks += await _beside(session, payload)
    if session.host.calls_through:
        line = suffix(await session.access(), await session.state())
        blocks += [line] if line else []
    result = CallResult(
        content=tuple({"type": "text", "text": block} for block in blocks),
        is_error=payload.is_error,
    )
    status = "refused" if payload.is_error else "ok"
    done = CallAnswer(status=status, result=result, message=blocks[0], tool=tool)
    return await _counted(session, tool, arguments, done)


def _tidied(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return the arguments with a plain string in place of a list taken as a list of one (DESIGN §4)."""
    properties: JsonObject = tool.input_schema.get("properties", {})
    return {
        name: [value] if isinstance(value, str) and properties.get(name, {}).get("type") == "array" else value
        for name, value in arguments.items()
    }


async def _beside(session: Session, payload: Payload) -> list[str]:
    """Return the block that follows a load's payload: schemas where nothing else brings them, and policy (T6)."""
    access, state = await session.access(), await session.state()
    told: dict[str, object] = {}
    if session.host.calls_through and not payload.inline:
        told["tools"] = [schema_of(tool) for tool in payload.schemas]
    if text := policy.later(access, state, payload.schemas):
        told["policy"] = session.board.masker.text(text)
    return [json.dumps(told, ensure_ascii=False)] if told else []


async def _converse(session: Session, tool: Tool, arguments: JsonObject, state: State) -> Payload:
    """Drive the dialect: give it what its steps did until it has its payload."""
    access = await session.access()
    conversation = session.dialect.run(view(session, access, state), tool.wire, arguments)
    try:
        step = next(conversation)
        while True:
            step = conversation.send(await _step(session, step))
    except StopIteration as stop:
        payload: Payload = stop.value
        return payload


async def _step(session: Session, step: Step) -> Done:
    if isinstance(step, Search):
        found = await session.search(*step.queries, limit=step.limit)
        return Done(view=view(session, await session.access(), await session.state()), found=found)
    shown, outcome = await session.carry_out(step)
    return Done(view=shown, outcome=outcome)


async def _through(
    session: Session, access: CompiledPermissions, tool: Tool, arguments: JsonObject, channel: CallerChannel
) -> CallAnswer:
    name = str(arguments["name"])
    inner: JsonObject = arguments.get("arguments", {})
    own = find(session, access, name)
    if own is not None and own.wire not in (CALL, CALL_READ_ONLY):
        return await call(session, access, own, inner, channel)
    plugins = access.world.catalog.plugins

    def reads_only(called: Tool) -> bool:
        return session.board.claims.reads_only(plugins[called.plugin], called)

    allowed = reads_only if tool.wire == CALL_READ_ONLY else None
    return await pipeline.run(session, access, name, inner, channel, allowed=allowed)


def _digest(tool: Tool, arguments: JsonObject) -> str:
    text = json.dumps([tool.wire, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _stopped(state: State, tool: Tool, arguments: JsonObject) -> bool:
    failure = state.failure
    return failure is not None and failure.count >= FAILURES and failure.call == _digest(tool, arguments)


async def _counted(session: Session, tool: Tool, arguments: JsonObject, done: CallAnswer) -> CallAnswer:
    """Note a failure, or that something else came between (X3)."""
    if not session.stable:
        return done
    while True:
        state, version = await session.stored()
        after = replace(state, failure=_failure(state, tool, arguments, failed=done.is_error))
        if after == state:
            return done
        saved = await session.board.store.save(session.key, session.text_of(after), expected=version)
        if saved is not None:
            return done


def _failure(state: State, tool: Tool, arguments: JsonObject, *, failed: bool) -> Failure | None:
    if not failed:
        return None
    digest = _digest(tool, arguments)
    before = state.failure
    count = before.count if before is not None and before.call == digest else 0
    return Failure(call=digest, count=count + 1)
