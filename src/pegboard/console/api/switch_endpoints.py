"""Agents and their switches, one agent at a time or every agent beside every toolkit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from pegboard.board.permissions import Permissions
from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name, mask_value
from pegboard.operators.matrix import Matrix
from pegboard.operators.switch_preview import SwitchPreview
from pegboard.operators.switches import GroupKind, PanelPage
from pegboard.operators.together import (
    BulkActionDone,
    BulkSwitchKind,
    BulkSwitchPreview,
    preview_for_agents,
    set_for_agents,
    undo_for_agents,
)
from pegboard.ports import UNCHECKED


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentName:
    """An agent that the operator sees."""

    name: Name
    display_name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSet:
    """A switch as it is stored now; null is none, so that the file's counts."""

    agent: Name
    name: Name
    value: bool | None


@request_class
class PanelQuery:
    """Which switches are listed."""

    query: Name = ""
    """Words that all stand in a row's label, name or description, or in those of one of its members."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many rows are passed over."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """How many there are at most."""


@request_class
class MembersQuery:
    """Which members of a row are listed."""

    kind: GroupKind
    """Which kind of row it is."""
    name: Name
    """Its name; where there is no such row, there are no members."""
    query: Name = ""
    """Words that all stand in a member's label, name or description."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    """How many there are at most."""


@request_class
class SupposedSwitch:
    """What a switch would be."""

    name: Name
    """A toolkit, plugin or tool: the `switch_name` of a row."""
    value: Literal["true", "false", "null"]
    """On, off, or the stored switch taken back."""


@request_class
class NewSwitch:
    """What a switch is to be."""

    name: Name
    """A toolkit, plugin or tool: the `switch_name` of a row."""
    value: bool | None
    """On, off, or null to take the stored switch back, so that the file's counts again."""
    expected: bool | Literal["any"] | None = "any"
    """The stored switch that whoever decides was shown, null where none was: where it is another one by now, nothing is
    changed."""


async def agents(context: Context, visit: OperatorRequest) -> tuple[AgentName, ...]:
    """Return the agents."""
    seen = context.agents(visit)
    found = (AgentName(name=agent.name, display_name=agent.display_name, role=agent.role) for agent in seen)
    return mask_value(tuple(found), visit.names)


async def switches(context: Context, visit: OperatorRequest, *, agent: str, query: PanelQuery) -> PanelPage:
    """Return what can be switched of an agent: toolkits, then plugins with what is in none."""
    name = context.agent(visit, agent).name
    return await context.subjects.panels.page(name, query=query.query, offset=query.offset, limit=query.limit)


async def switch_members(context: Context, visit: OperatorRequest, *, agent: str, query: MembersQuery) -> PanelPage:
    """Return what is in a toolkit, or in a plugin and in no toolkit."""
    name = context.agent(visit, agent).name
    return await context.subjects.panels.members(
        name, query.kind, query.name, query=query.query, offset=query.offset, limit=query.limit
    )


async def preview_switch(
    context: Context, visit: OperatorRequest, *, agent: str, query: SupposedSwitch
) -> SwitchPreview:
    """Return what a switch would change: what the agent gains or loses, and in which sessions; nothing is changed."""
    name, value = context.agent(visit, agent).name, {"true": True, "false": False, "null": None}[query.value]
    return await context.subjects.previews.of_switch(name, query.name, value)


async def set_switch(context: Context, visit: OperatorRequest, *, agent: str, body: NewSwitch) -> SwitchSet:
    """Set a switch of an agent, or take the stored one back; it binds the next call of every session."""
    name = context.agent(visit, agent).name
    expected = UNCHECKED if body.expected == "any" else body.expected
    by, may_grant = visit.operator.name, visit.operator.grants
    await Permissions(context.services).set(name, body.name, body.value, by=by, expected=expected, may_grant=may_grant)
    return mask_value(SwitchSet(agent=name, name=body.name, value=body.value), visit.names)


_CODES: Final = ("unknown_agent", "unknown_name", "usage")


@request_class
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


@request_class
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


@request_class
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


async def set_together(context: Context, visit: OperatorRequest, *, body: NewTogether) -> BulkActionDone:
    """Set a switch or pause for one agent or all that the token opens, all or none; it binds the next call."""
    given = context.together(visit, body.kind, body.name, body.value, body.agent)
    by, may_grant = visit.operator.name, visit.operator.grants
    return await set_for_agents(context.services, given, by=by, seen=body.seen, may_grant=may_grant)


async def undo_together(context: Context, visit: OperatorRequest, *, body: TakenBack) -> BulkActionDone:
    """Restore what stood before an action, if all of it still is as that set it."""
    who = visit.operator
    return await undo_for_agents(context.services, body.mark, by=who.name, agents=who.agents, may_grant=who.grants)


ENDPOINTS: Final = (
    Endpoint("GET", "/api/agents", agents),
    Endpoint("GET", "/api/agents/{agent}/switches", switches, ("unknown_agent",)),
    Endpoint("PUT", "/api/agents/{agent}/switches", set_switch, (*_CODES, "switch_changed"), "switch"),
    Endpoint("GET", "/api/agents/{agent}/switches/members", switch_members, ("unknown_agent",)),
    Endpoint("GET", "/api/agents/{agent}/switches/preview", preview_switch, _CODES),
    Endpoint("GET", "/api/matrix", matrix),
    Endpoint("POST", "/api/matrix", set_together, (*_CODES, "switch_changed"), "switch"),
    Endpoint("GET", "/api/matrix/preview", preview_together, _CODES),
    Endpoint("POST", "/api/matrix/undo", undo_together, ("unknown_name", "usage", "switch_changed"), "switch"),
)
