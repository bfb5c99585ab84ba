"""What may be wrong with loadouts that people wrote: warnings, none of them stops anything (L3, L6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pegboard.config.check.member_names import MemberNames
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import PathKey
from pegboard.config.problem_codes import error, warning_problem
from pegboard.config.schema.validation import ValidatedDocument
from pegboard.core.model.agents import Agent
from pegboard.core.model.loadouts import BUILT_IN, CATEGORIES, PLUGIN_CATEGORIES, Loadout, merge
from pegboard.core.model.naming import did_you_mean
from pegboard.problems import Place, Problem

_SHOWN = 8
"""How many loadouts of a chain are written out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLoadout:
    """A loadout that people wrote, and where it stands."""

    loadout: Loadout
    validated: ValidatedDocument[Any]
    path: tuple[PathKey, ...]

    def place(self, *path: PathKey, key: bool = False) -> Place:
        """Return where a part of it stands."""
        return self.validated.place(*self.path, *path, key=key)


def check_loadouts(config: UncheckedConfig, written: Sequence[WrittenLoadout], names: MemberNames) -> Iterator[Problem]:
    """Yield what is wrong with loadouts, and with agents that name them."""
    known: Mapping[str, Loadout] = {**BUILT_IN, **config.loadouts}
    plugins = {name.casefold() for name in (*names.plugins, *names.off)} | PLUGIN_CATEGORIES.keys()
    categories = {c.casefold() for c in CATEGORIES} | {
        spec.category.casefold() for spec in names.plugins.values() if spec.category
    }
    for item in written:
        yield from _chain(item, known)
        yield from _names(item, plugins, names)
        yield from _categories(item, categories)
    yield from _duplicate_loadouts(written)
    for agent in config.agents.values():
        if agent.loadout is not None and agent.loadout.casefold() not in known:
            message = f"loadout '{agent.loadout}' is not defined; the agent has nothing from it."
            place = config.validated.place("agents", agent.name, "loadout")
            yield warning_problem("unknown_loadout", message, place, did_you_mean(agent.loadout, _titles(known)))
        yield from _start_disabled_by_loadout(agent, config, known, names)
        part = (config.validated.section.agents or {}).get(agent.name)
        for index, pattern in enumerate(part.discoverable if part else ()):
            place = config.validated.place("agents", agent.name, "discoverable", index)
            yield from _pattern(pattern, place, plugins, names)


def _start_disabled_by_loadout(
    agent: Agent, config: UncheckedConfig, known: Mapping[str, Loadout], names: MemberNames
) -> Iterator[Problem]:
    """Yield what an agent has from the start, by its own lists, and its own loadout disables."""
    if agent.loadout is None:
        return
    name, merged = agent.name, merge(agent.loadout, known)
    initial = (config.toolkits[kit].members for kit in agent.initial_toolkits if kit in config.toolkits)
    for item in chain(agent.essential, agent.static, *initial):
        plugin = names.meaning_of(item.name).plugin
        by = merged.disables(plugin) if plugin else None
        if by is not None:
            message = (
                f"loadout '{by}' disables '{plugin}', which agent '{name}' has loaded from the start; disabled wins."
            )
            yield warning_problem("named_and_disabled", message, item.place, "Leave one of them out.")


def _titles(known: Mapping[str, Loadout]) -> list[str]:
    return [loadout.name for loadout in known.values()]


def _chain(item: WrittenLoadout, known: Mapping[str, Loadout]) -> Iterator[Problem]:
    loadout = item.loadout
    parent = loadout.parent
    if parent is None:
        return
    if parent.casefold() not in known:
        message = f"loadout '{parent}' is not defined; the chain ends here."
        yield warning_problem("unknown_parent", message, item.place("extends"), did_you_mean(parent, _titles(known)))
        return
    links = [loadout.name]
    above: Loadout | None = known[parent.casefold()]
    while above is not None:
        links.append(above.name)
        if above.name.casefold() == loadout.name.casefold():
            shown = links if len(links) <= _SHOWN else [*links[: _SHOWN - 2], "…", links[-1]]
            message = f"the loadout extends itself: {' → '.join(shown)}; the chain is cut there."
            yield warning_problem("loadout_cycle", message, item.place("extends"), "Let one of them extend nothing.")
            return
        if above.name.casefold() in (name.casefold() for name in links[:-1]):
            return
        above = known.get(above.parent.casefold()) if above.parent else None


def _names(item: WrittenLoadout, plugins: set[str], names: MemberNames) -> Iterator[Problem]:
    loadout = item.loadout
    for key, listed in (("plugins", loadout.plugins), ("disabled", loadout.disabled)):
        for index, name in enumerate(listed):
            if name.casefold() not in plugins:
                message = f"plugin '{name}' is not known."
                yield warning_problem("unknown_plugin", message, item.place(key, index), names.question(name))
    named = {name.casefold() for name in loadout.plugins}
    for index, name in enumerate(loadout.disabled):
        if name.casefold() in named:
            message = f"plugin '{name}' is both named and disabled; disabled wins."
            yield warning_problem(
                "named_and_disabled", message, item.place("disabled", index), "Leave one of them out."
            )
    for index, pattern in enumerate(loadout.discoverable):
        yield from _pattern(pattern, item.place("discoverable", index), plugins, names)


def _pattern(pattern: str, place: Place, plugins: set[str], names: MemberNames) -> Iterator[Problem]:
    """Yield a pattern that cannot match what it looks like, and a name that means nothing."""
    if "*" in pattern[:-1] or "?" in pattern:
        message = f"in '{pattern}' a star is a wildcard only at the end."
        yield warning_problem("bad_pattern", message, place, "Write a name, prefix* or *.")
    elif not pattern.endswith("*") and pattern.casefold() not in plugins:
        message = f"plugin '{pattern}' is not known."
        yield warning_problem("unknown_plugin", message, place, names.question(pattern))


def _categories(item: WrittenLoadout, known: set[str]) -> Iterator[Problem]:
    for index, name in enumerate(item.loadout.categories):
        if name.casefold() not in known:
            message = f"no plugin is in the category '{name}'."
            yield warning_problem(
                "unknown_category", message, item.place("categories", index), did_you_mean(name, CATEGORIES)
            )


def _duplicate_loadouts(written: Sequence[WrittenLoadout]) -> Iterator[Problem]:
    seen: dict[tuple[int, str], str] = {}
    for item in written:
        name = item.loadout.name
        first = seen.setdefault((id(item.validated), name.casefold()), name)
        if first != name:
            message = f"loadouts '{first}' and '{name}' differ only in upper and lower case, which is ignored."
            yield error("duplicate_loadout", message, item.place(key=True), "Rename one of them.")
