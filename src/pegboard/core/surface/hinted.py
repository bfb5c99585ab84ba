"""What there is to hint: the toolkits that can be loaded, and the plugins and tools that none of these holds (F2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions, tool_fault
from pegboard.core.model.catalog import Ref
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import toolkit_to_load, tools_loaded_at_start
from pegboard.core.state.sessions import HintForm, ShownHints, State
from pegboard.core.state.subjects import excluded_by_loadout, may_bring, reachable


@once_per_permissions
def hinted_toolkits(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> tuple[Toolkit, ...]:
    """Return the toolkits that are hinted under an active loadout, in the agent's order.

    One that is nothing but a plugin under its own name is hinted as that plugin, unless toolkits are all that is.
    """
    state = State(loadout=loadout)
    known = (permissions.world.toolkits[name] for name in permissions.entries.loadable_toolkits)
    return tuple(
        toolkit
        for toolkit in known
        if (form == "toolkits" or not _is_a_plugin(permissions, toolkit))
        and toolkit_to_load(permissions, state, toolkit.name)
    )


def _is_a_plugin(permissions: CompiledPermissions, toolkit: Toolkit) -> bool:
    plugin = permissions.world.catalog.plugins.get(toolkit.name)
    members = [member.name for member in toolkit.members]
    return plugin is not None and members == [toolkit.name] and toolkit.description in ("", plugin.description)


def hinted_tools(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> Iterator[Tool]:
    """Yield the tools that are hinted one by one: what is within reach, can run and is not loaded from the start."""
    if form == "toolkits":
        return
    state, inside = State(loadout=loadout), _hinted_inside(permissions, loadout, form)[0]
    start, taken = tools_loaded_at_start(permissions, state), _names_from_start(permissions, loadout)
    for tool in reachable(permissions, state):
        known = tool.id in start or tool.id in inside
        if not known and tool.wire not in taken and not tool_fault(permissions, tool):
            yield tool


@once_per_permissions
def _names_from_start(permissions: CompiledPermissions, loadout: str | None) -> frozenset[str]:
    """Return the wire names that no other tool can have beside what is loaded from the start (G10)."""
    return frozenset(loaded.tool.wire for loaded in tools_loaded_at_start(permissions, State(loadout=loadout)).values())


@once_per_permissions
def hinted_plugins(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> tuple[Plugin, ...]:
    """Return the plugins that have something to load which no toolkit in the hints holds, seen or not seen yet.

    One that is known to be unavailable has nothing to load (P6).
    """
    entries = permissions.entries
    return tuple(
        plugin
        for plugin in _plugins_with_more(permissions, loadout, form)
        if not plugin.variant(entries.of_plugin(plugin.name).key).unavailable
    )


@once_per_permissions
def unseen_plugins(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> tuple[Plugin, ...]:
    """Return those of the hinted plugins that have not been asked for their tools yet and are not loaded."""
    return _without_tools(permissions, hinted_plugins(permissions, loadout, form))


@once_per_permissions
def searched_plugins(permissions: CompiledPermissions, loadout: str | None) -> tuple[Plugin, ...]:
    """Return the plugins of which no tools are known and that are not loaded: also those that are unavailable (P6)."""
    return _without_tools(permissions, _plugins_with_more(permissions, loadout, "tools"))


def _without_tools(permissions: CompiledPermissions, plugins: Iterable[Plugin]) -> tuple[Plugin, ...]:
    from_start = permissions.entries.plugins_from_start
    return tuple(plugin for plugin in plugins if not plugin.tools and plugin.name not in from_start)


@once_per_permissions
def _plugins_with_more(permissions: CompiledPermissions, loadout: str | None, form: HintForm) -> tuple[Plugin, ...]:
    """Return the plugins that have something which no toolkit in the hints holds, whether they can run or not."""
    if form == "toolkits":
        return ()
    state, (inside, whole) = State(loadout=loadout), _hinted_inside(permissions, loadout, form)
    start, taken = tools_loaded_at_start(permissions, state), _names_from_start(permissions, loadout)

    def has_more(plugin: Plugin) -> bool:
        if not plugin.tools:
            return plugin.name not in whole and permissions.grants_unseen(plugin)
        return any(
            t.id not in start and t.wire not in taken and t.id not in inside and permissions.permits(t)
            for t in plugin.tools
        )

    plugins = permissions.world.catalog.plugins.values()
    return tuple(plugin for plugin in plugins if has_more(plugin) and may_bring(permissions, state, plugin))


@once_per_permissions
def _hinted_inside(
    permissions: CompiledPermissions, loadout: str | None, form: HintForm
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of the tools that the hinted toolkits hold, and the plugins that they hold whole."""
    names = [toolkit.name for toolkit in hinted_toolkits(permissions, loadout, form)] if form != "tools" else []
    entries = [entry for name in names for entry in permissions.entries.toolkits[name]]
    whole = frozenset(entry.plugin for entry in entries if entry.whole)
    return frozenset[str]().union(*(entry.ids for entry in entries)), whole


def number_of_tools(permissions: CompiledPermissions, toolkit: Toolkit) -> int | None:
    """Return how many tools a toolkit has for the agent, None as long as some of it has not been seen."""
    catalog = permissions.world.catalog
    entries = permissions.entries.toolkits[toolkit.name]
    if not toolkit.complete(catalog):
        return None
    if not all(catalog.plugins[entry.plugin].variant(entry.key).known for entry in entries):
        return None
    return len({tool.id for entry in entries for tool in entry.tools if permissions.permits(tool)})


# -- what was shown before -------------------------------------------------------------------------


@once_per_permissions
def still_stands(permissions: CompiledPermissions, shown: ShownHints, loadout: str | None, form: HintForm) -> bool:
    """Return whether all that shown hints are about is within reach: else they are rendered again (P4)."""
    state = State(loadout=loadout)
    return (shown.loadout, shown.form) == (loadout, form) and all(
        _within_reach(permissions, state, Ref.parse(text)) for text in shown.about
    )


def _within_reach(permissions: CompiledPermissions, state: State, ref: Ref) -> bool:
    """Return whether it can be loaded; a tool whose plugin has not been seen by this process is taken for granted."""
    if ref.kind == "toolkit":
        return permissions.may_load_toolkit(ref.name)
    catalog = permissions.world.catalog
    tool = catalog.by_id(ref.name) if ref.kind == "tool" else None
    if tool is not None:
        return permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)
    plugin = catalog.plugins.get(ref.name if ref.kind == "plugin" else ref.name.partition("/")[0])
    if plugin is None or not may_bring(permissions, state, plugin):
        return False
    return permissions.may_have_tools_of(plugin) and (ref.kind == "plugin" or not plugin.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class HintedSubjects:
    """What hints are about: toolkits, whole plugins, and tools."""

    toolkits: tuple[Toolkit, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def about(self) -> frozenset[str]:
        """Return the references to all of it."""
        refs = (
            *(Ref("toolkit", toolkit.name) for toolkit in self.toolkits),
            *(Ref("plugin", plugin.name) for plugin in self.plugins),
            *(Ref("tool", tool.id) for tool in self.tools),
        )
        return frozenset(map(str, refs))


@once_per_permissions
def known_since(
    permissions: CompiledPermissions, shown: ShownHints, loadout: str | None, form: HintForm
) -> HintedSubjects:
    """Return what could be hinted now and was not known, or not granted, when hints were shown."""
    about = shown.about
    plugins = unseen_plugins(permissions, loadout, form)
    tools: Iterable[Tool] = ()
    if shown.by_plugin:
        plugins = hinted_plugins(permissions, loadout, form)
    elif any(plugin.tools for plugin in hinted_plugins(permissions, loadout, form)):
        tools = hinted_tools(permissions, loadout, form)
    return HintedSubjects(
        toolkits=tuple(t for t in hinted_toolkits(permissions, loadout, form) if f"toolkit:{t.name}" not in about),
        plugins=tuple(plugin for plugin in plugins if f"plugin:{plugin.name}" not in about),
        tools=tuple(tool for tool in tools if f"tool:{tool.id}" not in about),
    )
