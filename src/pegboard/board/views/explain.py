"""Answer an operator: may it, is it loaded, can it run, and why (F5)."""

from __future__ import annotations

import json

from pegboard.board.bring_in import bring_in_every
from pegboard.board.meta_tools import duty_fault
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read
from pegboard.core.access.decisions import Reason
from pegboard.core.access.host_duties import host_duties
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.toolkits import HOST_DUTIES
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.conflicts import conflict_of
from pegboard.core.surface.explanations import Explanation, explain


async def explain_name(services: Services, snapshot: Snapshot, name: str) -> Explanation:
    """Return the four predicates for a name that an operator wrote, and the chain of reasons (F5).

    Where the name is not known, whatever can be asked is asked first.
    """
    if snapshot.access.world.catalog.find_tool(name) is None:
        await bring_in_every(services)
        snapshot = await read(services, snapshot.info)
    return _explained(services, snapshot, name)


def _explained(services: Services, snapshot: Snapshot, name: str) -> Explanation:
    access = snapshot.access
    catalog = access.world.catalog
    if name in HOST_DUTIES:
        return _duty(services, snapshot, name)
    if snapshot.info.stable and name in snapshot.meta_tools:
        reason = Reason(code="loaded_meta", text="It is a meta-tool: there is something to load.")
        return _all_true(name, reason)
    tool = catalog.find_tool(name)
    if tool is None:
        near = {f.id: f for n in catalog.find_folded(name) if (f := catalog.find_tool(n))}
        tool = next(iter(near.values())) if len(near) == 1 else None
    if tool is None:
        plugin = catalog.plugins.get(name.removeprefix("plugin:"))
        return _not_a_tool(access, name, plugin)
    return explain(access, snapshot.state, tool, known_conflict=_conflict(services, snapshot, tool))


def _duty(services: Services, snapshot: Snapshot, name: str) -> Explanation:
    """Return what stands between an agent and one of the host's own tools, if anything."""
    access, fault = snapshot.access, duty_fault(services, name)
    has = name in host_duties(access)
    agent = f"Agent '{access.agent.name}'"
    if has:
        reasons = [Reason(code="granted_static", text=f"{agent} lists it in `tools`.", where=access.agent.place)]
    elif name in access.agent.duties:
        reasons = [Reason(code="denied_switch", text="It is switched off, or the parent session does not have it.")]
    else:
        text = f"{agent} does not list it in `tools`."
        reasons = [Reason(code="not_granted", text=text, where=access.agent.place)]
    reasons += [Reason(code="unavailable", text=fault)] if has and fault else []
    runs = has and not fault
    return Explanation(tool=name, permitted=has, loaded=has, visible=runs, callable=runs, reasons=tuple(reasons))


def _all_true(name: str, reason: Reason) -> Explanation:
    return Explanation(tool=name, permitted=True, loaded=True, visible=True, callable=True, reasons=(reason,))


def _not_a_tool(access: CompiledPermissions, name: str, plugin: Plugin | None) -> Explanation:
    reasons: list[Reason] = []
    permitted = False
    if plugin is not None and not plugin.tools:
        decision = access.decide_unseen(plugin)
        permitted = decision.permitted
        reasons += decision.reasons
        fault = next((v.unavailable for v in plugin.variants.values() if v.unavailable), "")
        reasons.append(
            Reason(code="unavailable", text=fault, where=plugin.place)
            if fault
            else Reason(code="not_seen", text="Its tools are not known yet: load it, or `tools`.")
        )
    elif plugin is not None:
        listed = ", ".join(tool.wire for tool in plugin.tools[:20])
        text = f"'{name}' is a plugin. Explain one of its tools: {listed}."
        reasons.append(Reason(code="is_plugin", text=text, where=plugin.place))
    elif name in access.world.toolkits:
        toolkit = access.world.toolkits[name]
        listed = ", ".join(t.wire for e in toolkit.entries(access.world.catalog) for t in e.tools)
        text = f"'{name}' is a toolkit. Explain one of its tools: {listed or 'none known yet'}."
        reasons.append(Reason(code="is_toolkit", text=text, where=toolkit.place))
    else:
        catalog = access.world.catalog
        names = (*catalog.plugins, *(tool.wire for tool in catalog))
        text = f"There is no tool '{name[:100]}' in the catalog. {did_you_mean(name, names)}"
        reasons.append(Reason(code="unknown", text=text.strip()))
    return Explanation(
        tool=name,
        permitted=permitted,
        loaded=False,
        visible=False,
        callable=False,
        reasons=tuple(reasons),
    )


def _conflict(services: Services, snapshot: Snapshot, tool: Tool) -> str:
    """Return which toolkit wants the tool with other settings than it is loaded with (T5)."""
    access = snapshot.access
    loaded = active_tools(access, snapshot.state)
    for name, entries in access.entries.toolkits.items():
        for entry in entries:
            if tool.id not in entry.ids:
                continue
            found = conflict_of(access, loaded, (entry,), services.masker)
            if found is not None:
                return (
                    f"Toolkit '{name}' {found.message} Loaded with {json.dumps(found.existing)}, "
                    f"the toolkit has {json.dumps(found.candidate)}."
                )
    return ""
