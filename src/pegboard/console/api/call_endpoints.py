"""One call, making it again, what happened in a session, and a tool that an operator calls as an agent."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
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
from pegboard.operators.trying import ToolForm, ToolTrial, build_tool_form, make_trial_call
from pegboard.ports import SessionKey


@request_class
class TimelineQuery:
    """Of which session what happened is wanted, and which part of it."""

    agent: Name
    """The agent."""
    session: Name
    """The session's id."""
    principal: Name = LOCAL
    """The user (principal) of the session."""
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


@request_class
class ToolToTry:
    """Which tool would be called."""

    agent: Name
    """As which agent."""
    tool: Name
    """The wire name of the tool."""


@request_class
class TriedCall:
    """What is called."""

    agent: Name
    """As which agent; the principal is the owner of the token."""
    tool: Name
    """The wire name of the tool."""
    arguments: dict[str, Any]
    """Those of the call."""
    session: str = ""
    """That of an answer which waited for an approval, to call it again; nothing is a new one."""


async def tool_form(context: Context, visit: OperatorRequest, *, query: ToolToTry) -> ToolForm:
    """Return what is filled in to call a tool as an agent, as far as the tool is known."""
    return await build_tool_form(context.services, context.agent(visit, query.agent).name, query.tool)


async def try_tool(context: Context, visit: OperatorRequest, *, body: TriedCall) -> ToolTrial:
    """Call a tool as an agent in a session of its own, which is deleted with the answer.

    Permissions, guards, approvals and the schema decide as for the agent's model; what waits for an approval runs once
    that is given and the same call is made in the same session.
    """
    agent = context.agent(visit, body.agent).name
    return await make_trial_call(
        context.services, agent, body.tool, body.arguments, by=visit.operator.name, session=body.session
    )


ENDPOINTS: Final = (
    Endpoint("GET", "/api/calls/{number}", call, _CODES),
    Endpoint("POST", "/api/calls/{number}/again", call_again, (*_CODES, "not_again", "unknown_agent"), "configure"),
    Endpoint("GET", "/api/session/timeline", timeline, ("unknown_agent",)),
    Endpoint("GET", "/api/try", tool_form, ("unknown_agent",)),
    Endpoint("POST", "/api/try", try_tool, ("unknown_agent", "usage"), "configure"),
)
"""The addresses under ``/api``."""
