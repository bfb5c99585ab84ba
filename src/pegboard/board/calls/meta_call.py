"""Carry a call of a meta-tool through (T4, X3, G6)."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from functools import partial
from typing import Final

from pegboard.board.calls import pipeline
from pegboard.board.calls.call_request import Answered, CallRequest, arguments_fit
from pegboard.board.calls.commands import run_command
from pegboard.board.calls.host_tool_calls import call_host_tool, unavailable_host_tool
from pegboard.board.calls.login_gate import LoginImpossible, NotLoggedIn, missing_logins
from pegboard.board.discover import discover_named, named_plugins
from pegboard.board.meta_tools import dialect_of
from pegboard.board.observability.conversations import Request
from pegboard.board.services import Services
from pegboard.board.snapshot import DecidedChange, Snapshot, change, view_of
from pegboard.board.views.search import note_search, search
from pegboard.board.views.surface import changed_policy, later_policy
from pegboard.core.model.delivery import choose
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.core.model.written_arguments import declared_arguments
from pegboard.core.state.call_plans import CallAnswer, answer
from pegboard.core.state.commands import Load
from pegboard.core.state.sessions import Failure, State
from pegboard.core.surface.surfaces import suffix
from pegboard.dialects.given_arguments import why_arguments_lost, why_mistaken
from pegboard.dialects.names import CALL_READ_ONLY, PASS_ON, DialectStep, MetaToolAnswer, Search, StepAnswer, schema_of
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
    call, services = _with_coerced_arguments(call, tool), call.services
    if await _is_for_named_tool(call, tool):
        inner, meta_tool = _inner(call, snapshot, tool)
        if meta_tool is not None:
            return await call_meta_tool(inner, snapshot, meta_tool)
        return await pipeline.run_call(inner, snapshot)
    if tool.wire not in HOST_TOOLS:
        services.metrics.meta_called(snapshot.info.key)
    done = await _answer_without_executing(call, snapshot, tool)
    if done is None:
        snapshot, done = await _run_meta_tool(call, snapshot, tool)
    if done.status == "stopped":
        return snapshot, done
    return await _count_failure(services, snapshot, tool, call.arguments, failed=_is_failure(done)), done


async def decide_meta_call(call: CallRequest, snapshot: Snapshot, tool: Tool) -> CallAnswer | Tool:
    """Return what a call of a meta-tool comes to without being executed, else the tool that would run."""
    call = _with_coerced_arguments(call, tool)
    if not await _is_for_named_tool(call, tool):
        return await _answer_without_executing(call, snapshot, tool) or tool
    inner, meta_tool = _inner(call, snapshot, tool)
    if meta_tool is not None:
        return await decide_meta_call(inner, snapshot, meta_tool)
    return await pipeline.decide(inner, snapshot)


async def _answer_without_executing(call: CallRequest, snapshot: Snapshot, tool: Tool) -> CallAnswer | None:
    """Return the answer to a call of a meta-tool that is not executed, or None (X2, X3, P6)."""
    if _is_stopped(snapshot.state, tool, call.arguments):
        message = (
            f"'{tool.wire}' failed {FAILURES} times with the same arguments in this turn; this call "
            "was not executed. Do something else, or go on without it."
        )
        return answer("stopped", message, tool=tool)
    problems = await call.services.validator.problems(tool, call.arguments)
    message = "" if call.lost is None else call.lost(tool)
    if message := message or why_mistaken(tool, call.arguments, problems):
        return answer("invalid_arguments", message, tool=tool)
    return await unavailable_host_tool(call, snapshot, tool) if tool.wire in HOST_TOOLS else None


def _is_failure(done: CallAnswer) -> bool:
    """Return whether an answer counts as a failure: one that waits for a person does not (X3)."""
    return done.result.is_error and done.status != "needs_approval"


async def _run_meta_tool(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Answered:
    services = call.services
    if tool.wire in HOST_TOOLS:
        return await call_host_tool(services, snapshot, tool, call.arguments)
    missing: list[NotLoggedIn | LoginImpossible] = []
    snapshot, payload = await _drive_dialect(call, snapshot, tool, missing)
    blocks = [payload.text(), *(one.text for one in missing)]
    if payload.schemas:
        blocks += await _block_after_load(services, snapshot, payload)
    if snapshot.info.host.calls_through:
        parts = (suffix(snapshot.permissions, snapshot.state), await changed_policy(services, snapshot))
        blocks += ["\n\n".join(filter(None, parts))] if any(parts) else []
    content = tuple({"type": "text", "text": block} for block in blocks)
    result = CallResult(content=content, is_error=payload.is_error)
    status = "refused" if payload.is_error else "ok"
    return snapshot, CallAnswer(status=status, result=result, message=blocks[0], tool=tool)


def _with_coerced_arguments(call: CallRequest, tool: Tool) -> CallRequest:
    """Return a call of a meta-tool with its arguments as its schema wants them, however the model wrote them."""
    return replace(call, arguments=declared_arguments(call.arguments, tool.input_schema))


async def _block_after_load(services: Services, snapshot: Snapshot, payload: MetaToolAnswer) -> list[str]:
    """Return the block that follows a load's payload: schemas where nothing else brings them, and policy (T6)."""
    block: dict[str, object] = {}
    host = snapshot.info.host
    if (host.calls_through or choose(host) == "result") and not payload.inline:
        block["tools"] = [schema_of(tool) for tool in payload.schemas]
    if text := await later_policy(services, snapshot.permissions, snapshot.state, payload.schemas):
        block["policy"] = text
    return [json.dumps(block, ensure_ascii=False)] if block else []


async def _drive_dialect(
    call: CallRequest, snapshot: Snapshot, tool: Tool, missing: list[NotLoggedIn | LoginImpossible]
) -> tuple[Snapshot, MetaToolAnswer]:
    """Drive the dialect: give it what its steps did until it has its payload.

    ``missing`` takes the logins that are wanting for what a step loads, once the client was asked for them, or why none
    can be made (G11).
    """
    dialect = dialect_of(call.services, snapshot.permissions)
    conversation = dialect.run(view_of(call.services, snapshot), tool.wire, call.arguments)
    try:
        step = next(conversation)
        while True:
            if isinstance(step, Load) and tool.wire != SEARCH_TOOLS:
                snapshot = await _log_in_to_servers(call, snapshot, step, missing)
            snapshot, done = await _step(call.services, snapshot, step, tool.wire, call.request)
            step = conversation.send(done)
    except StopIteration as stop:
        payload: MetaToolAnswer = stop.value
        return snapshot, payload


async def _log_in_to_servers(
    call: CallRequest, snapshot: Snapshot, load: Load, missing: list[NotLoggedIn | LoginImpossible]
) -> Snapshot:
    """Return the session once the client was asked for the logins that remote servers want which a load names (G11)."""
    remote = call.services.loader.remote_servers(named_plugins(snapshot.permissions, load))
    if remote:
        snapshot = await discover_named(call.services, snapshot, load)
        missing += await missing_logins(call, snapshot, remote)
    return snapshot


async def _step(
    services: Services, snapshot: Snapshot, step: DialectStep, called: str, request: Request
) -> tuple[Snapshot, StepAnswer]:
    """Return what a step did; a search whose load cannot be stored answers without it."""
    if isinstance(step, Search):
        snapshot, found = await search(services, snapshot, step)
        note_search(services, snapshot, step, found)
        return snapshot, StepAnswer(view=view_of(services, snapshot), found=found, count=services.counter.count)
    try:
        snapshot, outcome = await run_command(services, snapshot, step, request)
    except StoreError as error:
        if called != SEARCH_TOOLS:
            raise
        log.warning("the search did not load the tool: %s", error)
        return snapshot, StepAnswer(view=view_of(services, snapshot))
    return snapshot, StepAnswer(view=view_of(services, snapshot), outcome=outcome)


async def _is_for_named_tool(call: CallRequest, tool: Tool) -> bool:
    """Return whether a call is for the tool that its arguments name."""
    return tool.wire in PASS_ON and await arguments_fit(call, tool)


def _inner(call: CallRequest, snapshot: Snapshot, tool: Tool) -> tuple[CallRequest, Tool | None]:
    """Return the call that ``call_tool`` or ``call_read_only_tool`` passes on, and the meta-tool that it names.

    Meta-tools can be named, not these two.
    """
    arguments: JsonObject = call.arguments.get("arguments", {})
    name, read_only = str(call.arguments["name"]), tool.wire == CALL_READ_ONLY
    inner = replace(call, name=name, arguments=arguments, read_only=read_only, passed_on=True)
    if len(arguments) == 1 or not call.arguments.keys() <= tool.input_schema["properties"].keys():
        inner.lost = partial(why_arguments_lost, tool, call.arguments)
    meta_tool = snapshot.meta_tools.get(name)
    return inner, None if meta_tool is None or meta_tool.wire in PASS_ON else meta_tool


def _digest(tool: Tool, arguments: JsonObject) -> str:
    try:
        text = json.dumps([tool.wire, arguments], sort_keys=True, default=str)
    except (ValueError, TypeError, RecursionError):  # not JSON: all of these count as equal
        text = tool.wire
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _is_stopped(state: State, tool: Tool, arguments: JsonObject) -> bool:
    failure = state.failure
    return failure is not None and failure.count >= FAILURES and failure.call == _digest(tool, arguments)


async def _count_failure(
    services: Services, snapshot: Snapshot, tool: Tool, arguments: JsonObject, *, failed: bool
) -> Snapshot:
    """Return the session once a failure is counted, or that something else came between (X3)."""

    def decide(newest: Snapshot) -> DecidedChange[None]:
        failure = _failure(newest.stored, tool, arguments) if failed else None
        return DecidedChange(state=replace(newest.stored, failure=failure), result=None)

    if not snapshot.info.stable or (not failed and snapshot.stored.failure is None):
        return snapshot
    return (await change(services, snapshot, decide))[0]


def _failure(state: State, tool: Tool, arguments: JsonObject) -> Failure:
    digest, before = _digest(tool, arguments), state.failure
    count = before.count if before is not None and before.call == digest else 0
    return Failure(call=digest, count=count + 1)
