"""Agents that could change what they may, around the guard on named paths (P10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pegboard.config.check.stand_ins import stand_in
from pegboard.config.compile import UncheckedConfig
from pegboard.config.problem_codes import warning
from pegboard.core.access.decisions import Decision
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import agents_named
from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import UNCONFINED
from pegboard.core.model.tools import Plugin
from pegboard.problems import Place, Problem


def check_confined(config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield the agents that may use a plugin that writes or runs in ways that no guard on paths sees."""
    registered = [spec for name, spec in specs.items() if name in UNCONFINED and isinstance(spec, RegisteredSpec)]
    found = [spec for spec in registered if spec.confine is None or spec.confine.if_possible]
    if not found:
        return
    plugins = [stand_in(spec, UNCONFINED[spec.name][1]) for spec in found]
    world = config.world(plugins)
    permissions = [CompiledPermissions(world, agent) for agent in config.agents.values()]
    for plugin in plugins:
        reached = dict(_reached(plugin, permissions))
        if reached:
            how, tools = UNCONFINED[plugin.name]
            agents, they = agents_named(reached)
            message = f"'{plugin.name}' {how}: {agents} could change with it what {they} may."
            off = f"`permissions: {{{plugin.name}: false}}`"
            on = f"`plugins: {{{plugin.name}: {{confine: true}}}}`"
            hint = f"Confine it ({on}), switch it off ({off}), or exclude these tools: {', '.join(tools)}."
            yield warning("unconfined", message, next(iter(reached.values())), hint)


def _reached(plugin: Plugin, permissions: Iterable[CompiledPermissions]) -> Iterator[tuple[str, Place | None]]:
    """Yield the agents that may use some of a plugin, each with the place that grants it."""
    for one in permissions:
        decisions = map(one.decide, plugin.tools)
        permitted = next((decision for decision in decisions if decision.permitted), None)
        if permitted is not None:
            yield one.agent.name, _place(permitted) or one.agent.place


def _place(decision: Decision) -> Place | None:
    return next((reason.where for reason in decision.reasons if reason.where is not None), None)
