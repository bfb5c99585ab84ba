"""What an edit of the configuration would change before it is saved: for each agent, and for its sessions (P4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pegboard.board.catalog.permission_compiler import PermissionCompiler
from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.selectors import Member
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.core.state.requirements import unknown_plugins
from pegboard.core.state.sessions import State
from pegboard.operators.counting import count_ahead
from pegboard.operators.masked import Name
from pegboard.operators.snapshots import known_sessions
from pegboard.operators.switch_preview import (
    Comparison,
    ParsedLeases,
    SessionChange,
    only_in,
    sessions_of,
    wire_names,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChange:
    """What an edit would change for one agent.

    Attributes:
        agent: its name.
        change: whether it is new, goes, or is there before and after.
        gained: the wire names of what it could use then and cannot now.
        lost: the wire names of what it can use now and could not then.
        gained_tokens: those of what is gained.
        lost_tokens: those of what is lost.
        gained_unknown: plugins that it could use then and whose tools are not known; they count in no figure.
        lost_unknown: those that it could no longer use.
        sessions: what changes, by session, the newest first; none of an agent that goes.
        unchanged: how many other sessions there are; of an agent that goes, how many end.
        unreadable: how many there are whose stored state is damaged.
    """

    agent: Name
    change: Literal["added", "removed", "changed"]
    gained: tuple[Name, ...] = ()
    lost: tuple[Name, ...] = ()
    gained_tokens: int = 0
    lost_tokens: int = 0
    gained_unknown: tuple[Name, ...] = ()
    lost_unknown: tuple[Name, ...] = ()
    sessions: tuple[SessionChange, ...] = ()
    unchanged: int = 0
    unreadable: int = 0


async def agent_changes(services: Services, parsed: ParsedLeases, world: World) -> tuple[AgentChange, ...]:
    """Return what another world would change, agent by agent; nothing is stored, asked for or started."""
    compiler = services.compiler
    await compiler.refresh()
    supposed, before = compiler.supposing_world(world), compiler.world
    found: list[AgentChange] = []
    shared = await asyncio.to_thread(_shared_alike, before, world)
    for name in dict.fromkeys((*before.agents, *world.agents)):
        await asyncio.sleep(0)  # of a large catalog each agent takes long: others are answered between two of them
        if name not in world.agents:
            found.append(await _change_of_removed(services, compiler, name))
        elif name not in before.agents:
            found.append(await _change_of_added(services, supposed, name))
        elif (change := await _change_of_kept(services, parsed, supposed, name, shared=shared)) is not None:
            found.append(change)
    return tuple(found)


async def _change_of_removed(services: Services, compiler: PermissionCompiler, name: str) -> AgentChange:
    lost = tuple(_permitted_tools(compiler.permissions_of_agent(name)))
    await count_ahead(services, lost)
    sessions = await known_sessions(services, agent=name)
    return AgentChange(
        agent=name,
        change="removed",
        lost=wire_names(lost),
        lost_tokens=services.prices(lost),
        lost_unknown=tuple(sorted(unknown_plugins(compiler.permissions_of_agent(name)))),
        unchanged=len(sessions),
    )


async def _change_of_added(services: Services, supposed: PermissionCompiler, name: str) -> AgentChange:
    permissions = supposed.permissions_of_agent(name)
    gained = tuple(_permitted_tools(permissions))
    await count_ahead(services, gained)
    return AgentChange(
        agent=name,
        change="added",
        gained=wire_names(gained),
        gained_tokens=services.prices(gained),
        gained_unknown=tuple(sorted(unknown_plugins(permissions))),
    )


async def _change_of_kept(
    services: Services, parsed: ParsedLeases, supposed: PermissionCompiler, name: str, *, shared: bool
) -> AgentChange | None:
    before, after = services.compiler.permissions_of_agent(name), supposed.permissions_of_agent(name)
    # Of a large catalog this takes hundreds of milliseconds, in which no call would be answered.
    gained, lost, unknown, unknown_then = await asyncio.to_thread(_differences, before, after)
    alike = shared and _profile(before.world.agents[name]) == _profile(after.world.agents[name])
    if not gained and not lost and unknown == unknown_then and alike:
        return None
    comparison = Comparison(services, supposed, _AnyState(), parsed)
    await comparison.add(await sessions_of(services, name))
    await count_ahead(services, (*gained, *lost, *comparison.tools()))
    sessions = comparison.changes()
    if not (gained or lost or sessions or unknown != unknown_then):
        return None
    return AgentChange(
        agent=name,
        change="changed",
        gained=wire_names(gained),
        lost=wire_names(lost),
        gained_tokens=services.prices(gained),
        lost_tokens=services.prices(lost),
        gained_unknown=tuple(sorted(unknown_then - unknown)),
        lost_unknown=tuple(sorted(unknown - unknown_then)),
        sessions=sessions,
        unchanged=comparison.unchanged,
        unreadable=comparison.unreadable,
    )


class _AnyState:
    """Every session may have other tools loaded after an edit: no state is ruled out."""

    def touches(self, state: State) -> bool:  # noqa: ARG002
        """Return that it may be different."""
        return True


def _permitted_tools(permissions: CompiledPermissions) -> Iterator[Tool]:
    for plugin in permissions.world.catalog.plugins.values():
        yield from permissions.plugin_permissions.tools_of(plugin)


def _differences(
    before: CompiledPermissions, after: CompiledPermissions
) -> tuple[tuple[Tool, ...], tuple[Tool, ...], frozenset[str], frozenset[str]]:
    """Return what is gained and lost, and the plugins before and after whose tools are not known."""
    unknown, unknown_then = frozenset(unknown_plugins(before)), frozenset(unknown_plugins(after))
    return only_in(after, before), only_in(before, after), unknown, unknown_then


def _shared_alike(before: World, after: World) -> bool:
    """Return whether the toolkits and loadouts from which the sessions of any agent start are as they were."""
    kits_before = {name: _without_place(kit) for name, kit in before.toolkits.items()}
    kits_after = {name: _without_place(kit) for name, kit in after.toolkits.items()}
    return kits_before == kits_after and _loadouts(before) == _loadouts(after)


def _loadouts(world: World) -> dict[str, Loadout]:
    return {name: replace(loadout, place=None) for name, loadout in world.loadouts.items()}


def _profile(agent: Agent) -> Agent:
    return replace(
        agent, place=None, switch_places=EMPTY, static=_members(agent.static), essential=_members(agent.essential)
    )


def _without_place(kit: Toolkit) -> Toolkit:
    return replace(kit, place=None, members=_members(kit.members))


def _members(members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(replace(member, place=None) for member in members)
