"""What would make a tool callable: for each thing in its way what an operator can do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.board.views.explain import unseen_plugin
from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.switches import Switch
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.toolkits import HOST_DUTIES
from pegboard.core.model.tools import Tool
from pegboard.core.surface.explanations import Explanation
from pegboard.core.surface.searchable import Group
from pegboard.operators.groups import written
from pegboard.operators.reasons import denial_of

FixKind = Literal[
    "switch",
    "grant",
    "edit",
    "parent",
    "environment",
    "restart",
    "repair",
    "unload",
    "loadout",
    "load",
    "turn",
    "look_up",
]
"""What is to be done: set a switch; grant it in the file, or by a switch; edit the file; permit it to the parent's
agent; set an environment variable; start a server again; put right what the reason names; unload what clashes; take
another loadout; load it; end the turn; look up what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What an operator can do about one thing that is in the way of a call.

    Attributes:
        kind: what is to be done.
        text: one sentence that says so.
        code: the code of the reason that it answers.
        switch: the name of the switch that decides, where it is one.
        value: what that is to be set to.
        subject: what is loaded, started again or unloaded.
        where: file and line of the rule, where there is one.
    """

    kind: FixKind
    text: str
    code: str
    switch: str = ""
    value: bool | None = None
    subject: str = ""
    where: str = ""


_EDITS: Final = {
    "denied_loadout": "Take it out of the loadout's `disabled`, or give the agent another loadout.",
    "denied_scope": "Give the agent `worker_scope: shared` and no `private:`, or remove this plugin.",
    "denied_filter": "Change include_tools or exclude_tools where the plugin is named.",
}
_LOADOUT: Final = "Another active loadout, or none, brings it back."


def fixes(services: Services, snapshot: Snapshot, found: Explanation) -> tuple[Fix, ...]:
    """Return what would make a tool callable, in the order in which it is to be done.

    Args:
        services: the services of the board.
        snapshot: the session, as it was explained.
        found: the explanation.

    Returns:
        One for each thing in the way; none where nothing is.
    """
    codes = {reason.code for reason in found.reasons}
    if "unknown" in codes:
        return (Fix(kind="look_up", text="Look up which tools there are, and start the servers.", code="unknown"),)
    if found.callable:
        return ()
    own = () if found.permitted else tuple(_permitting(snapshot.permissions, found.tool, found.reasons))
    return (
        *own,
        *sorted(_running(services, snapshot.permissions, found), key=lambda fix: fix.kind in ("load", "turn")),
    )


def fixes_of(permissions: CompiledPermissions, found: Tool | Group, masker: Masker) -> tuple[Fix, ...]:
    """Return what would permit a tool, toolkit or plugin to an agent; nothing where it is permitted.

    Args:
        permissions: what the agent may.
        found: what it is about.
        masker: masks what is secret.
    """
    if isinstance(found, Tool):
        decision = permissions.decide(found)
        name, permitted, reasons = found.wire, decision.permitted, decision.reasons
    else:
        denial = denial_of(permissions, found)
        name, permitted, reasons = (
            written(permissions.world, found),
            denial is None,
            (denial,) if denial is not None else (),
        )
    if permitted:
        return ()
    return tuple(masked(fix, masker) for fix in _permitting(permissions, name, reasons))


def load_fix(name: str) -> Fix:
    """Return how something is loaded that may be."""
    return Fix(kind="load", text=f"The model loads '{name}', or you do.", code="not_loaded", subject=name)


def masked(fix: Fix, masker: Masker) -> Fix:
    """Return a fix without secrets."""
    return replace(fix, text=masker.text(fix.text))


def _permitting(permissions: CompiledPermissions, name: str, reasons: Sequence[Reason]) -> Iterator[Fix]:
    """Yield what would permit it; where an entry names its plugin and excludes it, the entry is what grants it."""
    filtered = any(reason.code == "denied_filter" for reason in reasons)
    off = iter(_switches_off(permissions, name))
    for reason in reasons:
        where = str(reason.where) if reason.where else ""
        match reason.code:
            case "denied_switch" | "denied_default":
                switch = next(off, None) if reason.code == "denied_switch" else None
                subject = switch.name if switch is not None else name
                text = f"Switch '{subject}' on for agent '{permissions.agent.name}'."
                yield Fix(kind="switch", text=text, code=reason.code, switch=subject, value=True, where=where)
            case "not_granted" if not filtered:
                text = "Grant it: under the agent's tools, allowed_toolkits, loadout or discoverable, or by a switch."
                yield Fix(kind="grant", text=text, code=reason.code, switch=name, value=True, where=where)
            case "denied_parent":
                yield Fix(kind="parent", text="Permit it to the parent's agent first.", code=reason.code, where=where)
            case "narrowed_loadout":
                yield Fix(kind="loadout", text=_LOADOUT, code=reason.code, where=where)
            case code if code in _EDITS:
                yield Fix(kind="edit", text=_EDITS[code], code=code, where=where)
            case _:
                pass


def _switches_off(permissions: CompiledPermissions, name: str) -> tuple[Switch, ...]:
    """Return the switches that deny a tool, as the decision names them."""
    tool = permissions.world.catalog.find_tool(name)
    if tool is None:
        plugin = unseen_plugin(permissions.world.catalog, name)
        if plugin is None:
            return ()
        tool = Tool(plugin=plugin.name, name="")
    off = tuple(switch for switch in permissions.switches.bundles(tool) if not switch.on)
    own = permissions.switches.own(tool)
    return off or ((own,) if own is not None else ())


def _running(services: Services, permissions: CompiledPermissions, found: Explanation) -> Iterator[Fix]:
    """Yield what would load a permitted tool and let it run."""
    for reason in found.reasons:
        match reason.code:
            case "unavailable":
                yield _repair(services, permissions, found.tool, reason)
            case "conflict" if not found.loaded:
                yield Fix(kind="unload", text="Unload what clashes with it first.", code=reason.code)
            case "narrowed_loadout" if found.permitted:
                where = str(reason.where) if reason.where else ""
                yield Fix(kind="loadout", text=_LOADOUT, code=reason.code, where=where)
            case "not_loaded" | "unloaded_in_turn" | "narrowed_budget" | "not_seen" if found.permitted:
                subject = _to_load(permissions, found.tool) if reason.code == "not_seen" else found.tool
                text = f"The model loads '{subject}', or you do."
                yield Fix(kind="load", text=text, code=reason.code, subject=subject)
            case "next_request":
                yield Fix(kind="turn", text="It can be called once the turn has ended.", code=reason.code)
            case _:
                pass


def _to_load(permissions: CompiledPermissions, name: str) -> str:
    """Return the plugin to load, so that its tools become known."""
    plugin = unseen_plugin(permissions.world.catalog, name)
    return plugin.name if plugin is not None else name


def _repair(services: Services, permissions: CompiledPermissions, name: str, reason: Reason) -> Fix:
    """Return what lets something run that cannot."""
    catalog = permissions.world.catalog
    tool = catalog.find_tool(name)
    plugin = tool.plugin if tool is not None else _to_load(permissions, name)
    spec = services.loader.specs.get(plugin)
    where = str(reason.where) if reason.where else ""
    if name in HOST_DUTIES or spec is None:
        return Fix(kind="repair", text="Put right what the reason names.", code=reason.code, where=where)
    if (isinstance(spec, ServerSpec) and spec.unavailable) or (tool is not None and tool.needs and tool.unavailable):
        text = "Set what the reason names in the environment, and start again."
        return Fix(kind="environment", text=text, code=reason.code, subject=plugin, where=where)
    if isinstance(spec, ServerSpec) and (tool is None or not permissions.faults.get(tool.id)):
        text = f"Put right what the reason names, then start server '{plugin}' again."
        return Fix(kind="restart", text=text, code=reason.code, subject=plugin, where=where)
    return Fix(kind="repair", text="Put right what the reason names.", code=reason.code, subject=plugin, where=where)
