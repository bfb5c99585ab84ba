"""Carry a call of a meta-tool through (T4, X3, G6)."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import Final

from pegboard.board.calls import pipeline
from pegboard.board.calls.call_request import Answered, CallRequest
from pegboard.board.calls.commands import carry_out
from pegboard.board.calls.duty_calls import call_duty, is_duty
from pegboard.board.meta_tools import dialect_of
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.snapshot import Change, Snapshot, change, view_of
from pegboard.board.views.policy_hooks import later_policy
from pegboard.board.views.search import search
from pegboard.core.model.delivery import choose
from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.state.sessions import Failure, State
from pegboard.core.surface.surfaces import suffix
from pegboard.dialects.call_tool import CALL, CALL_READ_ONLY
from pegboard.dialects.names import Done, Payload, Search, Step, schema_of
from pegboard.errors import StoreError

log = logging.getLogger(__name__)

SEARCH_TOOLS: Final = "search_tools"
"""The meta-tool that loads only what it can."""
FAILURES: Final = 2
"""Equal failures of a meta-tool in a row after which the next is not executed (X3)."""


async def call_meta_tool(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Answered:
    """Return the session after a call of a meta-tool, and its answer.

    The third equal failure in a row is not executed (X3).
    """
    services = call.services
    if tool.wire in (CALL, CALL_READ_ONLY) and not services.validator.problems(tool, call.arguments):
        return await _through(call, snapshot, tool)
    if not is_duty(tool):
        services.metrics.meta_called(snapshot.info.key)
    call = replace(call, arguments=_tidied(tool, call.arguments))
    if _stopped(snapshot.state, tool, call.arguments):
        message = (
            f"'{tool.wire}' failed {FAILURES} times with the same arguments in this turn; this call "
            "was not executed. Do something else, or go on without it."
        )
        return snapshot, answer("stopped", message, tool=tool)
    if problems := services.validator.problems(tool, call.arguments):
        message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
        done = answer("invalid_arguments", message, tool=tool)
    else:
        snapshot, done = await _executed(call, snapshot, tool)
    return await _counted(services, snapshot, tool, call.arguments, failed=_is_failure(done)), done


def _is_failure(done: CallAnswer) -> bool:
    """Return whether an answer counts as a failure: one that waits for a person does not (X3)."""
    return done.is_error and done.status != "needs_approval"


async def _executed(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Answered:
    services = call.services
    if is_duty(tool):
        return await call_duty(services, snapshot, tool, call.arguments)
    snapshot, payload = await _converse(call, snapshot, tool)
    blocks = [payload.text()]
    if payload.schemas:
        blocks += await _beside(services, snapshot, payload)
    if snapshot.info.host.calls_through:
        line = suffix(snapshot.permissions, snapshot.state)
        blocks += [line] if line else []
    content = tuple({"type": "text", "text": block} for block in blocks)
    result = CallResult(content=content, is_error=payload.is_error)
    status = "refused" if payload.is_error else "ok"
    return snapshot, CallAnswer(status=status, result=result, message=blocks[0], tool=tool)


def _tidied(tool: Tool, arguments: JsonObject) -> JsonObject:
    """Return the arguments with a plain string in place of a list taken as a list of one."""
    properties: JsonObject = tool.input_schema.get("properties", {})
    return {
        name: [value] if isinstance(value, str) and properties.get(name, {}).get("type") == "array" else value
        for name, value in arguments.items()
    }


async def _beside(services: Services, snapshot: Snapshot, payload: Payload) -> list[str]:
    """Return the block that follows a load's payload: schemas where nothing else brings them, and policy (T6)."""
    block: dict[str, object] = {}
    host = snapshot.info.host
    if (host.calls_through or choose(host) == "result") and not payload.inline:
        block["tools"] = [schema_of(tool) for tool in payload.schemas]
    if text := await later_policy(services, snapshot.permissions, snapshot.state, payload.schemas):
        block["policy"] = text
    return [json.dumps(block, ensure_ascii=False)] if block else []


async def _converse(call: CallRequest, snapshot: Snapshot, tool: Tool) -> tuple[Snapshot, Payload]:
    """Drive the dialect: give it what its steps did until it has its payload."""
    dialect = dialect_of(call.services, snapshot.permissions)
    conversation = dialect.run(view_of(call.services, snapshot), tool.wire, call.arguments)
    try:
        step = next(conversation)
        while True:
            snapshot, done = await _step(call.services, snapshot, step, tool.wire, call.request)
            step = conversation.send(done)
    except StopIteration as stop:
        payload: Payload = stop.value
        return snapshot, payload


async def _step(
    services: Services, snapshot: Snapshot, step: Step, called: str, request: Request
) -> tuple[Snapshot, Done]:
    """Return what a step did; a search whose load cannot be stored answers without it."""
    if isinstance(step, Search):
        snapshot, found = await search(services, snapshot, step)
        services.metrics.searched(snapshot.info.key)
        return snapshot, Done(view=view_of(services, snapshot), found=found, count=services.counter.count)
    try:
        snapshot, outcome = await carry_out(services, snapshot, step, request)
    except StoreError as error:
        if called != SEARCH_TOOLS:
            raise
        log.warning("a search loads nothing: %s", error)
        return snapshot, Done(view=view_of(services, snapshot))
    return snapshot, Done(view=view_of(services, snapshot), outcome=outcome)


async def _through(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Answered:
    """Call the tool that ``call_tool`` or ``call_read_only_tool`` names; meta-tools can be named, not these two."""
    inner: JsonObject = call.arguments.get("arguments", {})
    call = replace(call, name=str(call.arguments["name"]), arguments=inner, read_only=tool.wire == CALL_READ_ONLY)
    meta_tool = snapshot.meta_tools.get(call.name)
    if meta_tool is not None and meta_tool.wire not in (CALL, CALL_READ_ONLY):
        return await call_meta_tool(call, snapshot, meta_tool)
    return await pipeline.run(call, snapshot)


def _digest(tool: Tool, arguments: JsonObject) -> str:
    try:
        text = json.dumps([tool.wire, arguments], sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):  # not JSON: all of these count as equal
        text = tool.wire
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _stopped(state: State, tool: Tool, arguments: JsonObject) -> bool:
    failure = state.failure
    return failure is not None and failure.count >= FAILURES and failure.call == _digest(tool, arguments)


async def _counted(
    services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject, *, failed: bool
) -> Snapshot:
    """Return the session once a failure is counted, or that something else came between (X3)."""

    def decide(newest: Snapshot) -> Change[None]:
        failure = _failure(newest.stored, tool, arguments) if failed else None
        return Change(state=replace(newest.stored, failure=failure), result=None)

    if not snapshot.info.stable or (not failed and snapshot.stored.failure is None):
        return snapshot
    return (await change(services, snapshot, decide))[0]


def _failure(state: State, tool: Tool, arguments: JsonObject) -> Failure:
    digest, before = _digest(tool, arguments), state.failure
    count = before.count if before is not None and before.call == digest else 0
    return Failure(call=digest, count=count + 1)
