"""What a session's active loadout, and the one that fits the budget, make of an agent's tools (L7, S9).

The active loadout never grants. Of what the agent may use, what it makes active is loaded, what it makes discoverable
may be loaded, everything else is excluded.
"""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadout_registry import Names, active_of, discoverable_of
from pegboard.core.model.loadouts import merge
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.sessions import State

Keep = Callable[[Tool], bool]
"""A function that tells whether a loadout keeps a tool."""


@once_per_permissions
def active_plugins(permissions: CompiledPermissions, loadout: str) -> frozenset[str]:
    """Return the plugins of the catalog that a loadout makes active."""
    pairs = ((plugin.name, plugin.category) for plugin in permissions.world.catalog.plugins.values())
    return active_of(merge(loadout, permissions.world.loadouts), Names(pairs))


@once_per_permissions
def plugins_in_reach(permissions: CompiledPermissions, loadout: str) -> frozenset[str]:
    """Return the plugins of the catalog that a loadout makes active or discoverable."""
    pairs = ((plugin.name, plugin.category) for plugin in permissions.world.catalog.plugins.values())
    return active_plugins(permissions, loadout) | discoverable_of(
        merge(loadout, permissions.world.loadouts), Names(pairs)
    )


def narrowing(permissions: CompiledPermissions, state: State) -> Keep | None:
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
        text = exclusion_text(state.loadout) if found is not None else _gone(state.loadout)
        return Reason(code="narrowed_loadout", text=text, where=found.place if found is not None else None)
    if state.shrunk is not None and tool.plugin not in active_plugins(permissions, state.shrunk):
        text = f"Loadout '{state.shrunk}' steps in to fit the budget, and excludes it; it may be loaded."
        return Reason(code="narrowed_budget", text=text, where=permissions.agent.place)
    return None


def exclusion_text(loadout: str) -> str:
    """Return the sentence about what an active loadout excludes."""
    return f"Loadout '{loadout}', which is active in this session, excludes it."


def _gone(loadout: str) -> str:
    return f"Loadout '{loadout}', which is active in this session, is not defined any more: it excludes everything."
