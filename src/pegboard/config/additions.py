"""Toolkits and loadouts that come from code or from installed packages, read and checked like those of a file (T11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

from pegboard.config.check.loadout_checks import WrittenLoadout
from pegboard.config.compile import UncheckedConfig, loadout_of, toolkit_of
from pegboard.config.documents import mapping
from pegboard.config.documents.document import UnreadableError
from pegboard.config.problem_codes import error, warning_problem
from pegboard.config.schema.sections import File
from pegboard.config.schema.validation import ValidatedDocument, validate
from pegboard.core.model.agents import Agent
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import BUILT_IN, Loadout, MergedLoadout, chain, merge
from pegboard.core.model.specs import PluginSettings, PluginSpec, RegisteredSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.problems import Place, Problem

T = TypeVar("T")
GivenToolkit = Mapping[str, Any]
"""A toolkit as a file has it, with its ``name``."""
GivenLoadout = Loadout | Mapping[str, Any]
"""A loadout, or one as a file has it, with its ``name``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenParts:
    """What one origin beside the configuration gives; ``origin`` is how messages name it.

    What a package gives counts only where the configuration names it, and is never reported as shadowed.
    """

    origin: str = "code"
    toolkits: tuple[GivenToolkit, ...] = ()
    loadouts: tuple[GivenLoadout, ...] = ()
    packaged: bool = False


@dataclass(slots=True, kw_only=True)
class _ReadAddition:
    """What was read of an addition."""

    packaged: bool
    toolkits: dict[str, Toolkit] = field(default_factory=dict[str, Toolkit])
    loadouts: dict[str, WrittenLoadout] = field(default_factory=dict[str, WrittenLoadout])
    validated: ValidatedDocument[File] | None = None
    problems: list[Problem] = field(default_factory=list[Problem])


def with_additions(
    config: UncheckedConfig, written: Sequence[WrittenLoadout], additions: Iterable[GivenParts]
) -> tuple[UncheckedConfig, list[WrittenLoadout], list[Problem]]:
    """Return a configuration with what it lacks of the additions, its loadouts, and what is wrong with them.

    On one name the file counts, then the earlier addition.
    """
    loadouts, problems = list(written), list[Problem]()
    for addition in additions:
        read = _read_addition(addition)
        problems += read.problems
        if not read.packaged:
            problems += _overridden_by_file(config, read)
        config, fresh = _join_addition(config, read)
        loadouts += fresh
    return config, loadouts, problems


def _read_addition(addition: GivenParts) -> _ReadAddition:
    read = _ReadAddition(packaged=addition.packaged)
    sections = {
        "toolkits": dict(_bodies(addition, "toolkits", addition.toolkits, read.problems)),
        "loadouts": dict(_bodies(addition, "loadouts", map(_as_mapping, addition.loadouts), read.problems)),
    }
    try:
        document = mapping.compose(sections, addition.origin)
    except UnreadableError as fault:
        read.problems.append(fault.problem)
        return read
    read.validated = validated = validate(File, document, document.value)
    read.problems += validated.problems
    read.toolkits = {name: toolkit_of(name, validated) for name in validated.section.toolkits}
    for name, part in validated.section.loadouts.items():
        path = ("loadouts", name)
        loadout = replace(loadout_of(name, part, validated, *path), others=_takes_other_plugins(addition, name))
        read.loadouts[name.casefold()] = WrittenLoadout(loadout=loadout, validated=validated, path=path)
    return read


def _bodies(
    addition: GivenParts, section: str, items: Iterable[object], problems: list[Problem]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each item without its name, under it; what has none is a problem."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        place = Place(file=addition.origin, path=f"{section}[{index}]")
        if not isinstance(item, Mapping):
            kind = type(item).__name__
            hint = f"Give {{'name': …}} with the keys that a file has under `{section}`."
            problems.append(error("wrong_type", f"expected a mapping, found a value of the type {kind}.", place, hint))
            continue
        body = dict(cast("Mapping[str, Any]", item))
        name = body.pop("name", None)
        if not isinstance(name, str) or not name:
            problems.append(error("missing_key", "'name' is missing, or no text.", place))
        elif name.casefold() in seen:
            problems.append(error("duplicate_key", f"'{name}' is given twice.", place, "Give each name once."))
        else:
            seen.add(name.casefold())
            yield name, body


def _as_mapping(item: GivenLoadout) -> object:
    """Return a loadout with the keys that a file has."""
    if not isinstance(item, Loadout):
        return item
    lists = {key: list(getattr(item, key)) for key in ("plugins", "categories", "discoverable", "disabled")}
    return {"name": item.name, "extends": item.parent, **lists}


def _takes_other_plugins(addition: GivenParts, name: str) -> bool:
    """Return whether a loadout of code takes plugins without a category too; no file can say that."""
    return any(isinstance(item, Loadout) and item.name == name and item.others for item in addition.loadouts)


def _overridden_by_file(config: UncheckedConfig, read: _ReadAddition) -> Iterator[Problem]:
    """Yield what the file has under the same name: that counts."""
    for name in read.toolkits.keys() & config.toolkits.keys():
        yield _overridden_problem("toolkit", name, config.toolkits[name].place)
    for fold in read.loadouts.keys() & config.loadouts.keys():
        yield _overridden_problem("loadout", config.loadouts[fold].name, config.loadouts[fold].place)


def _overridden_problem(kind: str, name: str, place: Place | None) -> Problem:
    message = f"{kind} '{name}' is also given by code; the one in the file is used."
    return warning_problem("shadowed", message, place, "Rename one of them.")


def _join_addition(config: UncheckedConfig, read: _ReadAddition) -> tuple[UncheckedConfig, list[WrittenLoadout]]:
    named = _named_toolkits(config) if read.packaged else read.toolkits.keys()
    toolkits = {name: kit for name, kit in read.toolkits.items() if name not in config.toolkits and name in named}
    fresh = {fold: item for fold, item in read.loadouts.items() if fold not in config.loadouts}
    documents = dict.fromkeys(toolkits, read.validated) if read.validated is not None else {}
    agents = config.agents
    if not read.packaged and "agents" not in config.validated.raw:
        agents = {name: _with_toolkits(agent, toolkits) for name, agent in agents.items()}
    return replace(
        config,
        toolkits={**config.toolkits, **toolkits},
        loadouts={**{fold: item.loadout for fold, item in fresh.items()}, **config.loadouts},
        agents=agents,
        added={**config.added, **documents},
        packaged=config.packaged | (fresh.keys() if read.packaged else frozenset[str]()),
    ), list(fresh.values())


def _with_toolkits(agent: Agent, toolkits: Iterable[str]) -> Agent:
    """Return the agent of a configuration without agents: it may load everything that is given."""
    return replace(agent, allowed_toolkits=(*agent.allowed_toolkits, *toolkits))


def _named_toolkits(config: UncheckedConfig) -> frozenset[str]:
    agents = config.agents.values()
    return frozenset(
        name for agent in agents for name in (*agent.allowed_toolkits, *agent.initial_toolkits, *agent.switches)
    )


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
    own |= {"name": spec.name, "category": said.category or spec.category}
    own |= {"description": said.description or spec.description}
    return replace(spec, **own)


def joined_plugins(config: UncheckedConfig, registered: Mapping[str, RegisteredSpec]) -> dict[str, PluginSpec]:
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
