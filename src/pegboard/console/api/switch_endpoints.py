"""Agents and their switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.masked import Name, masked
from pegboard.operators.switch_preview import SwitchPreview
from pegboard.operators.switches import GroupKind, PanelPage
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


@received
class PanelQuery:
    """Which switches are listed."""

    query: Name = ""
    """Words that all stand in a row's label, name or description, or in those of one of its members."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many rows are passed over."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """How many there are at most."""


@received
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


@received
class SupposedSwitch:
    """What a switch would be."""

    name: Name
    """A toolkit, plugin or tool: the `switch_name` of a row."""
    value: Literal["true", "false", "null"]
    """On, off, or the stored switch taken back."""


@received
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
    return masked(tuple(found), visit.names)


async def switches(context: Context, visit: OperatorRequest, *, agent: str, query: PanelQuery) -> PanelPage:
    """Return what can be switched of an agent: toolkits, then plugins with what stands in none."""
    name = context.agent(visit, agent).name
    return await context.subjects.panels.page(name, query=query.query, offset=query.offset, limit=query.limit)


async def switch_members(context: Context, visit: OperatorRequest, *, agent: str, query: MembersQuery) -> PanelPage:
    """Return what stands in a toolkit, or in a plugin and in no toolkit."""
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
    await context.board.permissions.set(name, body.name, body.value, by=by, expected=expected, may_grant=may_grant)
    return masked(SwitchSet(agent=name, name=body.name, value=body.value), visit.names)


_CODES: Final = ("unknown_agent", "unknown_name", "usage")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/agents", agents),
    Endpoint("GET", "/api/agents/{agent}/switches", switches, ("unknown_agent",)),
    Endpoint("PUT", "/api/agents/{agent}/switches", set_switch, (*_CODES, "switch_changed"), "switch"),
    Endpoint("GET", "/api/agents/{agent}/switches/members", switch_members, ("unknown_agent",)),
    Endpoint("GET", "/api/agents/{agent}/switches/preview", preview_switch, _CODES),
)
