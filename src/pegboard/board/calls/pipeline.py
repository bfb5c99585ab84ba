"""Run what a model calls: permission, arguments, the tool itself, the audit (X1, X2, X4)."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, cast

from pegboard.board.calls.approval_gate import Passed, ask_client, require_approval, waiting_answer
from pegboard.board.calls.call_request import Answered, CallRequest, deny_call, refuse_by_guard
from pegboard.board.calls.commands import record_use, run_command
from pegboard.board.calls.login_gate import after_login, missing_logins, without_login
from pegboard.board.discover import discover_called, discover_code
from pegboard.board.meta_tools import command_context, dialect_of
from pegboard.board.observability.audit import times_of_call
from pegboard.board.observability.call_details import EndedCall, details_of
from pegboard.board.services import Services
from pegboard.board.snapshot import DecidedCall, Snapshot, read_snapshot
from pegboard.core.access.approvals.demands import rules_of
from pegboard.core.access.guards import broken_rule
from pegboard.core.access.instances import login_owner, pool_scope
from pegboard.core.access.read_only import is_destructive
from pegboard.core.model.naming import did_you_mean, some_of
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool, joined_text, text_result
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.call_plans import (
    CallAnswer,
    CallStatus,
    LoadFirst,
    Plan,
    Refuse,
    Run,
    answer,
    not_read_only_refusal,
    outside_focus,
    plan_call,
    refused_for_own_file,
    same_batch,
)
from pegboard.core.state.commands import Load
from pegboard.core.state.requirements import unknown_plugins, unknown_toolkits
from pegboard.core.state.subjects import reachable
from pegboard.core.state.transitions import use_tool as with_use
from pegboard.core.surface.explanations import loaded_because
from pegboard.dialects.names import schema_of
from pegboard.errors import NeedsLoginError, PegboardError, ToolUnavailableError, UpstreamError, UpstreamTimeoutError
from pegboard.ports import CallContext, CallDetails, OtherDefinitionError

MOST_DECIDED: Final = 4096
"""How many decided calls a session object keeps."""


def run_call(call: CallRequest, snapshot: Snapshot) -> Coroutine[Any, Any, Answered]:
    """Return the session after a call of a tool, and what came of it."""
    decided = _remembered_decision(call, snapshot)
    if decided is not None and decided.rules is None:  # no one has to approve it
        return _execute(call, snapshot, decided)
    return _decide_and_run(call, snapshot, decided)


async def _decide_and_run(call: CallRequest, snapshot: Snapshot, decided: DecidedCall | CallAnswer | None) -> Answered:
    """Decide a call that may need an approval, and carry it out.

    Where its client can be asked for an approval that it needs, and answers, everything is decided again (A3).
    """
    if decided is None:
        snapshot, decided = await _decide_call(call, snapshot)
    if isinstance(decided, CallAnswer):
        return snapshot, decided
    snapshot, answered = await _execute(call, snapshot, decided)
    approval = answered.approval
    if approval is None or answered.status != "needs_approval" or call.client is None:
        return snapshot, answered
    asked = time.monotonic()
    why = await ask_client(call, call.client, approval)
    call.waited = round((time.monotonic() - asked) * 1000, 3)
    if why:
        return snapshot, waiting_answer(approval, answered.tool, why)
    snapshot, decided = await _decide_call(call, await read_snapshot(call.services, snapshot.info))
    if isinstance(decided, CallAnswer):
        return snapshot, decided
    return await _execute(call, snapshot, decided)


async def decide(call: CallRequest, snapshot: Snapshot) -> CallAnswer | Tool:
    """Return what a call comes to that does not run, else the tool that would run; nothing of it is stored."""
    decided = _remembered_decision(call, snapshot)
    if decided is None:
        snapshot, decided = await _decide_call(call, snapshot)
        if isinstance(decided, CallAnswer):
            return decided
    passed = await _check_call(call, snapshot, decided)
    return passed if isinstance(passed, CallAnswer) else decided.tool.tool


def _remembered_decision(call: CallRequest, snapshot: Snapshot) -> DecidedCall | None:
    """Return how a call runs, if one of its name was decided for these permissions and this state (P4)."""
    decided = snapshot.decided.get(call.name)
    if decided is None or decided.permissions is not snapshot.permissions:
        return None
    if decided.stored is not snapshot.stored and decided.stored != snapshot.stored:
        return None
    here = call.shown.focus is None and not call.read_only
    if not here and _refusal_of_call(call, snapshot, decided.tool.tool) is not None:
        return None
    return None if _was_called_too_early(call, decided) else decided


def _was_called_too_early(call: CallRequest, decided: DecidedCall) -> bool:
    """Return whether a call started before the load of its tool was answered, which the model is to read (D2)."""
    early = call.request.started_before_load_of(decided.tool.tool.id)
    return early and decided.permissions.agent.unloaded_call != "run"


async def _decide_call(call: CallRequest, snapshot: Snapshot) -> tuple[Snapshot, DecidedCall | CallAnswer]:
    """Return how a call runs, or the answer to one that does not; what is not loaded is loaded first (X1)."""
    call.unread, call.cautious = None, False
    snapshot, plan = await _plan_with_plugin(call, snapshot)
    if not isinstance(plan, Run) and await call.services.store.catch_up():  # done at another replica a moment ago (G14)
        snapshot, plan = await _plan_with_plugin(call, await read_snapshot(call.services, snapshot.info))
    owner = plan.owner if isinstance(plan, Refuse) and plan.tool is None and not call.deciding else ""
    if owner and (remote := call.services.loader.remote_servers([owner])):
        if missing := await missing_logins(call, snapshot, remote):
            return snapshot, without_login(call, snapshot.info.key, missing[0])
        snapshot, plan = await _plan_with_plugin(call, snapshot)
    if isinstance(plan, Refuse):
        return snapshot, await deny_call(call, snapshot, _refusal_with_hint(call, snapshot, plan), call.name)
    if isinstance(plan, LoadFirst):
        return await _loaded_first(call, snapshot, plan)
    decided = _keep_decided(call, snapshot, plan)
    if _was_called_too_early(call, decided):
        refusal = same_batch(decided.tool.tool)
        if not _may_run_unread(call, snapshot, decided.tool.tool):
            return snapshot, await _denied_with_schema(call, snapshot, refusal)
        call.unread, call.cautious = refusal, True
    return snapshot, decided


async def _denied_with_schema(call: CallRequest, snapshot: Snapshot, refusal: Refuse) -> CallAnswer:
    """Return the audited refusal of a call whose tool the model has not read yet, with the schema of the tool."""
    data = None if refusal.tool is None else schema_of(refusal.tool)
    result = answer(refusal.status, refusal.message, data=data).result
    return await deny_call(call, snapshot, refusal, call.name, result=result)


async def _plan_with_plugin(call: CallRequest, snapshot: Snapshot) -> tuple[Snapshot, Plan]:
    """Return what a call comes to, once the plugin that may have its tool has been seen (X1)."""
    plan = plan_call(snapshot.permissions, snapshot.state, call.name)
    if isinstance(plan, Refuse) and plan.tool is None:
        snapshot = await discover_called(call.services, snapshot, plan.owner)
        plan = plan_call(snapshot.permissions, snapshot.state, call.name)
    if (tool := _tool_needing_code(plan)) is not None:
        snapshot = await discover_code(call.services, snapshot, tool)
        plan = plan_call(snapshot.permissions, snapshot.state, call.name)
    if isinstance(plan, Refuse):
        return snapshot, plan
    if isinstance(plan, LoadFirst) and call.shown.still_lists(plan.tool):
        plan = replace(plan, then="run", renews=True)
    tool = plan.tool if isinstance(plan, LoadFirst) else plan.loaded.tool
    return snapshot, _refusal_of_call(call, snapshot, tool) or plan


def _tool_needing_code(plan: Plan) -> Tool | None:
    """Return the tool whose code has to answer before the plan counts; a load asks for it itself (X1)."""
    match plan:
        case Run(loaded=loaded):
            return loaded.tool
        case Refuse(status="tool_unavailable", tool=tool):
            return tool
        case _:
            return None


def _refusal_of_call(call: CallRequest, snapshot: Snapshot, tool: Tool) -> Refuse | None:
    """Return the refusal of a call that the focus or the way it came excludes, or None (F3, G6)."""
    focus = call.shown.focus
    if focus is not None and tool.wire not in focus:
        return outside_focus(tool, focus)
    if call.read_only:
        plugins = snapshot.permissions.world.catalog.plugins
        if not call.services.pins.reads_only(plugins[tool.plugin], tool):
            return not_read_only_refusal(tool)
    return None


def _keep_decided(call: CallRequest, snapshot: Snapshot, plan: Run) -> DecidedCall:
    """Return how a call runs, kept for equal ones as long as permissions and state are these."""
    services, info, permissions, tool = call.services, snapshot.info, snapshot.permissions, plan.loaded.tool
    spec, plugin = services.loader.specs[tool.plugin], permissions.world.catalog.plugins[tool.plugin]
    lapses = info.stable and tool.id not in starting_tools(permissions).head
    decided = DecidedCall(
        permissions=permissions,
        stored=snapshot.stored,
        tool=plan.loaded,
        spec=spec,
        source=services.loader.source_of(spec),
        scope=pool_scope(permissions, spec, info.pool_user),
        owner=login_owner(permissions, info.pool_user),
        guards=spec.guards,
        renews=lapses and with_use(permissions, snapshot.state, tool.id) is not snapshot.state,
        rules=rules_of(plugin, spec, tool, services.pins.claims_of(plugin.name)),
        because=next(iter(loaded_because(permissions, snapshot.state, plan.loaded)), None),
        record=permissions.agent.record.within(spec.record),
    )
    if len(snapshot.decided) >= MOST_DECIDED:
        snapshot.decided.clear()
    snapshot.decided[call.name] = decided
    return decided


def _refusal_with_hint(call: CallRequest, snapshot: Snapshot, refusal: Refuse) -> Refuse:
    """Return a refusal with what may have been meant, or what is not known yet, where nothing was found (P9, X1)."""
    if refusal.status != "not_found":
        return refusal
    hint = did_you_mean(call.name, (tool.wire for tool in reachable(snapshot.permissions, snapshot.state)))
    return replace(
        refusal, message=f"{refusal.message} {hint or _unknown_plugins_text(call.services, snapshot)}".strip()
    )


def _unknown_plugins_text(services: Services, snapshot: Snapshot) -> str:
    """Return what may have a tool that is not known, under the names by which the dialect loads it (X1)."""
    permissions = snapshot.permissions
    if not snapshot.info.stable:
        return ""
    if dialect_of(services, permissions).name == "toolkits":
        names = unknown_toolkits(permissions)
        return f"The tools of these toolkits are not all known yet: {some_of(names)}." if names else ""
    names = unknown_plugins(permissions)
    return f"The tools of these plugins are not known yet, load one to see them: {some_of(names)}." if names else ""


async def _loaded_first(
    call: CallRequest, snapshot: Snapshot, plan: LoadFirst
) -> tuple[Snapshot, DecidedCall | CallAnswer]:
    """Load the called tool alone, and return how the call runs now, or the answer with the schema of the tool (X1)."""
    services, tool = call.services, plan.tool
    command = Load(names=(f"tool:{tool.id}",), renews=plan.renews)
    request = None if plan.renews else call.request
    snapshot, outcome = await run_command(services, snapshot, command, request, deciding=call.deciding)
    if outcome.status != "ok":
        item = outcome.items[0]
        return snapshot, answer(cast("CallStatus", item.status), item.message, tool=tool)
    later = command_context(services, snapshot.info, snapshot.permissions).from_next_turn and not plan.renews
    loaded = plan_call(snapshot.permissions, snapshot.state, call.name)
    tool = loaded.loaded.tool if isinstance(loaded, Run) else tool  # its code may have changed since it was known
    when = "It can be called from the next request on, not in this turn." if later else "Call it again."
    message = f"'{tool.wire}' has just been loaded and was not run. {when}"
    policy = {"policy": outcome.policy} if outcome.policy else {}
    unread = answer("not_loaded", message, tool=tool, data={**schema_of(tool), **policy})
    at_once = plan.then == "run" or (plan.then == "safe" and _may_run_unread(call, snapshot, tool))
    if later or not at_once or not isinstance(loaded, Run):
        return snapshot, unread
    call.unread, call.cautious = unread, plan.then == "safe"
    return snapshot, _keep_decided(call, snapshot, loaded)


def _may_run_unread(call: CallRequest, snapshot: Snapshot, tool: Tool) -> bool:
    """Return whether a call may run though the model may not have read the schema of its tool (X1: ``safe``).

    It came through ``call_tool`` and destroys nothing. Its arguments have to fit, and no approval may be due, which
    :func:`_checked` sees.
    """
    return snapshot.permissions.agent.unloaded_call == "safe" and call.passed_on and not is_destructive(tool)


async def _execute(call: CallRequest, snapshot: Snapshot, decided: DecidedCall, *, again: bool = True) -> Answered:
    """Check a call, run the tool, and audit what came of it (X2, T10, A1, X4).

    ``again``: it is made once more after a login that its server turned out to want (G11), and is decided once more
    where its server turned out to list another definition of the tool (A4).
    """
    services, tool, recorder = call.services, decided.tool.tool, call.services.recorder
    call.digest, call.sent = recorder.measure_arguments(call.arguments, recorder.keyed or await recorder.take_key())
    call.started, call.ran = time.monotonic(), None
    arguments = call.arguments if _is_plain(call, decided) else await _check_call(call, snapshot, decided)
    if isinstance(arguments, CallAnswer):
        if arguments.status in ("invalid_arguments", "ok"):
            _note_call(call, snapshot, decided, arguments.status, answer=arguments)
        return snapshot, arguments
    context = _context_of(call, snapshot, decided)
    if decided.renews:
        snapshot = await record_use(services, snapshot, tool.id)
    call.ran, call.handed = time.monotonic(), True
    try:
        result = await decided.source.call(decided.spec, decided.tool.overrides, tool, arguments, context)
    except OtherDefinitionError:
        call.handed = False
        return await _decide_after_change(call, snapshot, decided, again=again)
    except NeedsLoginError as error:
        call.handed = False
        failed = await after_login(call, snapshot.info.key, decided, error)
        if failed is None and again:
            return await _execute(call, snapshot, decided, again=False)
        failed = failed or _error_answer(services, tool, error)
        _note_call(call, snapshot, decided, failed.status, error=services.masker.text(error.message))
        return snapshot, failed
    except PegboardError as error:
        failed = _error_answer(services, tool, error)
        _note_call(call, snapshot, decided, failed.status, error=failed.message)
        return snapshot, failed
    except BaseException:
        _note_call(call, snapshot, decided, "cancelled")
        raise
    if not isinstance(decided.spec, ServerSpec) and result.is_error:
        result = replace(result, content=tuple(services.masker.value(result.content)))
    if result.meta and result.meta.get("pegboard/refused_by") == "guard":
        return snapshot, await refuse_by_guard(call, snapshot, tool, result)
    answered = CallAnswer(status="error" if result.is_error else "ok", result=result, tool=tool)
    error = joined_text(result) if result.is_error else ""
    _note_call(call, snapshot, decided, answered.status, error=error, answer=answered)
    if decided.permissions.agent.remember and answered.status == "ok":
        _remember_use(services, snapshot, tool)
    return snapshot, answered


async def _decide_after_change(call: CallRequest, snapshot: Snapshot, decided: DecidedCall, *, again: bool) -> Answered:
    """Decide a call once more whose server lists another definition of the tool by now, or none (A4)."""
    tool = decided.tool.tool
    listed = call.services.loader.catalog.by_id(tool.id) is not None
    if listed and again:
        snapshot, changed = await _decide_call(call, await read_snapshot(call.services, snapshot.info))
        if isinstance(changed, CallAnswer):
            return snapshot, changed
        return await _execute(call, snapshot, changed, again=False)
    why = "lists it with another definition here" if listed else "no longer lists it"
    failed = answer("tool_unavailable", f"'{tool.wire}' was not called: its server {why}.", tool=tool)
    _note_call(call, snapshot, decided, failed.status, error=failed.message)
    return snapshot, failed


def _remember_use(services: Services, snapshot: Snapshot, tool: Tool) -> None:
    """Remember which needs a call that worked has answered."""
    info = snapshot.info
    if needs := info.conversation.add_call(tool.id, snapshot.state.turn):
        services.uses.remember(info.key, needs, tool.id)


def _is_plain(call: CallRequest, decided: DecidedCall) -> bool:
    """Return whether it is seen at once that nothing holds a call back, as with most: :func:`_checked` lets it run."""
    if decided.guards or decided.rules is not None or call.lost is not None:
        return False
    services, arguments = call.services, call.arguments
    return services.validator.fits(decided.tool.tool, arguments) and services.own_files.clears(
        decided.spec, decided.tool.overrides, arguments
    )


async def _check_call(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> Passed:
    """Return the arguments that a call runs with, else the answer: they fit, guards and the gate let it through."""
    tool, unread = decided.tool.tool, call.unread
    if call.lost is not None and (message := call.lost(tool)):
        return answer("invalid_arguments", message, tool=tool, data=schema_of(tool))
    passed = await _pass_guards(call, snapshot, decided)
    if unread is None or not isinstance(passed, CallAnswer):
        return passed
    if passed.status == "invalid_arguments" or (passed.status == "needs_approval" and call.cautious):
        return unread if isinstance(unread, CallAnswer) else await _denied_with_schema(call, snapshot, unread)
    return passed


async def _pass_guards(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> Passed:
    tool = decided.tool.tool
    if (misfit := await _answer_to_misfit(call, snapshot, decided)) is not None:
        return misfit
    if decided.guards and (rule := broken_rule(decided.guards, tool, call.arguments)):
        return await refuse_by_guard(call, snapshot, tool, text_result(rule, is_error=True))
    if not call.services.own_files.clears(decided.spec, decided.tool.overrides, call.arguments):
        refused = await _refused_for_own_file(call, snapshot, decided)
        if refused is not None:
            return refused
    if decided.rules is None:
        return call.arguments
    return await require_approval(call, snapshot, decided, decided.rules, _context_of(call, snapshot, decided))


async def _answer_to_misfit(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> CallAnswer | None:
    """Return the answer to arguments that do not fit, or cannot be checked, or None (X2)."""
    tool = decided.tool.tool
    try:
        problems = await call.services.validator.problems(tool, call.arguments)
    except ToolUnavailableError as error:
        failed = _error_answer(call.services, tool, error)
        if not call.deciding:
            _note_call(call, snapshot, decided, failed.status, error=failed.message)
        return failed
    if not problems:
        return None
    message = f"The arguments of '{tool.wire}' do not fit: {'; '.join(problems)}."
    return answer("invalid_arguments", message, tool=tool, data=schema_of(tool))


async def _refused_for_own_file(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> CallAnswer | None:
    """Return the refusal of arguments that name Pegboard's own files, or None (P10)."""
    services, tool = call.services, decided.tool.tool
    reading = services.pins.reads_only(decided.permissions.world.catalog.plugins[tool.plugin], tool)
    own = await services.own_files.refusal(decided.spec, decided.tool.overrides, tool, call.arguments, reading=reading)
    return await deny_call(call, snapshot, refused_for_own_file(tool, own), tool.wire) if own else None


def _context_of(call: CallRequest, snapshot: Snapshot, decided: DecidedCall) -> CallContext:
    """Return what a source is told of a call (G9, G11)."""
    key = snapshot.info.key
    return CallContext(
        key.principal, key.agent, key.session, decided.scope, decided.owner, call.progress, call.client, call.meta
    )


def _error_answer(services: Services, tool: Tool, error: PegboardError) -> CallAnswer:
    """Return the answer to a call that its source could not bring to an end."""
    message = services.masker.text(error.text)
    failed = answer(failure_of(error), message, tool=tool)
    return failed._replace(server_error=error.answer) if isinstance(error, UpstreamError) else failed


def _note_call(
    call: CallRequest,
    snapshot: Snapshot,
    decided: DecidedCall,
    status: str,
    *,
    error: str = "",
    answer: CallAnswer | None = None,
) -> None:
    """Note a call in the trail; where it failed, the error is its reason (X4)."""
    recorder, info, tool, kept = call.services.recorder, snapshot.info, decided.tool.tool, decided.record
    refused = status == "invalid_arguments"
    reason = "Its arguments do not fit." if refused else error if kept.errors else ""
    if refused and answer is not None:
        error = answer.message
    now = time.monotonic()
    duration = int((now - call.started) * 1_000_000) / 1000
    entry = recorder.entry(
        info.key, snapshot.state.turn, "call", tool.id, "refused" if refused else "allowed", reason=reason,
        duration=duration, outcome=status, arguments=call.digest, by=info.by,
    )  # fmt: skip
    result = None if answer is None else answer.result
    numbers = times_of_call(call.came, call.ran, now, waited=call.waited, sent=call.sent, result=result)
    asked_nobody = not call.approved and call.waited is None
    worked = result is not None and not result.is_error and not error
    if worked and asked_nobody and not (kept.arguments or kept.results):  # the line has all that is wanted
        details = CallDetails(numbers, "", kept.days)
    else:
        ended = EndedCall(tool.id, call.arguments, numbers, decided.because, call.approved, error, result)
        details = details_of(recorder.masker, kept, ended)
    recorder.note_later(entry, "called", details)


def failure_of(error: PegboardError) -> CallStatus:
    """Return the status of a request that failed this way."""
    match error:
        case UpstreamTimeoutError():
            return "timeout"
        case ToolUnavailableError():
            return "tool_unavailable"
        case _:
            return "error"
