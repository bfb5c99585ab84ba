"""What leases stand for, which of them count (S3), and what the session's loadouts exclude (L7, S9).

The active loadout never grants. Of what the agent may use, what it makes active is loaded, what it makes discoverable
may be loaded, everything else is excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pegboard.core.access.decisions import Reason
from pegboard.core.access.names import plugins_of_category
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import Ref, split_kind
from pegboard.core.model.leases import Lease
from pegboard.core.model.loadout_registry import PluginCategories, active_of, discoverable_of
from pegboard.core.model.loadouts import merge
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.sessions import State

Keep = Callable[[Tool], bool]
"""A function that tells whether a loadout keeps a tool."""


@once_per_permissions
def active_plugins(permissions: CompiledPermissions, loadout: str) -> frozenset[str]:
    """Return the plugins of the catalog that a loadout makes active."""
    pairs = ((plugin.name, plugin.category) for plugin in permissions.world.catalog.plugins.values())
    return active_of(merge(loadout, permissions.world.loadouts), PluginCategories(pairs))


@once_per_permissions
def plugins_in_reach(permissions: CompiledPermissions, loadout: str) -> frozenset[str]:
    """Return the plugins of the catalog that a loadout makes active or discoverable."""
    pairs = ((plugin.name, plugin.category) for plugin in permissions.world.catalog.plugins.values())
    return active_plugins(permissions, loadout) | discoverable_of(
        merge(loadout, permissions.world.loadouts), PluginCategories(pairs)
    )


def narrowing_of_loadout(permissions: CompiledPermissions, state: State) -> Keep | None:
    """Return what a session's active loadout keeps in reach besides essentials; None narrows nothing (L7)."""
    if state.loadout is None:
        return None
    plugins = plugins_in_reach(permissions, state.loadout)
    return lambda tool: tool.plugin in plugins


def start_narrowing(permissions: CompiledPermissions, state: State) -> Keep | None:
    """Return what the active loadout and the budget's keep of what is loaded from the start (L7, S9)."""
    names = [name for name in (state.loadout, state.shrunk) if name is not None]
    if not names:
        return None
    active = active_plugins(permissions, names[0]) & active_plugins(permissions, names[-1])
    return lambda tool: tool.plugin in active


def reachable(permissions: CompiledPermissions, state: State) -> tuple[Tool, ...]:
    """Return what is permitted and not excluded by the active loadout; the same object every time (P3)."""
    return permissions.permitted if state.loadout is None else _permitted_with(permissions, state.loadout)


def reachable_in_category(permissions: CompiledPermissions, state: State, name: str) -> tuple[Tool, ...]:
    """Return what is reachable of the category that a name states (``category:Git``); nothing for any other name."""
    kind, category = split_kind(name)
    if kind != "category":
        return ()
    plugins = frozenset(plugin.name for plugin in permissions.world.catalog.category(category))
    return tuple(tool for tool in reachable(permissions, state) if tool.plugin in plugins)


@once_per_permissions
def _permitted_with(permissions: CompiledPermissions, loadout: str) -> tuple[Tool, ...]:
    return tuple(tool for tool in permissions.permitted if not _excludes(permissions, loadout, tool))


def excluded_by_loadout(permissions: CompiledPermissions, state: State, tool: Tool) -> bool:
    """Return whether the active loadout excludes a tool that is not essential (L7)."""
    return state.loadout is not None and _excludes(permissions, state.loadout, tool)


def _excludes(permissions: CompiledPermissions, loadout: str, tool: Tool) -> bool:
    if tool.plugin in plugins_in_reach(permissions, loadout):
        return False
    return not any(tool.id in entry.ids for entry in permissions.entries.essential)


def may_bring(permissions: CompiledPermissions, state: State, plugin: Plugin) -> bool:
    """Return whether a plugin can have something that the active loadout does not exclude."""
    if state.loadout is None or plugin.name in plugins_in_reach(permissions, state.loadout):
        return True
    return any(entry.plugin == plugin.name for entry in permissions.entries.essential)


def exclusion_reason(permissions: CompiledPermissions, state: State, tool: Tool) -> Reason | None:
    """Return which loadout excludes a tool: the session's active one, or the one that fits the budget (F5)."""
    loadouts = permissions.world.loadouts
    if state.loadout is not None and excluded_by_loadout(permissions, state, tool):
        found = loadouts.get(state.loadout.casefold())
        text = exclusion_text(state.loadout) if found is not None else _undefined_loadout_text(state.loadout)
        return Reason(code="narrowed_loadout", text=text, where=found.place if found is not None else None)
    if state.shrunk is not None and tool.plugin not in active_plugins(permissions, state.shrunk):
        text = f"Loadout '{state.shrunk}' steps in to fit the budget, and excludes it; it may be loaded."
        return Reason(code="narrowed_budget", text=text, where=permissions.agent.place)
    return None


def exclusion_text(loadout: str) -> str:
    """Return the sentence about what an active loadout excludes."""
    return f"Loadout '{loadout}', which is active in this session, excludes it."


def _undefined_loadout_text(loadout: str) -> str:
    return f"Loadout '{loadout}', which is active in this session, is not defined any more: it excludes everything."


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTools:
    """What a subject stands for to an agent: its entries, and its permitted tools."""

    entries: tuple[Entry, ...]
    tools: tuple[tuple[Tool, Entry], ...]


@once_per_permissions
def tools_of_subject(permissions: CompiledPermissions, subject: Ref) -> SubjectTools:
    """Return what a subject stands for, before any lease is asked."""
    entries = tuple(_entries(permissions, subject))
    tools = tuple((tool, entry) for entry in entries for tool in entry.tools if permissions.permits(tool))
    return SubjectTools(entries=entries, tools=tools)


def _entries(permissions: CompiledPermissions, subject: Ref) -> Iterator[Entry]:
    catalog = permissions.world.catalog
    match subject.kind:
        case "toolkit":
            if permissions.may_load_toolkit(subject.name):
                yield from permissions.entries.toolkits.get(subject.name, ())
        case "plugin":
            if subject.name in catalog.plugins:
                yield permissions.entries.of_plugin(subject.name)
        case "tool":
            tool = catalog.by_id(subject.name)
            if tool is not None:
                yield _entry_of_tool(permissions, tool)
        case "category":
            for plugin in plugins_of_category(permissions, subject.name):
                yield permissions.entries.of_plugin(plugin.name)


def _entry_of_tool(permissions: CompiledPermissions, tool: Tool) -> Entry:
    """Return the entry under which a tool runs, cut to the tool."""
    entry = permissions.entries.of_tool(tool)
    only = frozenset({tool.id})
    tools = (tool,) if tool.id in entry.ids else ()
    return replace(entry, whole=False, tools=tools, names=only & entry.names, ids=only & entry.ids)


def lease_entries(permissions: CompiledPermissions, lease: Lease) -> tuple[Entry, ...]:
    """Return the entries that a lease stands for, before any permission is asked."""
    return tools_of_subject(permissions, lease.subject).entries


def leased_tools(permissions: CompiledPermissions, lease: Lease) -> tuple[tuple[Tool, Entry], ...]:
    """Return the permitted tools that a lease loads, with the entries that they stand in."""
    tools = tools_of_subject(permissions, lease.subject).tools
    return tuple(pair for pair in tools if pair[0].id not in lease.excluded) if lease.excluded else tools


def unloaded_in_turn(permissions: CompiledPermissions, state: State, tool: Tool) -> bool:
    """Return whether a tool is of what was unloaded by name in this turn: no call loads it again (D2)."""
    return any(tool.id == one.id for ref in state.unloaded for one, _ in tools_of_subject(permissions, ref).tools)


def stands_for_nothing(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether no permitted tool is left of what a lease loads."""
    return not leased_tools(permissions, lease)


def remove_dead_leases(permissions: CompiledPermissions, state: State) -> State:
    """Return the state without the leases that no longer count (S3)."""
    kept = tuple(lease for lease in state.leases if still_stands(permissions, lease))
    return state if len(kept) == len(state.leases) else replace(state, leases=kept)


def still_stands(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether a stored lease still stands for something (S3).

    A plugin or server that is not known yet, or unavailable now, is not gone. A toolkit is out of
    scope as a whole, as it is loaded (S10).
    """
    subject = lease.subject
    if subject.kind == "toolkit" and permissions.out_of_scope(lease_entries(permissions, lease)):
        return False
    return not stands_for_nothing(permissions, lease) or _may_stand_later(permissions, lease)


def _may_stand_later(permissions: CompiledPermissions, lease: Lease) -> bool:
    """Return whether a lease may stand for something once plugins that are not known yet were asked."""
    catalog, subject = permissions.world.catalog, lease.subject
    if subject.kind == "tool":
        plugin = catalog.plugins.get(subject.name.partition("/")[0])
        return plugin is not None and not plugin.tools and _may_bring(permissions, plugin)
    toolkit = permissions.world.toolkits.get(subject.name) if subject.kind == "toolkit" else None
    if toolkit is not None and permissions.may_load_toolkit(toolkit.name) and not toolkit.complete(catalog):
        return True
    return any(
        not entry.tools and permissions.grants_unseen(catalog.plugins[entry.plugin])
        for entry in lease_entries(permissions, lease)
        if not catalog.plugins[entry.plugin].variant(entry.key).known
    )


def _may_bring(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    return permissions.grants_unseen(plugin) or permissions.entries.unresolved
