"""Agents and their switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pegboard.board.views.switch_views.preview import SwitchPreview
from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.visits import Visit
from pegboard.ports import UNCHECKED


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentName:
    """An agent that the operator sees."""

    name: str
    display_name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSet:
    """A switch as it is stored now; null is none, so that the file's counts."""

    agent: str
    name: str
    value: bool | None


@received
class SupposedSwitch:
    """What a switch would be."""

    name: str
    """A toolkit, plugin or tool."""
    value: Literal["true", "false", "null"]
    """On, off, or the stored switch taken back."""


@received
class NewSwitch:
    """What a switch is to be."""

    name: str
    """A toolkit, plugin or tool."""
    value: bool | None
    """On, off, or null to take the stored switch back, so that the file's counts again."""
    expected: bool | Literal["any"] | None = "any"
    """The stored switch that whoever decides was shown, null where none was: where it is another one by now, nothing is
    changed."""


async def agents(context: Context, visit: Visit) -> tuple[AgentName, ...]:
    """Return the agents."""
    return tuple(
        AgentName(name=agent.name, display_name=agent.display_name, role=agent.role) for agent in context.agents(visit)
    )


async def switches(context: Context, visit: Visit, *, agent: str) -> tuple[Mapping[str, Any], ...]:
    """Return the switches of an agent."""
    return await context.board.permissions.panel(context.agent(visit, agent).name)


async def preview_switch(context: Context, visit: Visit, *, agent: str, query: SupposedSwitch) -> SwitchPreview:
    """Return what a switch would change: what the agent gains or loses, and in which sessions; nothing is changed."""
    name, value = context.agent(visit, agent).name, {"true": True, "false": False, "null": None}[query.value]
    return await context.operations.preview(name, query.name, value)


async def set_switch(context: Context, visit: Visit, *, agent: str, body: NewSwitch) -> SwitchSet:
    """Set a switch of an agent, or take the stored one back; it binds the next call of every session."""
    name = context.agent(visit, agent).name
    expected = UNCHECKED if body.expected == "any" else body.expected
    await context.board.permissions.set(name, body.name, body.value, by=visit.operator.name, expected=expected)
    return SwitchSet(agent=name, name=body.name, value=body.value)


_CODES: Final = ("unknown_agent", "unknown_name", "usage")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/agents", agents),
    Endpoint("GET", "/api/agents/{agent}/switches", switches, ("unknown_agent",)),
    Endpoint("PUT", "/api/agents/{agent}/switches", set_switch, (*_CODES, "switch_changed")),
    Endpoint("GET", "/api/agents/{agent}/switches/preview", preview_switch, _CODES),
)
