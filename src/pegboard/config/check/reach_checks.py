"""Agents that end up with nothing at all (L9, P7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pegboard.config.check.found import warning
from pegboard.config.compile import UncheckedConfig
from pegboard.core.model.agents import Agent
from pegboard.core.model.loadouts import BUILT_IN, Loadout, matches_any, merge
from pegboard.core.model.specs import PluginSpec, RegisteredSpec
from pegboard.problems import Problem


def check_reach(config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield the written agents that neither have a tool nor may load one, of those that ask for some."""
    known: Mapping[str, Loadout] = {**BUILT_IN, **config.loadouts}
    for agent in (one for name, one in config.agents.items() if name in (config.validated.section.agents or {})):
        if (agent.loadout is not None or agent.discoverable) and not _has_something(agent, config, known, specs):
            message = f"agent '{agent.name}' has no tool and may load none: no plugin is there for what it names."
            hint = "Define plugins or servers, or name registered plugins by their names."
            yield warning("nothing_granted", message, agent.place, hint)


def _has_something(
    agent: Agent, config: UncheckedConfig, known: Mapping[str, Loadout], specs: Mapping[str, PluginSpec]
) -> bool:
    if agent.static or agent.essential or agent.duties or any(agent.switches.values()):
        return True
    if any(config.toolkits[name].members for name in agent.allowed_toolkits if name in config.toolkits):
        return True
    return any(_reaches(agent, spec, known) for spec in specs.values())


def _reaches(agent: Agent, spec: PluginSpec, known: Mapping[str, Loadout]) -> bool:
    """Return whether the agent's loadout or its patterns grant the plugin."""
    by_category = isinstance(spec, RegisteredSpec) and spec.by_category
    patterns: Collection[str] = () if by_category else agent.discoverable
    if matches_any(patterns, spec.name) is not None:
        return True
    if agent.loadout is None:
        return False
    loadout = merge(agent.loadout, known)
    discovered = None if by_category else loadout.discovers(spec.name, spec.category)
    return loadout.includes(spec.name, spec.category) is not None or discovered is not None
