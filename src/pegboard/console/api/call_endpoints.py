"""One call, making it again, and what happened in a session."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.calls_page import number_of
from pegboard.core.access.permissions import LOCAL
from pegboard.operators.calls import CallOverview
from pegboard.operators.calls import call as read_call
from pegboard.operators.calls import call_again as repeat_call
from pegboard.operators.masked import Name
from pegboard.operators.timeline import LINES, Timeline
from pegboard.operators.timeline import timeline as read_timeline
from pegboard.operators.trying import ToolTrial
from pegboard.ports import SessionKey


@received
class TimelineQuery:
    """Of which session what happened is wanted, and which part of it."""

    agent: Name
    """The agent."""
    session: Name
    """The session's id."""
    principal: Name = LOCAL
    """Whose session it is."""
    before: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """The cursor of a part, for what is older."""
    limit: Annotated[int, Field(ge=1, le=500)] = LINES
    """How many records there are at most."""


async def call(context: Context, visit: OperatorRequest, *, number: str) -> CallOverview:
    """Return one call: what it was given and answered, its times and tokens, what came before and after it."""
    return await read_call(context.services, number_of(number), visit.operator.sees)


async def call_again(context: Context, visit: OperatorRequest, *, number: str) -> ToolTrial:
    """Make a call again as its agent, in a session of its own that is deleted with the answer; all decides as ever.

    Where it waits for an approval it runs once that is given and it is made again here.
    """
    return await repeat_call(context.services, number_of(number), visit.operator.sees, by=visit.operator.name)


async def timeline(context: Context, visit: OperatorRequest, *, query: TimelineQuery) -> Timeline:
    """Return what happened in a session, turn by turn, the newest first."""
    context.agent_of_list(visit, query.agent)
    key = SessionKey(principal=query.principal, agent=query.agent, session=query.session)
    return await read_timeline(context.services, key, before=query.before, limit=query.limit)


_CODES: Final = ("unknown_call",)
ENDPOINTS: Final = (
    Endpoint("GET", "/api/calls/{number}", call, _CODES),
    Endpoint("POST", "/api/calls/{number}/again", call_again, (*_CODES, "not_again", "unknown_agent"), "configure"),
    Endpoint("GET", "/api/session/timeline", timeline, ("unknown_agent",)),
)
"""The addresses under ``/api``."""
