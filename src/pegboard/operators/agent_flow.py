"""What an agent reaches, and how: its toolkits, their servers, how many tokens each takes, and whether it is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pegboard.board.catalog.loader import IN_PROCESS
from pegboard.board.discover import discover_every
from pegboard.board.services import Services
from pegboard.board.session_info import agent_of
from pegboard.core.access.availability import tool_fault
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.panels import PanelGroup, PanelPart, groups
from pegboard.core.state.active_tools import starting_tools
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.masked import Name, Verbatim, masked, shown_names

FlowState = Literal["loaded", "may_load", "off", "cannot_run"]
"""Loaded from the start; not loaded, and may be; switched off; permitted, and cannot run now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPart:
    """Tools of one server or plugin that an agent has by one toolkit, in one state.

    Attributes:
        toolkit: the toolkit, or nothing where they stand in none.
        server: the server or plugin.
        kind: what that is.
        state: what becomes of them.
        tools: how many; what is not known yet is one.
        tokens: what they take; None while that is not known.
    """

    toolkit: Name
    server: Name
    kind: Verbatim
    state: FlowState
    tools: int
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFlow:
    """What an agent reaches, in the order of its switches; ``not_granted`` is how many rows it has nothing of."""

    agent: Name
    parts: tuple[FlowPart, ...]
    not_granted: int


async def agent_flow(services: Services, counting: CatalogCounting, agent: str) -> AgentFlow:
    """Return what an agent reaches.

    Raises:
        UnknownAgentError: there is no such agent.
        StoreError: the stored switches cannot be read.
    """
    agent_of(services.world, agent)
    await discover_every(services, IN_PROCESS)
    await services.compiler.refresh()
    permissions, counted = services.compiler.of_agent(agent), await counting.done()
    parts: list[FlowPart] = []
    not_granted = 0
    for group in groups(permissions):
        found = [*_parts(services, permissions, group, counted=counted)]
        parts += found
        not_granted += not found and group.kind != "unknown"
        await asyncio.sleep(0)
    return masked(AgentFlow(agent=agent, parts=tuple(parts), not_granted=not_granted), await shown_names(services))


def _parts(
    services: Services, permissions: CompiledPermissions, group: PanelGroup, *, counted: bool
) -> Iterator[FlowPart]:
    """Yield what an agent has of a group; nothing where it is granted nothing and nobody switched it off."""
    starting, parts = starting_tools(permissions), group.parts
    if group.kind == "plugin" and not parts:  # none of its tools is known
        parts = (PanelPart(plugin=permissions.world.catalog.plugins[group.name], tools=()),)
    for part in parts:
        if not part.tools:
            yield from _unseen(permissions, group, part)
            continue
        by_state: dict[FlowState, list[int]] = {}
        for tool in part.tools:
            state: FlowState
            if not permissions.permits(tool):
                if not _is_switched_off(permissions, group, part):
                    continue
                state = "off"
            elif tool_fault(permissions, tool, part.key):
                state = "cannot_run"
            else:
                state = "loaded" if tool.id in starting else "may_load"
            by_state.setdefault(state, []).append(services.prices((tool,)) if counted else 0)
        for state, tokens in by_state.items():
            yield FlowPart(
                toolkit=group.name if group.kind == "toolkit" else "",
                server=part.plugin.name,
                kind=part.plugin.kind,
                state=state,
                tools=len(tokens),
                tokens=sum(tokens) if counted else None,
            )


def _unseen(permissions: CompiledPermissions, group: PanelGroup, part: PanelPart) -> Iterator[FlowPart]:
    granted = permissions.grants_unseen(part.plugin)
    if granted or _is_switched_off(permissions, group, part):
        broken = granted and part.plugin.variant(part.key).unavailable
        yield FlowPart(
            toolkit=group.name if group.kind == "toolkit" else "",
            server=part.plugin.name,
            kind=part.plugin.kind,
            state="cannot_run" if broken else "may_load" if granted else "off",
            tools=1,
            tokens=None,
        )


def _is_switched_off(permissions: CompiledPermissions, group: PanelGroup, part: PanelPart) -> bool:
    switches = permissions.switches
    of_toolkit = switches.toolkits.get(group.name) if group.kind == "toolkit" else None
    of_plugin = switches.plugins.get(part.plugin.name)
    return any(switch is not None and not switch.on for switch in (of_toolkit, of_plugin))
