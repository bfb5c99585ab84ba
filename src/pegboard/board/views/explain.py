"""Answer an operator: may it, is it loaded, can it run, and why (F5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pegboard.board.discover import discover_every
from pegboard.board.meta_tools import host_tool_fault
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot, read_snapshot
from pegboard.core.access.approvals.approval import counting_approval
from pegboard.core.access.approvals.demands import ToolRules, rules_of
from pegboard.core.access.approvals.digests import binding_of
from pegboard.core.access.decisions import Reason
from pegboard.core.access.instances import login_owner
from pegboard.core.access.logins import login_command
from pegboard.core.access.names import find_called, tool_of_agent
from pegboard.core.access.permissions import CompiledPermissions, host_tools
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.toolkits import HOST_TOOLS
from pegboard.core.model.tools import HELD, Plugin, Tool, why_excluded
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.loading import conflict_of, name_conflict
from pegboard.core.surface.explanations import Explanation, explain
from pegboard.errors import PegboardError
from pegboard.ports.logins import HasLogins

UNSEEN_NAMED: Final = 5
"""So many plugins that were not asked yet are named where a tool is not known."""


async def explain_name(services: Services, snapshot: Snapshot, name: str) -> tuple[Snapshot, Explanation]:
    """Return the four predicates for a name that an operator wrote, the chain of reasons, and the session then (F5).

    Where the name is not known, whatever can be asked is asked first.
    """
    if not snapshot.permissions.world.catalog.meant_by(name):
        await discover_every(services)
        snapshot = await read_snapshot(services, snapshot.info)
    found = _explain_name(services, snapshot, name)
    tool = _tool_meant(snapshot, name)
    found = await _with_login(services, snapshot, found, tool)
    if tool is None or tool.id != found.id or not found.permitted:
        return snapshot, found
    reason = await approval_reason(services, snapshot, tool)
    if reason is None:
        return snapshot, found
    runs = found.callable and reason.code != "needs_approval"
    return snapshot, replace(found, callable=runs, reasons=(*found.reasons, reason))


async def _with_login(services: Services, snapshot: Snapshot, found: Explanation, tool: Tool | None) -> Explanation:
    """Return an explanation with the login that is wanting, in the place of what is not known without it (G11)."""
    catalog = snapshot.permissions.world.catalog
    owner = tool.plugin if tool is not None else next((one.name for one in catalog.unseen_owners(found.tool)), "")
    reason = await login_reason(services, snapshot, owner) if found.permitted else None
    if reason is None:
        return found
    others = [one for one in found.reasons if one.code not in ("unavailable", "not_seen")]
    return replace(found, callable=False, reasons=(*others, reason))


def _explain_name(services: Services, snapshot: Snapshot, name: str) -> Explanation:
    permissions = snapshot.permissions
    if name in HOST_TOOLS:
        return _explain_host_tool(services, snapshot, name)
    if snapshot.info.stable and name in snapshot.meta_tools:
        reason = Reason(code="loaded_meta", text="It is a meta-tool: some tools can be loaded.")
        return _all_true_explanation(name, reason)
    tool = _tool_meant(snapshot, name)
    if tool is None:
        return _unknown_name_explanation(permissions, name)
    found = explain(permissions, snapshot.state, tool, known_conflict=_conflict(services, snapshot, tool))
    return replace(found, reasons=(*found.reasons, *_namesakes(snapshot, name)))


def _namesakes(snapshot: Snapshot, name: str) -> Iterator[Reason]:
    """Yield which tools have one name, and which of them a call of the agent by that name means (G10)."""
    permissions, bare = snapshot.permissions, split_kind(name)[1]
    tools = permissions.world.catalog.meant_by(bare)
    if len(tools) > 1:
        called = find_called(permissions, bare, active_tools(permissions, snapshot.state))
        gets = f"means '{called.id}'" if called is not None else "finds none of them"
        listed = ", ".join(f"'{tool.id}'" for tool in tools)
        text = f"{len(tools)} tools are called '{bare}': {listed}. A call by that name {gets}."
        yield Reason(code="same_name", text=text)


def _tool_meant(snapshot: Snapshot, name: str) -> Tool | None:
    return tool_of_agent(snapshot.permissions, name, active_tools(snapshot.permissions, snapshot.state))


def _explain_host_tool(services: Services, snapshot: Snapshot, name: str) -> Explanation:
    """Return what stands between an agent and one of the host's own tools, if anything."""
    permissions, fault = snapshot.permissions, host_tool_fault(services, name)
    has = name in host_tools(permissions)
    agent = f"Agent '{permissions.agent.name}'"
    if has:
        reasons = [Reason(code="granted_static", text=f"{agent} lists it in `tools`.", where=permissions.agent.place)]
    elif name in permissions.agent.host_tools:
        reasons = [Reason(code="denied_switch", text="It is switched off, or the parent session does not have it.")]
    else:
        text = f"{agent} does not list it in `tools`."
        reasons = [Reason(code="not_granted", text=text, where=permissions.agent.place)]
    reasons += [Reason(code="unavailable", text=fault)] if has and fault else []
    runs = has and not fault
    return Explanation(tool=name, permitted=has, loaded=has, visible=runs, callable=runs, reasons=tuple(reasons))


def _all_true_explanation(name: str, reason: Reason) -> Explanation:
    return Explanation(tool=name, permitted=True, loaded=True, visible=True, callable=True, reasons=(reason,))


def _unknown_name_explanation(permissions: CompiledPermissions, name: str) -> Explanation:
    """Return what is to be said of a name that no known tool has."""
    catalog, toolkit = permissions.world.catalog, permissions.world.toolkits.get(name)
    plugin = catalog.plugins.get(name.removeprefix("plugin:"))
    if plugin is not None and plugin.tools:
        listed = ", ".join(tool.wire for tool in plugin.tools[:20])
        text = f"'{name}' is a plugin. Explain one of its tools: {listed}."
        return _none_true(name, Reason(code="is_plugin", text=text, where=plugin.place))
    if plugin is None and toolkit is not None:
        listed = ", ".join(t.wire for e in toolkit.entries(catalog) for t in e.tools)
        text = f"'{name}' is a toolkit. Explain one of its tools: {listed or 'none known yet'}."
        return _none_true(name, Reason(code="is_toolkit", text=text, where=toolkit.place))
    holder = catalog.holder_of(name)
    if holder is not None:
        return _none_true(name, Reason(code="unavailable", text=HELD, where=holder.place))
    excluded = catalog.excluded(name)
    if excluded is not None:
        return _excluded_explanation(permissions, name, *excluded)
    unseen = next(catalog.unseen_owners(name), None)
    if unseen is not None:
        decision = permissions.decide_unseen(unseen)
        return replace(_none_true(name, *decision.reasons, _unseen_reason(unseen)), permitted=decision.permitted)
    names = (*catalog.plugins, *(tool.wire for tool in catalog))
    text = f"There is no tool '{name[:100]}' in the catalog. {did_you_mean(name, names)}"
    return _none_true(name, Reason(code="unknown", text=text.strip()), *_plugins_that_may_have_it(permissions))


def _excluded_explanation(permissions: CompiledPermissions, name: str, plugin: Plugin, reason: str) -> Explanation:
    """Return what is to be said of a tool that its plugin has in no form that can be used."""
    permitted = permissions.may_have_tools_of(plugin)
    denied = () if permitted else permissions.decide_unseen(plugin).reasons
    why = Reason(code="unavailable", text=why_excluded(plugin, reason), where=plugin.place)
    return replace(_none_true(name, *denied, why), permitted=permitted)


def _none_true(name: str, *reasons: Reason) -> Explanation:
    return Explanation(tool=name, permitted=False, loaded=False, visible=False, callable=False, reasons=reasons)


def _unseen_reason(plugin: Plugin) -> Reason:
    fault = plugin.unavailable
    if fault:
        return Reason(code="unavailable", text=fault, where=plugin.place)
    return Reason(code="not_seen", text="Its tools are not known yet: load it, or `tools`.")


def _plugins_that_may_have_it(permissions: CompiledPermissions) -> Iterator[Reason]:
    """Yield the plugins that may have a tool of any name, because theirs are not known yet, and who denies them."""
    unseen = [plugin for plugin in permissions.world.catalog.plugins.values() if not plugin.tools]
    for plugin in unseen[:UNSEEN_NAMED]:
        decision = permissions.decide_unseen(plugin)
        first = decision.reasons[0]
        text = f"The tools of plugin '{plugin.name}' are not known yet."
        if decision.permitted:
            yield Reason(code="not_seen", text=text, where=plugin.place)
        else:
            yield Reason(code="not_seen", text=f"{text} {first.text}", where=first.where)
    if len(unseen) > UNSEEN_NAMED:
        more = len(unseen) - UNSEEN_NAMED
        text = f"Nor are those of {more} more plugin{'s' if more > 1 else ''}."
        yield Reason(code="not_seen", text=text)


def _conflict(services: Services, snapshot: Snapshot, tool: Tool) -> str:
    """Return which toolkit wants the tool with other settings (T5), or that a loaded tool has its name (G10)."""
    permissions = snapshot.permissions
    loaded = active_tools(permissions, snapshot.state)
    for name, entries in permissions.entries.toolkits.items():
        for entry in entries:
            if tool.id not in entry.ids:
                continue
            found = conflict_of(permissions, loaded, (entry,), services.masker)
            if found is not None:
                return (
                    f"Toolkit '{name}' {found.message} Loaded with {json.dumps(found.existing)}, "
                    f"the toolkit has {json.dumps(found.candidate)}."
                )
    taken = name_conflict(loaded, (tool,)) if tool.id not in loaded and permissions.permits(tool) else None
    return f"It {taken.message}" if taken is not None else ""


async def approval_reason(services: Services, snapshot: Snapshot, tool: Tool) -> Reason | None:
    """Return what calls of a tool need of a person in a session, None where they need nothing.

    Its code is ``needs_approval`` where every call is asked about, ``may_need_approval`` where that hangs on the
    arguments, and ``standing_approval`` where an operator has allowed them all.

    Raises ``StoreError`` where the approvals cannot be read.
    """
    plugin = snapshot.permissions.world.catalog.plugins[tool.plugin]
    spec = services.loader.specs.get(tool.plugin)
    if spec is None:
        return None
    rules = rules_of(plugin, spec, tool, services.pins.claims_of(plugin.name))
    if rules is None:
        return None
    places = (spec.approve_places.get(name) for name in rules.names)
    where = next((place for place in places if place is not None), plugin.place)
    standing = await _standing_approval(services, snapshot, tool, rules)
    if standing is not None:
        return Reason(code="standing_approval", text=standing, where=where)
    if rules.demand is not None:
        text = f"Every call of it needs the approval of a person: {rules.demand.reason}."
        return Reason(code="needs_approval", text=text, where=where)
    what = ", ".join(f"'{argument}'" for argument in rules.patterns)
    depends = f"its {'argument' if len(rules.patterns) == 1 else 'arguments'} {what}" if what else "its arguments"
    text = f"Whether a call needs approval depends on {depends}."
    return Reason(code="may_need_approval", text=text, where=where)


async def _standing_approval(services: Services, snapshot: Snapshot, tool: Tool, rules: ToolRules) -> str | None:
    """Return who has allowed all calls of a tool, and for how long, where that counts now."""
    store, spec = services.store, services.loader.specs[tool.plugin]
    variant = snapshot.permissions.entries.of_tool(tool).key
    try:
        fingerprint = services.loader.source_of(spec).fingerprint(spec)
    except PegboardError:
        return None
    binding = binding_of(
        await store.digest_key(),
        snapshot.info.key,
        tool,
        "",
        rules.in_force,
        variant,
        fingerprint,
        later=services.pins.later_digest(tool),
    )
    found = counting_approval(binding, await store.approvals_for(binding), store.clock())
    if found is None or found.status != "allowed" or found.lasts == "once":
        return None
    lasts = "in this session" if found.lasts == "session" else "of this agent for this principal"
    return f"Every call of it {lasts} runs without a question: '{found.by}' allowed it."


def command_to_log_in(snapshot: Snapshot, plugin: str) -> str:
    """Return what is typed to log in to a server for a session."""
    return login_command(plugin, login_owner(snapshot.permissions, snapshot.info.pool_user))


async def login_reason(services: Services, snapshot: Snapshot, plugin: str) -> Reason | None:
    """Return that calls of a server wait for a login in a session, None where they do not.

    Raises ``StoreError`` where the logins cannot be read.
    """
    spec = services.loader.specs.get(plugin)
    if spec is None:
        return None
    try:
        source = services.loader.source_of(spec)
    except PegboardError:
        return None
    owner = login_owner(snapshot.permissions, snapshot.info.pool_user)
    if not isinstance(source, HasLogins) or await source.logins.needed(spec, owner) is None:
        return None
    text = f"'{plugin}' wants a login, and {owner.principal} has none: `{command_to_log_in(snapshot, plugin)}`."
    return Reason(code="needs_login", text=text, where=spec.place)
