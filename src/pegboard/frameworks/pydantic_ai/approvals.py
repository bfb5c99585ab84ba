"""What a person decides about calls of a session."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, get_args

from pydantic_ai.messages import (
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition

from pegboard.board.session import Session
from pegboard.core.access.approvals.approval import Approval
from pegboard.core.model.tools import JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.errors import UsageError
from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
)
from pegboard.frameworks.pydantic_ai.steps import definitions
from pegboard.frameworks.runs import (
    own_arguments,
)


async def call_approved(approval: Approval, given: JsonObject, session: Session) -> CallAnswer:
    """Return the answer of a call that the user of the framework has approved."""
    by = str(given.get("by") or session.key.principal)
    await session.approvals.allow(approval.id, by=by, fields=given.get("fields"))
    return await session.resume(approval.id)


async def waited_for(
    names: AbstractSet[str], awaiting: AbstractSet[str], toolset: str | None, session: Session
) -> list[ToolDefinition]:
    """Return the definitions of those tools of a session by which calls of a run wait, for whatever host asks."""
    asked = await session.approvals.list(agent=session.key.agent, ended=True) if names else ()
    about = {one.tool for one in asked if one.binding.session == session.key.session} | awaiting
    own = {name for name in names if name in about or session.known_tool(name) is not None}
    return await definitions(own, toolset, session)


async def take_decided(made: Sequence[tuple[ToolCallPart, ToolReturnPart]], session: Session) -> None:
    """Refuse what was denied, and hand in what ran elsewhere, of the calls that wait."""
    key = session.key
    waiting = [
        one
        for one in await session.approvals.list(agent=key.agent)
        if one.lasts == "once" and (one.binding.principal, one.binding.session) == (key.principal, key.session)
    ]
    for call, part in made:
        arguments = own_arguments(call.tool_name, call.args_as_dict(), session)
        own = (one for one in waiting if (one.tool, one.arguments) == (call.tool_name, arguments))
        approval = next(own, None)
        if approval is not None and part.outcome == "denied":
            with suppress(UsageError):  # another one was first
                await session.approvals.refuse(approval.id, by=key.principal, reason=part.model_response_str())
        elif approval is not None and approval.kind == "external":
            await session.resume(approval.id, result=part.model_response_str())


def may_wait(ctx: AnyContext) -> bool:
    """Return whether the agent of a run is made to end with calls that wait."""
    kinds: Any = None if ctx.agent is None else ctx.agent.output_type
    return DeferredToolRequests in (kinds if isinstance(kinds, list | tuple) else get_args(kinds))
