"""What a call by a model comes to, before anything runs (X1, P3, P9)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pegboard.core.access.approvals.approval import Approval
from pegboard.core.access.decisions import Reason
from pegboard.core.access.logins import AwaitedLogin
from pegboard.core.access.names import ExactName, HiddenTool, NearName, UnknownName, UnseenTool, resolve_called
from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.model.agents import UnloadedCall
from pegboard.core.model.tools import CallResult, JsonObject, Plugin, Tool, why_excluded
from pegboard.core.state.active_tools import LoadedTool, active_tools
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import excluded_by_loadout, exclusion_reason, remove_dead_leases, unloaded_in_turn
from pegboard.support.encodable import encodable, encodable_text

CallStatus = Literal[
    "ok",
    "error",
    "not_found",
    "not_loaded",
    "next_request",
    "invalid_arguments",
    "tool_unavailable",
    "timeout",
    "conflict",
    "over_budget",
    "scope_incompatible",
    "refused",
    "needs_approval",
    "needs_login",
    "stopped",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A call of a loaded tool: it runs."""

    loaded: LoadedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFirst:
    """A call of a tool that is not loaded: it is loaded alone, then answered with its schema or run.

    ``renews``: its lease lapsed while the model still has its schema (D3).
    """

    tool: Tool
    then: UnloadedCall
    renews: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """A call of no tool, or of one that cannot run now; ``reason`` is for the audit.

    ``owner`` is the plugin, not asked for its tools yet, to which the tool would belong.
    """

    status: CallStatus
    message: str
    reason: Reason
    tool: Tool | None = None
    owner: str = ""


Plan = Run | LoadFirst | Refuse


def plan_call(permissions: CompiledPermissions, state: State, name: str) -> Plan:
    """Return what a call of this name comes to; permission is asked now, not when it was listed (P3)."""
    active = active_tools(permissions, remove_dead_leases(permissions, state))
    match resolve_called(permissions, name, loaded=active, used=state.recent):
        case ExactName(tool) | NearName(tool):
            return _plan_for_tool(permissions, state, tool, active.get(tool.id))
        case HiddenTool(_, reason):
            return _not_found_refusal(name, reason)
        case UnseenTool(plugin):
            return replace(_unseen_refusal(name, plugin), owner=plugin.name)
        case UnknownName():
            return _refusal_of_excluded(permissions, name) or _not_found_refusal(name, _UNKNOWN)


_UNKNOWN = Reason(code="unknown", text="There is no tool of this name.")


def _unseen_refusal(name: str, plugin: Plugin) -> Refuse:
    """Return the refusal of what would be a tool of a plugin that has not listed any: it may be one that fails (P6)."""
    fault = plugin.variant("").unavailable
    return _cannot_run(name, fault) if fault else _not_found_refusal(name, _UNKNOWN)


def _refusal_of_excluded(permissions: CompiledPermissions, name: str) -> Refuse | None:
    """Return the refusal of a tool that its plugin has in no form that can be used, or None."""
    found = permissions.world.catalog.excluded(name)
    if found is None or not permissions.may_have_tools_of(found[0]):
        return None
    return _cannot_run(name, why_excluded(*found))


def _cannot_run(name: str, why: str) -> Refuse:
    reason = Reason(code="unavailable", text=why)
    return Refuse(
        status="tool_unavailable", message=f"Tool '{_short_name(name)}' is not available: {why}", reason=reason
    )


def _short_name(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:100]}…"


def _not_found_refusal(name: str, reason: Reason) -> Refuse:
    shown = _short_name(name)
    return Refuse(status="not_found", message=f"Tool '{shown}' was not found.", reason=reason)


def _plan_for_tool(permissions: CompiledPermissions, state: State, tool: Tool, loaded: LoadedTool | None) -> Plan:
    if loaded is None:
        return _plan_of_unloaded(permissions, state, tool)
    fault = tool_fault(permissions, tool, loaded.key)
    if fault:
        return refused_as_unavailable(tool, fault)
    if loaded.pending:
        return _next_request_refusal(tool)
    return Run(loaded=loaded)


def outside_focus(tool: Tool, focus: Collection[str]) -> Refuse:
    """Return the refusal of a tool that the focus of the step, wire names, excludes (F3)."""
    message = f"'{tool.wire}' is outside the focus of this step: {', '.join(sorted(focus))}."
    return Refuse(status="refused", message=message, reason=Reason(code="focus", text=message), tool=tool)


def not_read_only_refusal(tool: Tool) -> Refuse:
    """Return the refusal of a tool that came through ``call_read_only_tool`` and may change things (G6)."""
    message = f"'{tool.wire}' may change things: call it through call_tool."
    reason = Reason(code="not_read_only", text="It does not count as read-only.")
    return Refuse(status="refused", message=message, reason=reason, tool=tool)


def same_batch(tool: Tool) -> Refuse:
    """Return the refusal of a call that started before the load of its tool was answered (D2)."""
    message = f"'{tool.wire}' was loaded in the same batch of calls; this call has not run. Call it again."
    return Refuse(status="not_loaded", message=message, reason=Reason(code="same_batch", text=message), tool=tool)


def refused_by_guard(tool: Tool, text: str) -> Refuse:
    """Return the refusal of a call that a guard of the plugin refused, in its words (T10)."""
    return Refuse(status="refused", message=text, reason=Reason(code="guard", text=text), tool=tool)


def refused_for_own_file(tool: Tool, text: str) -> Refuse:
    """Return the refusal of a call that names a file of Pegboard's own (P10)."""
    return Refuse(status="refused", message=text, reason=Reason(code="own_file", text=text), tool=tool)


def refused_as_unavailable(tool: Tool, fault: str) -> Refuse:
    """Return the refusal of a tool that cannot run now (P6)."""
    message = f"'{tool.wire}' is not available now: {fault}"
    return Refuse(status="tool_unavailable", message=message, reason=Reason(code="unavailable", text=fault), tool=tool)


def _next_request_refusal(tool: Tool) -> Refuse:
    message = f"'{tool.wire}' is loaded from the next request on. It has not run; it cannot be called in this turn."
    reason = Reason(code="next_request", text="It is loaded from the next request on.")
    return Refuse(status="next_request", message=message, reason=reason, tool=tool)


def _plan_of_unloaded(permissions: CompiledPermissions, state: State, tool: Tool) -> Plan:
    why = exclusion_reason(permissions, state, tool) if excluded_by_loadout(permissions, state, tool) else None
    if why is not None:
        return Refuse(status="not_found", message=f"Tool '{tool.wire}' was not found.", reason=why, tool=tool)
    if unloaded_in_turn(permissions, state, tool):
        message = f"'{tool.wire}' was unloaded in this turn and has not run. Load it by name if it is needed again."
        reason = Reason(code="unloaded_in_turn", text="It was unloaded in this turn, and no call loads it again in it.")
        return Refuse(status="not_loaded", message=message, reason=reason, tool=tool)
    then = permissions.agent.unloaded_call
    if then == "reject":
        message = f"'{tool.wire}' is not loaded. Load it first."
        reason = Reason(code="not_loaded", text="It is not loaded, and calls do not load.")
        return Refuse(status="not_loaded", message=message, reason=reason, tool=tool)
    return LoadFirst(tool=tool, then=then)


class CallAnswer(NamedTuple):
    """What a call came to.

    Attributes:
        status: ok, error (the tool's own), not_found, not_loaded (loaded now; its schema is in the result),
            next_request (loaded, and not to be called before), invalid_arguments, tool_unavailable, timeout,
            conflict, over_budget, scope_incompatible, refused, needs_approval, needs_login, stopped.
        result: what goes back to the model.
        message: why it did not run, or empty.
        tool: the tool that was meant, or None.
        server_error: the JSON-RPC error that a server answered with, as it stood on the wire, or None.
        approval: the approval that the call waits for (``needs_approval``), or that was refused; else None.
        login: the login that the call waits for (``needs_login``), with the id of this waiting call; else None.
        reason: the code of the true reason of a refusal, as the audit trail has it, or empty; no model reads it (P9).
    """

    status: CallStatus
    result: CallResult
    message: str = ""
    tool: Tool | None = None
    server_error: JsonObject | None = None
    approval: Approval | None = None
    login: AwaitedLogin | None = None
    reason: str = ""

    @property
    def is_error(self) -> bool:
        """Return whether the model is to take it as a failure."""
        return self.result.is_error

    def encodable(self) -> CallAnswer:
        """Return the answer with each text of it as UTF-8 can carry it, on its way to a model."""
        result = self.result
        if not self.message and result.structured is None and _are_ascii_texts(result.content):
            return self
        message = self.message and encodable_text(self.message)
        content = encodable(result.content)
        structured = None if result.structured is None else encodable(result.structured)
        if content is result.content and structured is result.structured and message is self.message:
            return self
        return self._replace(result=replace(result, content=content, structured=structured), message=message)


def _are_ascii_texts(blocks: Iterable[JsonObject]) -> bool:
    """Return whether it is seen at once that blocks have texts alone, and only ASCII, as those of most answers."""
    for block in blocks:
        for name, text in block.items():
            if not (type(text) is type(name) is str and text.isascii() and name.isascii()):
                return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """What a call would come to, decided and not made.

    Attributes:
        status: runs, needs_approval or refused.
        tool: the tool that was meant, or None.
        answer: what the call would be answered without running; None where it runs.
    """

    status: Literal["runs", "needs_approval", "refused"]
    tool: Tool | None = None
    answer: CallAnswer | None = None

    @property
    def message(self) -> str:
        """Return why it would not run, or nothing."""
        return self.answer.message if self.answer is not None else ""

    @property
    def approval(self) -> Approval | None:
        """Return the approval that the call waits for, or that was refused; None where no one was asked."""
        return self.answer.approval if self.answer is not None else None


def decision_of(decided: CallAnswer | Tool) -> CallDecision:
    """Return the decision on a call: it has an answer without running, or a tool that would run."""
    if isinstance(decided, Tool):
        return CallDecision(status="runs", tool=decided)
    status = "needs_approval" if decided.status == "needs_approval" else "refused"
    return CallDecision(status=status, tool=decided.tool, answer=decided)


def answer(status: CallStatus, message: str, *, tool: Tool | None = None, data: JsonObject | None = None) -> CallAnswer:
    """Return the answer to a call that did not run: a message, and a block of JSON where there is more."""
    blocks = [message] if data is None else [message, json.dumps(data, ensure_ascii=False)]
    content = tuple({"type": "text", "text": block} for block in blocks)
    result = CallResult(content=content, is_error=True)
    return CallAnswer(status=status, result=result, message=message, tool=tool)
