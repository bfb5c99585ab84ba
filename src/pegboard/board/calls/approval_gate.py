"""The gate before a call that a person approves: what it needs, and whether somebody gave it (A1–A3, T13)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pegboard.board.calls.call_request import CallRequest, guarded
from pegboard.board.services import Services
from pegboard.board.snapshot import DecidedCall, Snapshot
from pegboard.core.access.approvals.approval import Approval, Binding, Decider
from pegboard.core.access.approvals.demands import Demand, ToolRules, demanded
from pegboard.core.access.approvals.digests import binding_of, canonical, digest, require_json
from pegboard.core.access.approvals.verdicts import Ask, Declined, Stands, Use, Verdict, Wait, judge, mismatch
from pegboard.core.model.tools import Frozen, JsonObject, Tool, text_result
from pegboard.core.state.call_plans import CallAnswer, CallStatus, answer
from pegboard.errors import ToolUnavailableError
from pegboard.ports import AuditRecord, CallContext, HasHooks, HookAnswer

LONGEST: Final = 64 * 1024
"""How many bytes of JSON the arguments may have that a person is asked about."""
MOST_WAITING: Final = 100
"""How many calls of one session may wait for a person."""
MOST_OF_PRINCIPAL: Final = 200
"""How many calls of one principal may wait for a person, in all sessions and of all agents."""
LARGEST_OF_PRINCIPAL: Final = 2 * 1024 * 1024
"""How many bytes of JSON the arguments may have in all of one principal's calls that wait."""
_NOT_JSON: Final = (
    "a number that JSON does not have (NaN, Infinity), half of a character, or nested too deeply. Nobody was asked."
)
_NOTHING: Final = HookAnswer()

Passed = CallAnswer | JsonObject
"""The answer to a call that does not run, or the arguments that it runs with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedCall:
    """A call at the gate: ``text`` is its arguments as JSON, ``recorded`` their digest on the audit trail."""

    call: CallRequest
    snapshot: Snapshot
    tool: Tool
    demand: Demand
    text: str
    binding: Binding
    recorded: str

    @property
    def services(self) -> Services:
        """Return the services of the board."""
        return self.call.services

    @property
    def decider(self) -> Decider:
        """Return who may answer: as the rule says, else as the configuration does (A5)."""
        return self.demand.decider or self.snapshot.permissions.agent.approvals_by

    def audited(self, decision: str, approval: Approval) -> tuple[AuditRecord, ...]:
        """Return the record that something became of an approval by a call."""
        snapshot, recorder = self.snapshot, self.services.recorder
        return (
            recorder.entry(
                snapshot.info.key, snapshot.state.turn, "approval", self.tool.wire, decision,
                reason=approval.reason, outcome=approval.id, arguments=self.recorded,
            ),
        )  # fmt: skip


async def is_due(
    call: CallRequest, snapshot: Snapshot, decided: DecidedCall, rules: ToolRules, context: CallContext
) -> bool:
    """Return whether a person has to approve a call before it runs; nobody is asked."""
    weighed = replace(call, deciding=True, asks=False)
    passed = await pass_gate(weighed, snapshot, decided, rules, context, "")
    return isinstance(passed, CallAnswer) and passed.status == "needs_approval"


async def pass_gate(
    call: CallRequest,
    snapshot: Snapshot,
    decided: DecidedCall,
    rules: ToolRules,
    context: CallContext,
    recorded: str,
) -> Passed:
    """Return the arguments that a call runs with, or the answer to one that does not run."""
    services, tool = call.services, decided.tool.tool
    demand = demanded(rules, tool, call.arguments)
    if demand is None and not rules.hook:
        return call.arguments
    hooks = _NOTHING
    if isinstance(decided.source, HasHooks):
        try:
            hooks = await decided.source.ask_hooks(decided.spec, decided.tool.overrides, tool, call.arguments, context)
        except ToolUnavailableError as error:
            return answer("tool_unavailable", services.masker.text(error.text), tool=tool)
    if hooks.refused:
        return await guarded(call, snapshot, tool, text_result(hooks.refused, is_error=True))
    if demand is None:
        if not hooks.approval:
            return call.arguments
        demand = Demand(reason=hooks.approval)
    if (refused := _impossible(snapshot, tool, demand)) is not None:
        return refused
    gated = await _gated(call, snapshot, decided, rules, demand, recorded)
    return gated if isinstance(gated, CallAnswer) else await _decided(gated)


def _impossible(snapshot: Snapshot, tool: Tool, demand: Demand) -> CallAnswer | None:
    """Return the answer to a call that nobody can be asked about in this session."""
    if demand.kind == "external" and snapshot.info.host.calls_through:
        message = (
            f"'{tool.wire}' is not available here: it is run elsewhere and its result handed in, which only a "
            "program that uses Pegboard as a library can do."
        )
        return answer("tool_unavailable", message, tool=tool)
    if not snapshot.info.stable:
        message = f"'{tool.wire}' needs the approval of a person ({demand.reason}), which requires a stable session_id."
        return answer("refused", message, tool=tool)
    return None


async def _gated(
    call: CallRequest, snapshot: Snapshot, decided: DecidedCall, rules: ToolRules, demand: Demand, recorded: str
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
    return GatedCall(
        call=call, snapshot=snapshot, tool=tool, demand=demand, text=text, binding=binding, recorded=recorded
    )


async def _decided(gated: GatedCall) -> Passed:
    """Return what the approvals of now come to; where another call uses one first, they are read again."""
    while True:
        verdict = await _verdict(gated)
        match verdict:
            case Stands(approval=approval):
                gated.call.approved = approval.id
                return gated.call.arguments
            case Use(approval=approval):
                gated.call.approved = approval.id
                arguments = await _arguments(gated, approval)
                if isinstance(arguments, CallAnswer) or gated.call.deciding or await _used(gated, approval):
                    return arguments
            case Wait(approval=approval):
                handed_in = gated.call.result if gated.demand.kind == "external" else None
                if handed_in is None:
                    return waiting(approval, gated.tool)
                if await _used(gated, approval):
                    return CallAnswer(status="ok", result=handed_in, tool=gated.tool)
            case Declined(approval=approval):
                return declined(approval, gated.tool)
            case Ask():
                resumed = gated.call.approval
                return await _asked(gated) if resumed is None else _outdated(gated, resumed)


async def _verdict(gated: GatedCall) -> Verdict:
    store, resumed = gated.services.store, gated.call.approval
    if resumed is None:
        return judge(gated.binding, await store.approvals_for(gated.binding), store.clock(), gated.decider)
    newest = await store.approval(resumed.id)
    return judge(gated.binding, () if newest is None else (newest,), store.clock(), gated.decider)


async def _used(gated: GatedCall, approval: Approval) -> bool:
    """Return whether this call is the one that uses the approval: it is marked so before anything runs (A2)."""
    used = replace(approval, status="used", arguments=Frozen())
    audit = gated.audited("used", approval)
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
        f"What was filled in for '{gated.tool.wire}' holds a secret, which only the process that was given it has, "
        "and it was not called."
    )
    return answer("refused", message, tool=gated.tool)


async def _asked(gated: GatedCall) -> CallAnswer:
    """Store that a person is asked, and return the answer that says so."""
    async with gated.services.asking:  # what is counted is what is added to
        return await _too_much(gated) or (await _added(gated) if gated.call.asks else _to_be_asked(gated))


def _to_be_asked(gated: GatedCall) -> CallAnswer:
    """Return the answer that a person would be asked."""
    message = f"'{gated.tool.wire}' needs the approval of a person ({gated.demand.reason}). Nobody was asked yet."
    return answer("needs_approval", gated.services.masker.text(message), tool=gated.tool)


async def _added(gated: GatedCall) -> CallAnswer:
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
    audit = gated.audited("asked", approval)
    await services.store.add_approval(approval, audit=audit)
    services.recorder.emit("approval_asked", audit[0])
    return waiting(approval, gated.tool)


async def _too_much(gated: GatedCall) -> CallAnswer | None:
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


def waiting(approval: Approval, tool: Tool | None, why: str = "") -> CallAnswer:
    """Return the answer that a call waits for a person; ``why`` is why nobody has answered yet."""
    fields = ", ".join(approval.fields.get("properties", ()))
    how = {
        "confirm": "waits for an operator; once they have allowed it, the same call made again runs once.",
        "user_input": f"waits for an operator to fill in {fields}; once they have, the same call made again runs once.",
        "external": "is waiting. It is run elsewhere, and whoever runs it hands its result in.",
    }
    more = f" {why}" if why else ""
    message = (
        f"'{approval.tool}' needs the approval of a person and was not called: {approval.reason}.{more} "
        f"Approval {approval.id} {how[approval.kind]}"
    )
    return _of_approval("needs_approval", message, approval, tool)


def declined(approval: Approval, tool: Tool) -> CallAnswer:
    """Return the answer that a person refused the call, in their words."""
    words = f": {approval.message}" if approval.message else "."
    message = f"'{approval.tool}' was not called. {approval.by} refused it{words}"
    return _of_approval("refused", message, approval, tool)


def _outdated(gated: GatedCall, approval: Approval) -> CallAnswer:
    why = mismatch(approval, gated.binding, gated.decider) or "it was used already"
    return ended(approval, gated.services.store.clock()) or outdated(approval, why, gated.tool)


def ended(approval: Approval, now: float) -> CallAnswer | None:
    """Return the answer that nothing comes of an approval any more, or None where something may.

    ``now`` is the time by the clock of the store, by which approvals expire.
    """
    why = {"used": "it was used already", "expired": "it has expired"}
    status = approval.as_of(now).status
    return outdated(approval, why[status]) if status in why else None


def outdated(approval: Approval, why: str, tool: Tool | None = None) -> CallAnswer:
    """Return the answer that an approval does not count for the call that is resumed with it."""
    message = f"'{approval.tool}' was not called: approval {approval.id} does not count any more, since {why}."
    return _of_approval("refused", message, approval, tool)


def _of_approval(status: CallStatus, message: str, approval: Approval, tool: Tool | None) -> CallAnswer:
    about = {"id": approval.id, "kind": approval.kind, "tool": approval.tool, "expires_at": approval.expires_at}
    data = {"status": status, "message": message, "approval": about}
    result = replace(text_result(message, is_error=True), structured=data)
    return CallAnswer(status=status, result=result, message=message, tool=tool, approval=approval)
