"""What stands between an agent and something that it cannot use."""

from __future__ import annotations

from pegboard.core.access.decisions import Reason, switch_reason
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.surface.searchable import Group


def denial_of(permissions: CompiledPermissions, found: Tool | Group) -> Reason | None:
    """Return the first reason why the agent may not use something; None where it may."""
    if isinstance(found, Tool):
        decision = permissions.decide(found)
        return None if decision.permitted else decision.reasons[0]
    if found.kind == "toolkit":
        return _denial_of_toolkit(permissions, found.name)
    return _denial_of_plugin(permissions, permissions.world.catalog.plugins[found.name])


def _denial_of_toolkit(permissions: CompiledPermissions, name: str) -> Reason | None:
    if permissions.may_load_toolkit(name):
        return None
    switch = permissions.switches.toolkits.get(name)
    if switch is not None and not switch.on:
        return switch_reason(switch, permissions.agent)
    text = f"Agent '{permissions.agent.name}' does not list toolkit '{name}' in `allowed_toolkits`."
    return Reason(code="not_granted", text=text, where=permissions.agent.place)


def _denial_of_plugin(permissions: CompiledPermissions, plugin: Plugin) -> Reason | None:
    if permissions.may_have_tools_of(plugin):
        return None
    return (permissions.decide(plugin.tools[0]) if plugin.tools else permissions.decide_unseen(plugin)).reasons[0]
