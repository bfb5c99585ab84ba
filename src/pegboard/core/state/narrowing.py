"""What a session's active loadout leaves of an agent's tools (L7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pegboard.core.access.permissions import CompiledPermissions, Reason
from pegboard.core.model.loadout_registry import Names, active_of
from pegboard.core.model.loadouts import merge
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.sessions import State

Keep = Callable[[Tool], bool]


def active_plugins(access: CompiledPermissions, loadout: str) -> frozenset[str]:
    """Return the plugins of the catalog that a loadout makes active; kept with the access."""
    kept = _kept(access, "_active_plugins")
    fold = loadout.casefold()
    known: frozenset[str] | None = kept.get(fold)
    if known is None:
        pairs = ((plugin.name, plugin.category) for plugin in access.world.catalog.plugins.values())
        known = kept[fold] = active_of(merge(loadout, access.world.loadouts), Names(pairs))
    return known


def narrowing(access: CompiledPermissions, state: State) -> Keep | None:
    """Return what a session's active loadout keeps besides essentials; None narrows nothing (L7)."""
    if state.loadout is None:
        return None
    active = active_plugins(access, state.loadout)
    return lambda tool: tool.plugin in active


def start_narrowing(access: CompiledPermissions, state: State) -> Keep | None:
    """Return what is kept of what is out from the start: the active loadout's, and the budget's (L7, S9)."""
    if state.shrunk is None:
        return narrowing(access, state)
    active = active_plugins(access, state.shrunk)
    if state.loadout is not None:
        active &= active_plugins(access, state.loadout)
    return lambda tool: tool.plugin in active


def reachable(access: CompiledPermissions, state: State) -> tuple[Tool, ...]:
    """Return what is permitted and not left out by the active loadout; the same object every time (P3)."""
    if state.loadout is None:
        return access.permitted
    kept = _kept(access, "_reachable")
    fold = state.loadout.casefold()
    known: tuple[Tool, ...] | None = kept.get(fold)
    if known is None:
        known = kept[fold] = tuple(tool for tool in access.permitted if not excluded_by_loadout(access, state, tool))
    return known


def excluded_by_loadout(access: CompiledPermissions, state: State, tool: Tool) -> bool:
    """Return whether the active loadout leaves a tool out that is not essential (L7)."""
    keep = narrowing(access, state)
    return keep is not None and not keep(tool) and not any(tool.id in entry.ids for entry in access.essential)


def may_bring(access: CompiledPermissions, state: State, plugin: Plugin) -> bool:
    """Return whether a plugin can have something that the active loadout does not leave out."""
    if state.loadout is None or plugin.name in active_plugins(access, state.loadout):
        return True
    return any(entry.plugin == plugin.name for entry in access.essential)


def exclusion_reason(access: CompiledPermissions, state: State, tool: Tool) -> Reason | None:
    """Return which loadout leaves a tool out: the session's active one, or the one that fits the budget (F5)."""
    loadouts = access.world.loadouts
    if state.loadout is not None and excluded_by_loadout(access, state, tool):
        found = loadouts.get(state.loadout.casefold())
        text = exclusion_text(state.loadout) if found is not None else _gone(state.loadout)
        return Reason(code="narrowed_loadout", text=text, where=found.place if found is not None else None)
    if state.shrunk is not None and tool.plugin not in active_plugins(access, state.shrunk):
        text = f"Loadout '{state.shrunk}' steps in to fit the budget, and leaves it out; it may be loaded."
        return Reason(code="narrowed_budget", text=text, where=access.agent.place)
    return None


def exclusion_text(loadout: str) -> str:
    """Return the sentence about what an active loadout leaves out."""
    return f"Loadout '{loadout}', which is active in this session, leaves it out."


def _gone(loadout: str) -> str:
    return f"Loadout '{loadout}', which is active in this session, is not defined any more: it leaves everything out."


def _kept(access: CompiledPermissions, name: str) -> dict[str, Any]:
    return access.__dict__.setdefault(name, {})
