"""Reasons as operators read them: plain values, without secrets."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.access.decisions import Reason, switch_reason
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.surface.searchable import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReason:
    """One thing that speaks for or against a tool: a stable code, a sentence, and file and line where it has some."""

    code: str
    text: str
    where: str = ""


def plain_reason(reason: Reason, masker: Masker) -> PlainReason:
    """Return a reason as an operator reads it."""
    return PlainReason(code=reason.code, text=masker.text(reason.text), where=str(reason.where) if reason.where else "")


def denial_of(access: CompiledPermissions, found: Tool | Group) -> Reason | None:
    """Return the first reason why the agent may not use something; None where it may."""
    if isinstance(found, Tool):
        decision = access.decide(found)
        return None if decision.permitted else decision.reasons[0]
    if found.kind == "toolkit":
        return _denial_of_toolkit(access, found.name)
    return _denial_of_plugin(access, access.world.catalog.plugins[found.name])


def _denial_of_toolkit(access: CompiledPermissions, name: str) -> Reason | None:
    if access.may_load_toolkit(name):
        return None
    switch = access.switches.toolkits.get(name)
    if switch is not None and not switch.on:
        return switch_reason(switch, access.agent)
    text = f"Agent '{access.agent.name}' does not list toolkit '{name}' in `allowed_toolkits`."
    return Reason(code="not_granted", text=text, where=access.agent.place)


def _denial_of_plugin(access: CompiledPermissions, plugin: Plugin) -> Reason | None:
    if access.may_have_tools_of(plugin):
        return None
    return (access.decide(plugin.tools[0]) if plugin.tools else access.decide_unseen(plugin)).reasons[0]
