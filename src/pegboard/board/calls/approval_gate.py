"""The gate before a call that a person approves: what it needs, who gave it, and who is asked for it (A1–A3, T13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pegboard.board.calls.approvals import Approvals
from pegboard.board.calls.call_request import CallRequest, refuse_by_guard
from pegboard.board.services import Services
from pegboard.board.snapshot import DecidedCall, Snapshot
from pegboard.core.access.approvals.approval import Approval, Binding, Decider, counting_approval, why_mismatch
from pegboard.core.access.approvals.demands import Demand, ToolRules, demand_of
from pegboard.core.access.approvals.digests import binding_of, canonical, digest, require_json
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, CallStatus, answer
from pegboard.errors import StoreError, ToolUnavailableError, UsageError
from pegboard.ports import AskRefusedError, AuditRecord, CallContext, Client, HasHooks, HookAnswer
from pegboard.support.backoff import Backoff
from pegboard.support.visible_text import visible

LONGEST: Final = 64 * 1024
"""How many bytes of JSON the arguments may have that a person is asked about."""
MOST_WAITING: Final = 100
"""How many calls of one session may wait for a person."""
MOST_OF_PRINCIPAL: Final = 200
"""How many calls of one principal may wait for a person, in all sessions and of all agents."""
LARGEST_OF_PRINCIPAL: Final = 2 * 1024 * 1024
"""How many bytes of JSON the arguments may have in all of one principal's calls that wait."""
_NOT_JSON: Final = (
    "a number that JSON does not have (NaN, Infinity), half of a character, or nested too deeply. No one was asked."
)
_NO_DEMAND: Final = HookAnswer()

Passed = CallAnswer | JsonObject
"""The answer to a call that does not run, or the arguments that it runs with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedCall:
    """A call that a person has to approve; ``text`` is its arguments as JSON."""

    call: CallRequest
    snapshot: Snapshot
    tool: Tool
    demand: Demand
    text: str
    binding: Binding

    @property
    def services(self) -> Services:
        """Return the services of the board."""
        return self.call.services

    @property
    def decider(self) -> Decider:
        """Return who may answer: as the rule says, else as the configuration does (A5)."""
        return self.demand.decider or self.snapshot.permissions.agent.approvals_by

    def audit_records(self, decision: str, approval: Approval) -> tuple[AuditRecord, ...]:
        """Return the record that something became of an approval by a call."""
        snapshot, recorder = self.snapshot, self.services.recorder
        return (
            recorder.entry(
                snapshot.info.key, snapshot.state.turn, "approval", self.tool.id, decision,
                reason=approval.reason, outcome=approval.id, arguments=self.call.digest,
            ),
        )  # fmt: skip


async def require_approval(
    call: CallRequest, snapshot: Snapshot, decided: DecidedCall, rules: ToolRules, context: CallContext
) -> Passed:
    """Return the arguments that a call runs with, or the answer to one that waits for a person or is refused."""
    services, tool = call.services, decided.tool.tool
    demand = demand_of(rules, tool, call.arguments)
    if demand is None and not rules.hook:
        return call.arguments
    hooks = _NO_DEMAND
    if isinstance(decided.source, HasHooks):
        try:
            hooks = await decided.source.ask_hooks(decided.spec, decided.tool.overrides, tool, call.arguments, context)
        except ToolUnavailableError as error:
            return answer("tool_unavailable", services.masker.text(error.text), tool=tool)
    if hooks.refused:
        return await refuse_by_guard(call, snapshot, tool, text_result(hooks.refused, is_error=True))
    if demand is None:
        if not hooks.approval:
            return call.arguments
        demand = Demand(reason=hooks.approval)
    if (refused := _refuse_unanswerable(snapshot, tool, demand)) is not None:
        return refused
    gated = await _describe_gated_call(call, snapshot, decided, rules, demand)
    return gated if isinstance(gated, CallAnswer) else await _answer_by_approvals(gated)


def _refuse_unanswerable(snapshot: Snapshot, tool: Tool, demand: Demand) -> CallAnswer | None:
    """Return the answer to a call that no one can be asked about in this session."""
    if demand.kind == "external" and snapshot.info.host.calls_through:
        message = (
            f"'{tool.wire}' is not available here: the host program runs it and passes its result in, which "
            "only a program that uses Pegboard as a library can do."
        )
        return answer("tool_unavailable", message, tool=tool)
    if not snapshot.info.stable:
        message = f"'{tool.wire}' needs the approval of a person ({demand.reason}), which requires a stable session_id."
        return answer("refused", message, tool=tool)
    return None


async def _describe_gated_call(
    call: CallRequest, snapshot: Snapshot, decided: DecidedCall, rules: ToolRules, demand: Demand
) -> GatedCall | CallAnswer:
    tool, key = decided.tool.tool, await call.services.store.digest_key()
    try:
        text = canonical(call.arguments)
        require_json(call.arguments)
    except (ValueError, TypeError, RecursionError):
        message = f"The arguments of '{tool.wire}' are not JSON: {_NOT_JSON}"
        return answer("refused", message, tool=tool)
    variant, fingerprint = decided.tool.key, decided.source.fingerprint(decided.spec)
    later = call.services.pins.later_digest(tool)
    binding = binding_of(
        key, snapshot.info.key, tool, digest(key, text), rules.in_force, variant, fingerprint, later=later
    )
    return GatedCall(call=call, snapshot=snapshot, tool=tool, demand=demand, text=text, binding=binding)


async def _answer_by_approvals(gated: GatedCall) -> Passed:
    """Return what the approvals come to; where another call uses one first, they are read again."""
    call, tool = gated.call, gated.tool
    while True:
        approval = await _approval_for(gated)
        if approval is None:
            return await _request_approval(gated) if call.approval is None else _answer_outdated(gated, call.approval)
        match approval.status, approval.lasts:
            case "allowed", "once":
                call.approved = approval.id
                arguments = await _arguments(gated, approval)
                if isinstance(arguments, CallAnswer) or call.deciding or await _mark_used(gated, approval):
                    return arguments
            case "allowed", _:
                call.approved = approval.id
                return call.arguments
            case "waiting", _:
                if call.result is None or gated.demand.kind != "external":
                    return waiting_answer(approval, tool)
                if await _mark_used(gated, approval):
                    return CallAnswer(status="ok", result=call.result, tool=tool)
            case _:
                return declined_answer(approval, tool)


async def _approval_for(gated: GatedCall) -> Approval | None:
    """Return the approval that decides the call; one that is resumed is decided by its own alone."""
    store, resumed = gated.services.store, gated.call.approval
    if resumed is None:
        known = await store.approvals_for(gated.binding)
    else:
        newest = await store.approval(resumed.id)
        known = () if newest is None else (newest,)
    return counting_approval(gated.binding, known, store.clock(), gated.decider)


async def _mark_used(gated: GatedCall, approval: Approval) -> bool:
    """Return whether this call is the one that uses the approval: it is marked so before anything runs (A2)."""
    used = replace(approval, status="used", arguments=Frozen())
    audit = gated.audit_records("used", approval)
    stored = await gated.services.store.change_approval(used, expected=approval.status, audit=audit)
    if stored:
        gated.services.unkept.drop(approval.id)
        gated.services.recorder.emit("approval_used", audit[0])
    return stored


async def _arguments(gated: GatedCall, approval: Approval) -> Passed:
    """Return what an approved call runs with: what the model gave, and what a person filled in."""
    if approval.kind != "user_input":
        return gated.call.arguments
    filled = gated.services.unkept.get(approval.id) or approval.arguments
    key = await gated.services.store.digest_key()
    if digest(key, canonical(filled)) == approval.binding.arguments:
        return filled
    message = (
        f"What was filled in for '{gated.tool.wire}' holds a secret, which only the process that received it has. "
        "It was not called."
    )
    return answer("refused", message, tool=gated.tool)


async def _request_approval(gated: GatedCall) -> CallAnswer:
    """Store that a person is asked, and return the answer that says so."""
    async with gated.services.asking:  # what is counted is what is added to
        if (refused := await _refuse_too_much(gated)) is not None:
            return refused
        return await _add_approval(gated) if gated.call.asks and not gated.call.cautious else _answer_to_be_asked(gated)


def _answer_to_be_asked(gated: GatedCall) -> CallAnswer:
    """Return the answer that a person would be asked."""
    message = f"'{gated.tool.wire}' needs the approval of a person ({gated.demand.reason}). No one has been asked yet."
    return answer("needs_approval", gated.services.masker.text(message), tool=gated.tool)


async def _add_approval(gated: GatedCall) -> CallAnswer:
    import secrets  # every start would pay for it

    services, demand, now = gated.services, gated.demand, gated.services.store.clock()
    shown: JsonObject = services.masker.value(dict(gated.call.arguments))
    approval = Approval(
        id=secrets.token_hex(6),
        tool=gated.tool.wire,
        kind=demand.kind,
        reason=services.masker.text(demand.reason),
        arguments=Frozen(shown),
        fields=demand.fields,
        binding=gated.binding,
        asked=gated.binding.arguments,
        turn=gated.snapshot.state.turn,
        asked_at=now,
        decider=gated.decider,
        expires_at=now + gated.snapshot.permissions.agent.approval_expires,
    )
    if canonical(shown) != gated.text:
        services.unkept.put(approval.id, gated.call.arguments)
    audit = gated.audit_records("asked", approval)
    await services.store.add_approval(approval, audit=audit)
    services.recorder.emit("approval_asked", audit[0])
    return waiting_answer(approval, gated.tool)


async def _refuse_too_much(gated: GatedCall) -> CallAnswer | None:
    """Return the refusal of what no person can be asked about: too long a call, or one too many."""
    if len(gated.text) > LONGEST:
        message = (
            f"'{gated.tool.wire}' needs the approval of a person, and its arguments have {len(gated.text):,} bytes; "
            f"at most {LONGEST:,} can be read by one. It was not called."
        )
        return answer("refused", message, tool=gated.tool)
    own, store = gated.binding, gated.services.store
    known = await store.approvals(principal=own.principal, open_at=store.clock())
    waiting = [one.binding for one in known if one.status == "waiting"]
    here = sum((one.agent, one.session) == (own.agent, own.session) for one in waiting)
    size = sum(len(canonical(one.arguments)) for one in known if one.status == "waiting") + len(gated.text)
    if here >= MOST_WAITING:
        most = f"{MOST_WAITING} calls of this session wait for the approval of a person."
    elif len(waiting) >= MOST_OF_PRINCIPAL:
        most = f"{MOST_OF_PRINCIPAL} calls of this user wait for the approval of a person."
    elif size > LARGEST_OF_PRINCIPAL:
        most = f"Calls of this user with {LARGEST_OF_PRINCIPAL:,} bytes of arguments wait for the approval of a person."
    else:
        return None
    return answer("refused", f"{most} '{gated.tool.wire}' was not called.", tool=gated.tool)


def waiting_answer(approval: Approval, tool: Tool | None, why: str = "") -> CallAnswer:
    """Return the answer that a call waits for a person; ``why`` is why no one has answered yet."""
    fields = ", ".join(approval.fields.get("properties", ()))
    how = {
        "confirm": "waits for an operator; once they have allowed it, the same call made again runs once.",
        "user_input": f"waits for an operator to fill in {fields}; once they have, the same call made again runs once.",
        "external": "is pending. The host program runs it and passes its result in.",
    }
    more = f" {why}" if why else ""
    message = (
        f"'{approval.tool}' needs the approval of a person and was not called: {approval.reason}.{more} "
        f"Approval {approval.id} {how[approval.kind]}"
    )
    return _of_approval("needs_approval", message, approval, tool)


def declined_answer(approval: Approval, tool: Tool) -> CallAnswer:
    """Return the answer that a person refused the call, in their words."""
    words = f": {approval.message}" if approval.message else "."
    message = f"'{approval.tool}' was not called. {approval.by} refused it{words}"
    return _of_approval("refused", message, approval, tool)


def _answer_outdated(gated: GatedCall, approval: Approval) -> CallAnswer:
    why = why_mismatch(approval, gated.binding, gated.decider) or "it was used already"
    return ended_answer(approval, gated.services.store.clock()) or outdated_answer(approval, why, gated.tool)


def ended_answer(approval: Approval, now: float) -> CallAnswer | None:
    """Return the answer that nothing comes of an approval any longer, or None where something may.

    ``now`` is the time by the clock of the store, by which approvals expire.
    """
    why = {"used": "it was used already", "expired": "it has expired"}
    status = approval.as_of(now).status
    return outdated_answer(approval, why[status]) if status in why else None


def outdated_answer(approval: Approval, why: str, tool: Tool | None = None) -> CallAnswer:
    """Return the answer that an approval does not count for the call that is resumed with it."""
    message = f"'{approval.tool}' was not called: approval {approval.id} no longer counts, since {why}."
    return _of_approval("refused", message, approval, tool)


def _of_approval(status: CallStatus, message: str, approval: Approval, tool: Tool | None) -> CallAnswer:
    about = {"id": approval.id, "kind": approval.kind, "tool": approval.tool, "expires_at": approval.expires_at}
    data = {"status": status, "message": message, "approval": about}
    result = replace(text_result(message, is_error=True), structured=data)
    return CallAnswer(status=status, result=result, message=message, tool=tool, approval=approval)


# -- ask the client of a call: by elicitation, for this once ----------------------------------------


LOOK_EVERY: Final = 1.0
"""How often it is looked whether an operator has answered what a client is asked, in seconds; sooner at first."""
LONGEST_SHOWN: Final = 16_000
"""How many characters of arguments a client is shown."""
_FORM: Final[JsonObject] = {"type": "object", "properties": {}}
_PRIMITIVE: Final = frozenset({"string", "number", "integer", "boolean"})


async def ask_client(call: CallRequest, client: Client, approval: Approval) -> str:
    """Return nothing once the client has answered, or an operator of any process; else why no one did.

    While it is asked no call is in flight, so that neither other calls nor the end of the turn wait for it.
    """
    if approval.decider == "operator":
        return "An operator answers it, not the user of the client."
    shown = visible(json.dumps(approval.arguments, ensure_ascii=False, indent=1))
    form = _form(approval)
    if form is None or len(shown) > LONGEST_SHOWN:
        return "It cannot be asked for by a form."
    message = (
        f"Agent '{approval.binding.agent}' wants to call '{approval.tool}': {visible(approval.reason)}.\n"
        f"Arguments: {shown}\nAllow this call once?"
    )
    asked = client.ask(
        "elicitation/create", {"message": message, "requestedSchema": form}, about=f"approval {approval.id}"
    )
    try:
        with call.waiting():
            answer = await _answer_of_first(call.services, approval, asked)
    except AskRefusedError as error:
        return error.message
    if answer is None:
        return ""
    try:
        return await _store_answer(call.services, approval, answer)
    except UsageError as error:
        newest = await call.services.store.approval(approval.id)
        decided = newest is None or newest.status != "waiting"
        return "" if decided else error.message


async def _answer_of_first(
    services: Services, approval: Approval, asked: Coroutine[Any, Any, JsonObject]
) -> JsonObject | None:
    """Return what the client answers, or None where an operator of any process is first; then it is asked no more."""
    answering, deciding = asyncio.create_task(asked), asyncio.create_task(_decision(services, approval))
    both = {answering, deciding}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else None
    finally:
        for task in both:
            task.cancel()
        await asyncio.wait(both)


async def _decision(services: Services, approval: Approval) -> None:
    """Return once an approval waits no more; a store that cannot be read is looked at again."""
    newest: Approval | None = approval
    pauses = Backoff(first=0.1, longest=LOOK_EVERY)
    while newest is not None and newest.status == "waiting":
        await pauses.wait()
        with suppress(StoreError):
            newest = await services.store.approval(approval.id)


async def _store_answer(services: Services, approval: Approval, answer: JsonObject) -> str:
    approvals, by = Approvals(services, elicited=True), approval.binding.principal
    match answer.get("action"):
        case "accept":
            content: object = answer.get("content")
            given = cast("JsonObject", content) if isinstance(content, Mapping) else EMPTY
            fields = given if approval.kind == "user_input" else None
            await approvals.allow(approval.id, by=by, fields=fields, expected="waiting")
            return ""
        case "decline":
            reason = "Refused by the user of the client."
            await approvals.refuse(approval.id, by=by, reason=reason, expected="waiting")
            return ""
        case _:
            return "The user of the client closed the question without an answer."


def _form(approval: Approval) -> JsonObject | None:
    """Return the form that a client is to show, or None where no form can hold what is to be filled in."""
    match approval.kind:
        case "confirm":
            return _FORM
        case "external":
            return None
        case "user_input":
            properties: Mapping[str, Any] = approval.fields.get("properties", {})
            plain = all(part.get("type") in _PRIMITIVE for part in properties.values())
            return {key: value for key, value in approval.fields.items() if key != "$defs"} if plain else None
