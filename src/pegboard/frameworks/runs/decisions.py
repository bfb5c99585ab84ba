"""Calls that wait for a person or a login, in the terms of a framework."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.tools import JsonObject, text_result
from pegboard.core.state.call_plans import CallAnswer
from pegboard.errors import UsageError

_TYPES: Final = {"integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def waits_since_before(answer: CallAnswer, since: float) -> Approval | None:
    """Return the approval that an answer waits for if it was asked for before a time: no new one was decided (A6).

    Args:
        answer: what the call came to.
        since: seconds since the epoch, from before the call.
    """
    approval = answer.approval if answer.status == "needs_approval" else None
    return None if approval is None or approval.asked_at >= since else approval


def about_login(answer: CallAnswer) -> JsonObject | None:
    """Return what the user of a framework is told of the login that a call waits for, or None (G11).

    ``id`` is the waiting call's.
    """
    login = answer.login if answer.status == "needs_login" else None
    if login is None:
        return None
    return {"id": login.id, "server": login.plugin, "url": login.url, "expires_at": login.expires_at}


async def answer_allowed_call(
    session: Session, approval: Approval, *, fields: JsonObject, by: str = "", call_id: str | None = None
) -> CallAnswer:
    """Return the answer of a call that the user of a framework has allowed (A3).

    Args:
        session: the session of the call.
        approval: what the call waits for.
        fields: what they filled in.
        by: who it was; the session's principal where no one is named.
        call_id: what the provider names the call.
    """
    try:
        await session.approvals.allow(approval.id, by=by or session.key.principal, fields=fields or None)
    except UsageError as problem:
        return CallAnswer(status="refused", result=text_result(problem.message, is_error=True), message=problem.message)
    return await session.resume(approval.id, call_id=call_id)


async def record_decision(session: Session, approval_id: str, *, refused: str | None, result: object) -> None:
    """Take into a session what a person decided in the framework: words of refusal, or a result from elsewhere."""
    with suppress(UsageError):  # it was settled before
        if refused is not None:
            await session.approvals.refuse(approval_id, by=session.key.principal, reason=refused)
        elif result is not None:
            await session.resume(approval_id, result=result)


def type_of_field(schema: JsonObject) -> type:
    """Return the type of a field of a form, by its JSON schema."""
    return _TYPES.get(str(schema.get("type")), str)
