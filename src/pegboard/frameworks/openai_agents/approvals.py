"""What a person decides about calls of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pegboard.board.session import Session
from pegboard.core.state.call_plans import CallAnswer
from pegboard.frameworks import runs


async def allowed_for_all(make: Callable[[Session], Awaitable[CallAnswer]], session: Session) -> CallAnswer:
    """Return the answer of a call of a tool that a person has approved for the whole run: no one was asked about it."""
    answer = await make(session)
    if answer.status != "needs_approval" or answer.approval is None:
        return answer
    return await runs.answer_allowed_call(session, answer.approval, fields={})


async def waiting_approvals(session: Session) -> list[Any]:
    """Return the approvals that calls of a session wait for, or waited for until they expired."""
    key = session.key
    known = await session.approvals.list(agent=key.agent, ended=True)
    own = (one for one in known if (one.binding.principal, one.binding.session) == (key.principal, key.session))
    return [one for one in own if one.lasts == "once" and one.status in ("waiting", "allowed", "refused", "expired")]
