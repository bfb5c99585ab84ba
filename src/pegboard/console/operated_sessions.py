"""Sessions that operators look at, and act in."""

from __future__ import annotations

from dataclasses import replace

from pegboard.board.session import Session
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.sent import SentToModel
from pegboard.operators.sent import sent_to_model as read_sent
from pegboard.operators.sessions import SessionOverview, describe_session
from pegboard.ports import SessionKey


async def session_overview(context: Context, visit: OperatorRequest, key: SessionKey) -> SessionOverview:
    """Return a session as operators see it.

    Raises:
        UsageError: nothing is known of it, or not any longer.
    """
    context.agent_of_list(visit, key.agent)
    found = await describe_session(context.services, context.subjects.counting, key)
    if found is None:
        raise unknown_session(key)
    return found


async def sent_to_model(
    context: Context, visit: OperatorRequest, key: SessionKey, step: int | None = None
) -> SentToModel:
    """Return what the model of a session is sent next, or the list of a number that it was sent.

    Raises:
        UsageError: nothing is known of it or of that list, or not any longer.
    """
    context.agent_of_list(visit, key.agent)
    found = await read_sent(context.services, key, step)
    if found is None:
        raise unknown_session(key)
    return found


async def operated_session(context: Context, visit: OperatorRequest, key: SessionKey) -> Session:
    """Return a session for an operator to act in, as it was opened where that was in this process.

    Raises:
        UsageError: nothing is known of it, or not any longer.
    """
    context.agent(visit, key.agent)
    await session_overview(context, visit, key)
    return await begun_session(context, visit, key)


async def begun_session(context: Context, visit: OperatorRequest, key: SessionKey) -> Session:
    """Return a session for an operator to act in, also a new one; one that is live here as it was opened."""
    context.agent(visit, key.agent)
    live = context.board.services.live.get(key)
    if live is not None:
        info = live[0]
    else:
        info = (await context.board.session(agent=key.agent, session_id=key.session, principal=key.principal)).info
    return Session(context.board.services, replace(info, by=visit.operator.name))


def unknown_session(key: SessionKey) -> UsageError:
    """Return the error that nothing is known of a session."""
    return UsageError(
        f"There is no session '{one_line(key.session, limit=100)}': it was deleted, or has not done anything yet.",
        code="unknown_session",
        hint="See the list of sessions.",
    )
