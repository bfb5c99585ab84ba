"""What a search may find: the tools within reach, and the groups that can be loaded by name (P3, F2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.agents import World
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import excluded_by_loadout, reachable
from pegboard.core.surface.hinted import searched_plugins


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A toolkit, or a plugin whose tools are not known yet: it is found by its name and description.

    Attributes:
        kind: which of the two.
        name: the name under which it is loaded.
        description: what it is for.
        members: the names of a toolkit's members, as the file has them.
        tools: the ids of its tools that are known and within reach.
    """

    kind: Literal["toolkit", "plugin"]
    name: str
    description: str = ""
    members: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searchable:
    """What one agent may find; the same object as long as nothing has changed, so that an index can be kept.

    Attributes:
        tools: the tools within reach.
        plugins: the descriptions of their plugins, by name.
        groups: what else can be found.
    """

    tools: Sequence[Tool]
    plugins: Mapping[str, str] = field(default=EMPTY)
    groups: tuple[Group, ...] = ()


@once_per_permissions
def searchable(permissions: CompiledPermissions, loadout: str | None) -> Searchable:
    """Return what may be found under an active loadout (P3, L7): nothing but what is permitted.

    Where the model loads toolkits only, it finds toolkits only (F2).
    """
    state = State(loadout=loadout)
    if permissions.agent.dialect == "toolkits":
        return Searchable(tools=(), groups=_toolkits(permissions, state))
    tools = reachable(permissions, state)
    catalog = permissions.world.catalog
    plugins = {name: catalog.plugins[name].description for name in dict.fromkeys(map(_PLUGIN, tools))}
    unknown = (
        Group(kind="plugin", name=plugin.name, description=plugin.description)
        for plugin in searched_plugins(permissions, loadout)
    )
    return Searchable(tools=tools, plugins=plugins, groups=(*_toolkits(permissions, state), *unknown))


def all_searchable(world: World) -> Searchable:
    """Return everything that there is, whoever may use it: for operators, never for a model (P3, P9)."""
    catalog = world.catalog
    unknown = (
        Group(kind="plugin", name=plugin.name, description=plugin.description)
        for plugin in catalog.plugins.values()
        if not plugin.tools
    )
    toolkits = (
        _group(toolkit, (tool.id for entry in toolkit.entries(catalog) for tool in entry.tools))
        for toolkit in world.toolkits.values()
    )
    return Searchable(
        tools=tuple(catalog),
        plugins={plugin.name: plugin.description for plugin in catalog.plugins.values() if plugin.tools},
        groups=(*toolkits, *unknown),
    )


_PLUGIN = attrgetter("plugin")


def _toolkits(permissions: CompiledPermissions, state: State) -> tuple[Group, ...]:
    groups: list[Group] = []
    for name in permissions.entries.loadable_toolkits:
        toolkit = permissions.world.toolkits[name]
        own = {tool.id: tool for entry in permissions.entries.toolkits[name] for tool in entry.tools}.values()
        tools = (
            tool.id for tool in own if permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
        )
        groups.append(_group(toolkit, tools))
    return tuple(groups)


def _group(toolkit: Toolkit, tools: Iterable[str]) -> Group:
    return Group(
        kind="toolkit",
        name=toolkit.name,
        description=toolkit.description,
        members=tuple(member.name for member in toolkit.members),
        tools=tuple(dict.fromkeys(tools)),
    )
