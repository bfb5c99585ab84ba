"""The part of the catalog that operators of some agents see: what these agents may use, name or have switched (G2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from pegboard.board.catalog.permission_compiler import NarrowedCompiler, PermissionCompiler
from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.agents import World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.selectors import Entry, entries
from pegboard.core.model.tools import Frozen, Plugin, Unreviewed


def services_of_agents(services: Services, agents: Collection[str]) -> Services:
    """Return services whose world has only the toolkits, plugins and tools that some agents are concerned with.

    Permissions of these agents are the same in it. It follows the world of the board.
    """
    narrow = partial(_world_of_agents, agents=tuple(agents))
    return replace(services, compiler=NarrowedCompiler(services.compiler, narrow))


@dataclass(slots=True)
class _VisibleNames:
    """What is seen of a world; a plugin among ``plugins`` is seen with all of its tools."""

    toolkits: set[str] = field(default_factory=set[str])
    plugins: set[str] = field(default_factory=set[str])
    tools: set[str] = field(default_factory=set[str])

    def add(self, other: _VisibleNames) -> None:
        self.toolkits |= other.toolkits
        self.plugins |= other.plugins
        self.tools |= other.tools

    def add_entries(self, found: Iterable[Entry]) -> None:
        for entry in found:
            self.tools.update(entry.ids)
            if entry.whole:
                self.plugins.add(entry.plugin)


def _world_of_agents(whole: PermissionCompiler, before: World, *, agents: Iterable[str]) -> World:
    """Return the part of a world that some agents are concerned with; the part before where it is equal."""
    world, seen = whole.world, _VisibleNames()
    for agent in agents:
        if agent in world.agents:
            seen.add(_seen_of(whole.without_switches(agent)))
            seen.add(_seen_of(whole.permissions_of_agent(agent)))
    toolkits = Frozen({name: toolkit for name, toolkit in world.toolkits.items() if name in seen.toolkits})
    plugins = [part for plugin in world.catalog.plugins.values() if (part := _part(plugin, seen)) is not None]
    if [plugin.name for plugin in plugins] == list(before.catalog.plugins):
        catalog = before.catalog.with_plugins(plugins)
    else:
        catalog = Catalog(plugins)
    same = _is_same(before.toolkits, toolkits)
    if same and catalog is before.catalog and before.agents is world.agents and before.loadouts is world.loadouts:
        return before
    return replace(world, catalog=catalog, toolkits=before.toolkits if same else toolkits)


def _is_same(before: object, now: dict[str, object]) -> bool:
    return isinstance(before, dict) and list(before) == list(now) and all(before[name] is now[name] for name in now)


@once_per_permissions
def _seen_of(permissions: CompiledPermissions) -> _VisibleNames:
    """Return what an agent may use, names, or has switched."""
    world, seen = permissions.world, _VisibleNames()
    named, switches = permissions.entries, permissions.switches
    seen.toolkits = {*named.toolkits, *switches.toolkits}
    loadout = permissions.loadout
    disabled = (name for name in world.catalog.plugins if loadout is not None and loadout.disables(name))
    seen.plugins = {*switches.plugins, *disabled}
    sub_apps = (world.sub_apps.get(name, ()) for name in permissions.agent.sub_apps)
    seen.add_entries(chain(named.essential, named.static, entries(tuple(chain(*sub_apps)), world.catalog)))
    seen.add_entries(
        chain(*(named.looked_up.entries_of_toolkit(name) for name in seen.toolkits if name in world.toolkits))
    )
    seen.tools |= {*switches.tools, *(tool.id for tool in permissions.permitted)}
    unknown = (plugin for plugin in world.catalog.plugins.values() if not plugin.tools)
    seen.plugins |= {plugin.name for plugin in unknown if permissions.grants_unseen(plugin)}
    return seen


def _part(plugin: Plugin, seen: _VisibleNames) -> Plugin | None:
    """Return what is seen of a plugin, None where that is nothing."""
    tools = tuple(tool for tool in plugin.tools if tool.id in seen.tools)
    if plugin.name in seen.plugins or (tools and len(tools) == len(plugin.tools)):
        return plugin
    if not tools:
        return None
    names = {tool.name for tool in tools}
    is_seen: Callable[[str], bool] = names.__contains__
    variants = {
        key: replace(one, tools=tuple(filter(is_seen, one.tools)) if one.tools is not None else None)
        for key, one in plugin.variants.items()
    }
    waiting = Unreviewed(changed=tuple(filter(is_seen, plugin.unreviewed.changed)))
    words = tuple(_words_of(names, plugin.words))
    return replace(
        plugin,
        tools=tools,
        variants=Frozen(variants),
        unreviewed=waiting,
        excluded=Frozen(),
        cut=Frozen({name: why for name, why in plugin.cut.items() if name.partition(".")[0] in names}),
        not_tools=Frozen(),
        words=words,
    )


def _words_of(names: Collection[str], words: Iterable[str]) -> Iterator[str]:
    """Yield the words that stand in a name."""
    yield from (word for word in words if any(word in name.casefold() for name in names))
