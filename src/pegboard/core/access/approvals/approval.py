"""An approval: a person's answer to one call, what it is bound to, and whether it counts for a call (A2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.errors import UsageError

ApprovalKind = Literal["confirm", "user_input", "external"]
ApprovalStatus = Literal["waiting", "allowed", "refused", "used", "expired"]
Lasting = Literal["once", "session", "always"]
Decider = Literal["operator", "client"]
"""Who may answer: an operator only, or the user of the client of the call, too (A5)."""
MAY_LAST: Final[Mapping[ApprovalKind, tuple[Lasting, ...]]] = {
    "confirm": ("once", "session", "always"),
    "user_input": ("once",),
    "external": (),
}
"""What a call that waits can be allowed for: fields are asked for in every call, and a result is handed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The call that an approval counts for: whose it is, of which tool, and digests of what must not change.

    ``tool`` is the tool's id. ``definition`` is the digest of what the tool was when the call was made, ``arguments``
    that of what it runs with, ``rules`` that of what was in force for it.
    """

    principal: str
    agent: str
    session: str
    tool: str
    definition: str
    arguments: str
    rules: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that a person is asked about, and the answer (A1–A3).

    Attributes:
        id: its name, for people and commands.
        tool: the wire name of the tool.
        kind: ``confirm`` (a person allows it), ``user_input`` (and fills ``fields`` in) or ``external`` (the call runs
            elsewhere, and its result is handed in).
        status: waiting, allowed, refused, used or expired.
        reason: what demands it.
        arguments: those of the call, secrets masked.
        fields: the JSON schema of an object with what a person fills in; empty but for ``user_input``.
        lasts: whether an answer is for this call once, for the tool in this session, or always.
        binding: the call that it counts for.
        asked: the digest of the arguments as the model gave them.
        turn: the turn of the session in which it was asked for.
        asked_at: when that was, in seconds since the epoch.
        expires_at: from when on it does not count, in seconds since the epoch; None is never.
        decided_at: when it was allowed or refused, or None.
        by: who did that.
        message: what they said to it.
        decider: who may answer it.
        elicited: whether it was answered by the user of the client, by elicitation.
    """

    id: str
    tool: str
    kind: ApprovalKind = "confirm"
    status: ApprovalStatus = "waiting"
    reason: str = ""
    arguments: JsonObject = field(default=EMPTY)
    fields: JsonObject = field(default=EMPTY)
    lasts: Lasting = "once"
    binding: Binding = field(repr=False)
    asked: str = field(default="", repr=False)
    turn: int = 1
    asked_at: float = 0.0
    expires_at: float | None = None
    decided_at: float | None = None
    by: str = ""
    message: str = ""
    decider: Decider = "client"
    elicited: bool = False

    def as_of(self, now: float) -> Approval:
        """Return the approval as it is at a time: expired where it was not used by then.

        ``now`` is in seconds since the epoch.
        """
        over = self.expires_at is not None and now >= self.expires_at and self.status != "used"
        return replace(self, status="expired") if over else self

    @property
    def open(self) -> bool:
        """Return whether something may still come of it: it waits, or it was allowed and not used."""
        return self.status in ("waiting", "allowed")


def unknown_approval(approval_id: str) -> UsageError:
    """Return the error that there is no such approval, or none that whoever asks may see."""
    return UsageError(
        f"There is no approval '{one_line(approval_id, limit=100)}'.",
        code="unknown_approval",
        hint="`pegboard approvals list` shows what waits.",
    )


def next_end(approvals: Iterable[Approval]) -> float | None:
    """Return when the first of them expires, in seconds since the epoch, or None where none does."""
    return min((one.expires_at for one in approvals if one.expires_at is not None), default=None)


def counting_approval(
    call: Binding, approvals: Iterable[Approval], now: float, decider: Decider = "client"
) -> Approval | None:
    """Return the approval that decides a call: allowed, waiting or refused; None where a person is to be asked.

    What an operator allowed for longer goes first, then the first that counts. The ``arguments`` of the call are those
    that the model gave; where an operator is the ``decider``, no answer of a client's user counts (A5).
    """
    counting = [found for one in approvals if not why_mismatch(found := one.as_of(now), call, decider)]
    allowed_for_longer = (one for one in counting if one.status == "allowed" and one.lasts != "once")
    decided = (one for one in counting if one.status in ("allowed", "waiting", "refused"))
    return next(allowed_for_longer, None) or next(decided, None)


def why_mismatch(approval: Approval, call: Binding, decider: Decider = "client") -> str:
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
        return "only an operator may answer it now, and this answer came from the user of the client"
    if own.definition != call.definition:
        return "the definition of the tool has changed since"
    return "the rules in force for it have changed since" if own.rules != call.rules else ""
