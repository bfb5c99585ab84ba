"""Calls that wait for a person, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.visits import Visit
from pegboard.core.access.approvals.approval import Approval, ApprovalKind, ApprovalStatus, Lasting, unknown_approval


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a person is asked about, and the answer.

    Attributes:
        id: its name.
        tool: the wire name of the tool.
        kind: a person allows it (``confirm``), and fills ``fields`` in (``user_input``), or it runs elsewhere
            (``external``).
        status: waiting, allowed, refused, used or expired.
        reason: what demands it.
        arguments: those of the call, secrets masked.
        fields: the JSON schema of an object with what a person fills in; empty but for ``user_input``.
        lasts: whether an answer is for this call once, for the tool in this session, or always.
        principal: whose session it is.
        agent: the agent that calls.
        session: the session's id.
        turn: the turn of the session in which it was asked for.
        asked_at: when that was, in seconds since the epoch.
        expires_at: from when on it does not count; null is never.
        decided_at: when it was allowed or refused, or null.
        by: who did that.
        message: what they said to it.
    """

    id: str
    tool: str
    kind: ApprovalKind
    status: ApprovalStatus
    reason: str
    arguments: Mapping[str, Any]
    fields: Mapping[str, Any]
    lasts: Lasting
    principal: str
    agent: str
    session: str
    turn: int
    asked_at: float
    expires_at: float | None
    decided_at: float | None
    by: str
    message: str


@received
class ApprovalQuery:
    """Which approvals are listed."""

    agent: str = ""
    """Only those of calls of this agent."""
    ended: bool = False
    """Also those that were refused or used, or have expired."""


@received
class Allowed:
    """How a call is allowed."""

    lasts: Lasting = "once"
    """For this call, for every call of the tool in the session, or for every one by the same agent and principal."""
    fields: dict[str, Any] | None = None
    """What a person fills in, where the tool asks for it."""
    expected: ApprovalStatus | None = None
    """The status that whoever decides was shown: where it is another one by now, nothing is changed."""


@received
class Refused:
    """How a call is refused."""

    reason: str = ""
    """What the model reads of it."""
    expected: ApprovalStatus | None = None
    """The status that whoever decides was shown: where it is another one by now, nothing is changed."""


async def approvals(context: Context, visit: Visit, *, query: ApprovalQuery) -> tuple[AskedCall, ...]:
    """Return the calls that wait for a person, the newest first."""
    agent = context.agent(visit, query.agent).name if query.agent else None
    found = await context.board.approvals.list(agent=agent, ended=query.ended)
    return tuple(_asked(one) for one in found if visit.operator.sees(one.binding.agent))


async def allow(context: Context, visit: Visit, *, id: str, body: Allowed) -> AskedCall:  # noqa: A002
    """Allow a call that waits; it runs when it is resumed, or made again."""
    await _require_seen(context, visit, id)
    allowed = await context.board.approvals.allow(
        id, by=visit.operator.name, lasts=body.lasts, fields=body.fields, expected=body.expected
    )
    return _asked(allowed)


async def refuse(context: Context, visit: Visit, *, id: str, body: Refused) -> AskedCall:  # noqa: A002
    """Refuse a call that waits, or take back what was allowed and is not used."""
    await _require_seen(context, visit, id)
    refused = await context.board.approvals.refuse(
        id, by=visit.operator.name, reason=body.reason, expected=body.expected
    )
    return _asked(refused)


async def _require_seen(context: Context, visit: Visit, approval_id: str) -> None:
    """Raise ``UsageError`` for an approval of an agent that the operator does not see."""
    found = await context.board.services.store.approval(approval_id)
    if found is not None and not visit.operator.sees(found.binding.agent):
        raise unknown_approval(approval_id)


def _asked(approval: Approval) -> AskedCall:
    own = approval.binding
    return AskedCall(
        id=approval.id,
        tool=approval.tool,
        kind=approval.kind,
        status=approval.status,
        reason=approval.reason,
        arguments=approval.arguments,
        fields=approval.fields,
        lasts=approval.lasts,
        principal=own.principal,
        agent=own.agent,
        session=own.session,
        turn=approval.turn,
        asked_at=approval.asked_at,
        expires_at=approval.expires_at,
        decided_at=approval.decided_at,
        by=approval.by,
        message=approval.message,
    )


_CODES: Final = ("unknown_approval", "approval_ended", "approval_changed", "approval_kind")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/approvals", approvals, ("unknown_agent",)),
    Endpoint("POST", "/api/approvals/{id}/allow", allow, (*_CODES, "bad_fields")),
    Endpoint("POST", "/api/approvals/{id}/refuse", refuse, _CODES),
)
