"""Which plugins join the catalog: those of the configuration, and the registered ones that it names (§5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from pegboard.config.compile import UncheckedConfig
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import BUILT_IN, Loadout, MergedLoadout, chain, merge
from pegboard.core.model.specs import PluginSettings, PluginSpec, RegisteredSpec


def with_settings(config: UncheckedConfig, registered: Mapping[str, RegisteredSpec]) -> Mapping[str, RegisteredSpec]:
    """Return the registered plugins with what the file says of them, whatever the case of their names (T10)."""
    named = {name.casefold(): said for name, said in config.settings.items()}
    if not named:
        return registered
    return {name: _with_settings(spec, named.get(name.casefold())) for name, spec in registered.items()}


def _with_settings(spec: RegisteredSpec, said: PluginSettings | None) -> RegisteredSpec:
    if said is None:
        return spec
    own: dict[str, Any] = {part.name: getattr(said, part.name) for part in fields(PluginSettings)}
    kept = {"name": spec.name, "category": said.category or spec.category}
    return replace(spec, **{**own, **kept, "description": said.description or spec.description})


def joined(config: UncheckedConfig, registered: Mapping[str, RegisteredSpec]) -> dict[str, PluginSpec]:
    """Return the plugins that join the catalog: those of the file, those that it names, those of named categories.

    A registered plugin of a category that an agent's own loadout names joins too, unless nothing provides it yet;
    patterns never reach it (L9).
    """
    wanted = {part.casefold() for name in _names(config) for part in _plugin_parts(name)}
    others = {name: spec for name, spec in registered.items() if name not in config.written}
    named = {name: spec for name, spec in others.items() if name.casefold() in wanted}
    of_agents = _loadouts_of_agents(config)
    by_category = {
        name: replace(spec, by_category=True)
        for name, spec in others.items()
        if name not in named and spec.brings_tools and any(_names_category(loadout, spec) for loadout in of_agents)
    }
    return {**config.written, **named, **by_category}


def _loadouts_of_agents(config: UncheckedConfig) -> tuple[MergedLoadout, ...]:
    known: Mapping[str, Loadout] = {**BUILT_IN, **config.loadouts}
    names = dict.fromkeys(agent.loadout for agent in config.agents.values() if agent.loadout is not None)
    return tuple(merge(name, known) for name in names)


def _names_category(loadout: MergedLoadout, spec: RegisteredSpec) -> bool:
    """Return whether a loadout, or one that it inherits from, names the category of a plugin, and disables it not."""
    return (spec.category or "").casefold() in loadout.categories and loadout.disables(spec.name) is None


def _names(config: UncheckedConfig) -> Iterable[str]:
    for toolkit in config.toolkits.values():
        yield from (item.name for item in toolkit.members)
    for agent in config.agents.values():
        yield from (item.name for item in (*agent.static, *agent.essential))
        yield from (*agent.discoverable, *agent.switches)
    for items in config.sub_apps.values():
        yield from (item.name for item in items)
    for loadout in _named_loadouts(config):
        yield from (*loadout.plugins, *loadout.discoverable)
    yield from config.settings
    for spec in (*config.written.values(), *config.settings.values()):
        yield from (name for others in spec.requires.values() for name in others)


def _named_loadouts(config: UncheckedConfig) -> Iterable[Loadout]:
    """Yield the loadouts of the configuration, and those of packages that an agent has."""
    yield from (loadout for fold, loadout in config.loadouts.items() if fold not in config.packaged)
    for agent in config.agents.values():
        yield from chain(agent.loadout, config.loadouts) if agent.loadout is not None else ()


def _plugin_parts(name: str) -> Iterable[str]:
    bare = split_kind(name)[1]
    yield bare
    if "/" in bare:
        yield bare.rpartition("/")[0]
