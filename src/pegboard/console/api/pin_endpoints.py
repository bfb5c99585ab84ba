"""The pins of servers' tools: what waits for a person, and what they accept (A4)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name
from pegboard.operators.pins import PinPage, PinView


@received
class PinQuery:
    """Which tools are listed."""

    server: Name = ""
    """Only those of this server."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=200)] = 20
    """How many are listed at most."""


@received
class Seen:
    """What whoever accepts was shown."""

    seen: str
    """The ``seen`` of the server: where it is another one by now, nothing is changed."""


@received
class SeenTool:
    """What whoever accepts a tool was shown."""

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


_ONE: Final = ("every_agent_required", "unknown_name")
_ACCEPTED: Final = (*_ONE, "pin_changed", "confirmation_required")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/pins", pins, _ONE),
    Endpoint("GET", "/api/pins/{server}", server_pins, _ONE),
    Endpoint("GET", "/api/pins/{server}/{tool}", pin, _ONE),
    Endpoint("POST", "/api/pins/{server}/accept", accept_server, _ACCEPTED, "configure"),
    Endpoint("POST", "/api/pins/{server}/{tool}/accept", accept_tool, _ACCEPTED, "configure"),
)
