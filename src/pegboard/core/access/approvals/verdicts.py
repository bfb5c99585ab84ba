"""Does an approval count for a call? Decided over what a store has, at a time (A2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pegboard.core.access.approvals.approval import Approval, Binding, Decider


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """An operator has approved all calls of the tool, for the session or always: the call runs."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The call was approved once: it runs if nobody else uses the approval first."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The call was asked about already, and nobody has answered."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The call was refused."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Nothing counts: a person is to be asked."""


Verdict = Stands | Use | Wait | Declined | Ask
_OPERATORS_ONLY: Final = "only an operator may answer it now, and this answer came from the user of the client"
_RULES_CHANGED: Final = "the rules in force for it have changed since"


def judge(call: Binding, approvals: Iterable[Approval], now: float, decider: Decider = "client") -> Verdict:
    """Return what the approvals of a tool come to for a call of it.

    Args:
        call: the call; its ``arguments`` are those that the model gave.
        decider: who may answer it; where it is an operator only, no answer of a client's user counts (A5).
        approvals: any, the newest first.
        now: seconds since the epoch.
    """
    counting = [found for approval in approvals if not mismatch(found := approval.as_of(now), call, decider)]
    for approval in counting:
        if approval.lasts != "once" and approval.status == "allowed":
            return Stands(approval=approval)
    for approval in counting:
        match approval.status:
            case "allowed" if approval.lasts == "once":
                return Use(approval=approval)
            case "waiting":
                return Wait(approval=approval)
            case "refused":
                return Declined(approval=approval)
            case _:
                continue
    return Ask()


def mismatch(approval: Approval, call: Binding, decider: Decider = "client") -> str:
    """Return why an approval is not for a call, or nothing; ``binding.arguments`` of the call are as the model gave."""
    own = approval.binding
    if (own.principal, own.agent, own.tool) != (call.principal, call.agent, call.tool):
        return "it is for another call"
    standing = approval.lasts != "once" and approval.status == "allowed"
    if approval.lasts != "always" and own.session != call.session:
        return "it is for another session"
    if not standing and approval.asked != call.arguments:
        return "it is for other arguments"
    if approval.elicited and approval.status == "allowed" and decider == "operator":
        return _OPERATORS_ONLY
    if own.definition != call.definition:
        return "the definition of the tool has changed since"
    return _RULES_CHANGED if own.rules != call.rules else ""
