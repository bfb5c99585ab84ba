"""A tool that an operator calls as an agent."""

from __future__ import annotations

from typing import Any, Final

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name
from pegboard.operators.trying import ToolForm, ToolTrial, build_tool_form, make_trial_call


@received
class ToolToTry:
    """Which tool would be called."""

    agent: Name
    """As which agent."""
    tool: Name
    """The wire name of the tool."""


@received
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
    Endpoint("GET", "/api/try", tool_form, ("unknown_agent",)),
    Endpoint("POST", "/api/try", try_tool, ("unknown_agent", "usage"), "configure"),
)
