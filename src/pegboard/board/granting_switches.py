"""Whether a switch set at run time grants what the file does not, which takes the right to configure (P2, A5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pegboard.board.services import Services
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.own_settings import NO_SETTINGS, OwnSettings, with_switch, without_off
from pegboard.core.access.switches import meaning
from pegboard.core.model.naming import one_line
from pegboard.core.model.selectors import find
from pegboard.core.model.tools import EMPTY, Plugin
from pegboard.errors import UsageError
from pegboard.ports import SwitchChange

GRANTS: Final = "It grants what the file does not grant."
"""What the audit trail says of such a switch."""


async def grants_more(
    services: Services, agent: str, name: str, value: bool | None, *, principal: str | None = None
) -> bool:
    """Return whether a switch would let an agent use what it may not now, and may not by the file alone.

    ``value`` None takes the stored switch back; ``principal`` None is everybody.
    """
    if value is False:
        return False
    await services.compiler.refresh()
    world, compiler = services.world, services.compiler
    if principal is not None:
        switches = with_switch(compiler.personal(agent, principal), name, value, world)
        own = without_off(compiler.own_settings(agent, principal), name, world)
        return _more(services, agent, compiler.stored(agent), {principal: (switches, own)})
    return _more(services, agent, with_switch(compiler.stored(agent), name, value, world), EMPTY)


async def first_granted_more(services: Services, changes: Sequence[SwitchChange]) -> str | None:
    """Return the first agent that switches set together grant what its file does not, or None."""
    await services.compiler.refresh()
    switches = [one for one in changes if one.kind == "switch"]
    for agent in dict.fromkeys(one.agent for one in switches):
        then = dict(services.compiler.stored(agent))
        for one in switches:
            if one.agent == agent:
                then.pop(one.name, None)
                then.update({} if one.value is None else {one.name: one.value})
        if _more(services, agent, then, EMPTY):
            return agent
    return None


def may_not_grant(agent: str, name: str, whose: str) -> UsageError:
    """Return the refusal of a switch that grants more than its operator may."""
    return UsageError(
        f"'{one_line(name, limit=100)}' is not granted to {agent} by the file, so to switch it on takes the right"
        f" 'configure', which {whose} does not have.",
        code="right_required",
        hint="Ask who may configure, or have it granted in the file.",
    )


_Personal = tuple[Mapping[str, bool], OwnSettings]
"""The switches for one principal, and what the agent has set for itself."""


def _more(services: Services, agent: str, then: Mapping[str, bool], personal: Mapping[str, _Personal]) -> bool:
    """Return whether the agent may use more, for everybody or a principal with switches of its own.

    Pauses do not count: they end some time, and grant nothing.
    """
    compiler = services.compiler
    now, every = compiler.stored(agent), compiler.principals(agent)
    file = compiler.supposing_switches(agent, EMPTY).of_agent(agent)
    before, after = (compiler.supposing_switches(agent, one) for one in (now, then))
    for principal in {None, *every, *personal}:
        old: _Personal = (EMPTY, NO_SETTINGS)
        if principal is not None:
            old = compiler.personal(agent, principal), compiler.own_settings(agent, principal)
        new = old if principal is None else personal.get(principal, old)
        if _gains(after.of_agent_with(agent, *new), before.of_agent_with(agent, *old), file):
            return True
        if _names_unknown({**then, **new[0]}, {**now, **old[0]}, file):
            return True
    return False


def _names_unknown(then: Mapping[str, bool], now: Mapping[str, bool], file: CompiledPermissions) -> bool:
    """Return whether what is switched on newly names a tool, by itself or in a toolkit, of a plugin not seen yet."""
    world = file.world
    for name, value in then.items():
        if not value or now.get(name) or file.agent.switches.get(name):
            continue
        refs = meaning(world, name, on=True)
        kits = [ref.name for ref in refs if ref.kind == "toolkit" and ref.name not in file.entries.loadable_toolkits]
        names = [member.name for kit in kits for member in world.toolkits[kit].members] if refs else [name]
        if any(find(one, world.catalog) is None and any(world.catalog.unseen_owners(one)) for one in names):
            return True
    return False


def _gains(after: CompiledPermissions, *others: CompiledPermissions) -> bool:
    """Return whether something is permitted that is permitted in none of the others; what may still come too."""
    for plugin in after.world.catalog.plugins.values():
        had = {tool.id for one in others for tool in one.plugin_permissions.tools_of(plugin)}
        if any(tool.id not in had for tool in after.plugin_permissions.tools_of(plugin)):
            return True
        if _permits_later(after, plugin) and not any(_permits_later(one, plugin) for one in others):
            return True
    return False


def _permits_later(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    """Return whether tools are permitted that a plugin has later: all of it is granted, not only tools by name."""
    switch, named = permissions.switches.plugins.get(plugin.name), permissions.entries.by_plugin.get(plugin.name, ())
    by_whole = any(entry.whole for entry in named) or (switch is not None and switch.on)
    by_whole = by_whole or next(permissions.decisions.plugin_grants(plugin), None) is not None
    return by_whole and permissions.grants_unseen(plugin)
