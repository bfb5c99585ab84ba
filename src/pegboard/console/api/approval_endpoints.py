"""What waits for a person, and the answers: calls, and tools of servers that changed (A4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.sent_fields import meant_fields
from pegboard.core.access.approvals.approval import ApprovalStatus, Lasting
from pegboard.operators.approvals import ApprovalOverview, EndedApprovals, OpenApprovals
from pegboard.operators.masked import Name
from pegboard.operators.pins import PinPage, PinView


@request_class
class ApprovalQuery:
    """Which approvals are listed."""

    agent: Name = ""
    """Only those of calls of this agent."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """How many are listed at most."""


@request_class
class Allowed:
    """How a call is allowed."""

    lasts: Lasting = "once"
    """For this call, for every call of the tool in the session, or for every one by the same agent and principal."""
    fields: dict[str, Any] | None = None
    """What a person fills in, where the tool asks for it."""
    expected: ApprovalStatus | None = None
    """The status that the person who decides was shown: where it is another one by now, nothing is changed."""


@request_class
class Refused:
    """How a call is refused."""

    reason: str = ""
    """The reason, which the model reads."""
    expected: ApprovalStatus | None = None
    """The status that the person who decides was shown: where it is another one by now, nothing is changed."""


async def approvals(context: Context, visit: OperatorRequest, *, query: ApprovalQuery) -> OpenApprovals:
    """Return the calls that wait for a person, and those that were allowed and still count, the newest first."""
    sees = _sees_approvals(context, visit, query)
    return await context.subjects.approvals.open(sees, offset=query.offset, limit=query.limit)


async def ended_approvals(context: Context, visit: OperatorRequest, *, query: ApprovalQuery) -> EndedApprovals:
    """Return the approvals that were refused or used, or have expired, the newest first."""
    sees = _sees_approvals(context, visit, query)
    return await context.subjects.approvals.ended(sees, offset=query.offset, limit=query.limit)


def _sees_approvals(context: Context, visit: OperatorRequest, query: ApprovalQuery) -> Callable[[str], bool]:
    """Return what says whether the approvals of an agent are listed."""
    agent = context.agent_of_list(visit, query.agent)
    return visit.operator.sees if agent is None else agent.__eq__


async def approval(context: Context, visit: OperatorRequest, *, id: str) -> ApprovalOverview:  # noqa: A002
    """Return one approval."""
    return await context.subjects.approvals.one(id, visit.operator.sees)


async def allow(context: Context, visit: OperatorRequest, *, id: str, body: Allowed) -> ApprovalOverview:  # noqa: A002
    """Allow a call that waits; it runs when it is resumed, or made again."""
    found = await approval(context, visit, id=id)
    fields = None if body.fields is None else meant_fields(found.fields, body.fields, visit.names)
    await context.board.approvals.allow(
        found.id, by=visit.operator.name, lasts=body.lasts, fields=fields, expected=body.expected
    )
    return await approval(context, visit, id=id)


async def refuse(context: Context, visit: OperatorRequest, *, id: str, body: Refused) -> ApprovalOverview:  # noqa: A002
    """Refuse a call that waits, or take back what was allowed and is not used."""
    found = await approval(context, visit, id=id)
    await context.board.approvals.refuse(found.id, by=visit.operator.name, reason=body.reason, expected=body.expected)
    return await approval(context, visit, id=id)


_ONE: Final = ("unknown_approval",)
_DECIDED: Final = (*_ONE, "approval_ended", "approval_changed")


@request_class
class PinQuery:
    """Which tools are listed."""

    server: Name = ""
    """Only those of this server."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=200)] = 20
    """How many are listed at most."""


@request_class
class Seen:
    """What the person who accepts was shown."""

    seen: str
    """The ``seen`` of the server: where it is another one by now, nothing is changed."""


@request_class
class SeenTool:
    """What the person who accepts a tool was shown."""

    seen: str
    """The ``digest`` of the tool: where it is another one by now, nothing is changed."""
    confirm: Name = ""
    """The ``name`` of the tool, which it takes where there are ``findings``."""


async def pins(context: Context, visit: OperatorRequest, *, query: PinQuery) -> PinPage:
    """Return the tools that wait for a person, with how each differs from what is pinned."""
    context.require_every_agent(visit)
    return await context.subjects.pins.page(query.server, offset=query.offset, limit=query.limit)


async def server_pins(context: Context, visit: OperatorRequest, *, server: str) -> tuple[PinView, ...]:
    """Return every tool of a server as its pin and its newest list have it, without how they differ."""
    context.require_every_agent(visit)
    return await context.subjects.pins.listed(server)


async def pin(context: Context, visit: OperatorRequest, *, server: str, tool: str) -> PinView:
    """Return one tool, with how it differs from what is pinned."""
    context.require_every_agent(visit)
    return (await context.subjects.pins.shown(f"{server}/{tool}"))[0]


async def accept_server(context: Context, visit: OperatorRequest, *, server: str, body: Seen) -> tuple[PinView, ...]:
    """Let what waits of a server count but for tools with findings, and let the pins go of what it lists no more."""
    context.require_every_agent(visit)
    return (await context.subjects.pins.accept_seen(server, body.seen, by=visit.operator.name)).tools


async def accept_tool(
    context: Context, visit: OperatorRequest, *, server: str, tool: str, body: SeenTool
) -> tuple[PinView, ...]:
    """Let one tool count as its server lists it now."""
    context.require_every_agent(visit)
    name, by, confirm = f"{server}/{tool}", visit.operator.name, visit.names.shown(body.confirm)
    return (await context.subjects.pins.accept_seen(name, body.seen, by=by, confirm=confirm)).tools


_ONE_PIN: Final = ("every_agent_required", "unknown_name")
_ACCEPTED: Final = (*_ONE_PIN, "pin_changed", "confirmation_required")


ENDPOINTS: Final = (
    Endpoint("GET", "/api/approvals", approvals, ("unknown_agent",)),
    Endpoint("GET", "/api/approvals/ended", ended_approvals, ("unknown_agent",)),
    Endpoint("GET", "/api/approvals/{id}", approval, _ONE),
    Endpoint("POST", "/api/approvals/{id}/allow", allow, (*_DECIDED, "approval_kind", "bad_fields"), "approve"),
    Endpoint("POST", "/api/approvals/{id}/refuse", refuse, _DECIDED, "approve"),
    Endpoint("GET", "/api/pins", pins, _ONE_PIN),
    Endpoint("GET", "/api/pins/{server}", server_pins, _ONE_PIN),
    Endpoint("GET", "/api/pins/{server}/{tool}", pin, _ONE_PIN),
    Endpoint("POST", "/api/pins/{server}/accept", accept_server, _ACCEPTED, "configure"),
    Endpoint("POST", "/api/pins/{server}/{tool}/accept", accept_tool, _ACCEPTED, "configure"),
)
