"""Every agent beside every toolkit, and switches and pauses of several agents at once."""

from __future__ import annotations

from typing import Final, Literal

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name
from pegboard.operators.matrix import Matrix
from pegboard.operators.together import (
    ActionDone,
    BulkSwitchKind,
    BulkSwitchPreview,
    preview_for_agents,
    set_for_agents,
    undo_for_agents,
)


@received
class SupposedTogether:
    """What would be set for several agents."""

    kind: BulkSwitchKind
    """A switch of a toolkit, plugin or tool; a pause of agents, or of a plugin for them."""
    name: Name = ""
    """Of a switch the `switch_name` of a row; of a pause the plugin, nothing for all that the agents may use."""
    value: Literal["true", "false", "null"]
    """On, off, or the stored switches taken back; of a pause `true` begins it."""
    agent: Name = ""
    """For this agent alone; nothing is every agent that the token opens."""


@received
class NewTogether:
    """What is to be set for several agents, all or none."""

    kind: BulkSwitchKind
    """A switch of a toolkit, plugin or tool; a pause of agents, or of a plugin for them."""
    name: Name = ""
    """Of a switch the `switch_name` of a row; of a pause the plugin, nothing for all that the agents may use."""
    value: bool | None
    """On, off, or null to take the stored switches back; of a pause true begins it."""
    agent: Name = ""
    """For this agent alone; nothing is every agent that the token opens."""
    seen: str | None = None
    """The `seen` of the preview: where something has changed since, nothing is set. Null is any."""


@received
class TakenBack:
    """Which action is taken back."""

    mark: str
    """Its mark, as its answer or `standing` of a row has it."""


async def matrix(context: Context, visit: OperatorRequest) -> Matrix:
    """Return every agent beside every toolkit and plugin: what is on, what is stored, and what is paused."""
    return await context.subjects.matrix.matrix([agent.name for agent in context.agents(visit)])


async def preview_together(context: Context, visit: OperatorRequest, *, query: SupposedTogether) -> BulkSwitchPreview:
    """Return what a switch or pause would change, summed over the agents; nothing is changed."""
    value = {"true": True, "false": False, "null": None}[query.value]
    given = context.together(visit, query.kind, query.name, value, query.agent)
    return await preview_for_agents(context.services, context.subjects.previews, given)


async def set_together(context: Context, visit: OperatorRequest, *, body: NewTogether) -> ActionDone:
    """Set a switch or pause for one agent or all that the token opens, all or none; it binds the next call."""
    given = context.together(visit, body.kind, body.name, body.value, body.agent)
    by, may_grant = visit.operator.name, visit.operator.grants
    return await set_for_agents(context.services, given, by=by, seen=body.seen, may_grant=may_grant)


async def undo_together(context: Context, visit: OperatorRequest, *, body: TakenBack) -> ActionDone:
    """Restore what stood before an action, if all of it still is as that set it."""
    who = visit.operator
    return await undo_for_agents(context.services, body.mark, by=who.name, agents=who.agents, may_grant=who.grants)


_CODES: Final = ("unknown_agent", "unknown_name", "usage")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/matrix", matrix),
    Endpoint("POST", "/api/matrix", set_together, (*_CODES, "switch_changed"), "switch"),
    Endpoint("GET", "/api/matrix/preview", preview_together, _CODES),
    Endpoint("POST", "/api/matrix/undo", undo_together, ("unknown_name", "usage", "switch_changed"), "switch"),
)
