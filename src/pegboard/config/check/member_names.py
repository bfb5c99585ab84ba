"""What the entries of lists of tools mean: names that mean nothing, or two things, and what stands twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.check.python_names import names_mentioned, names_offered
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.problem_codes import error, warning_problem
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.toolkits import HOST_TOOLS, META_TOOLS
from pegboard.problems import Problem

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_BRINGS_TOOLS: Final = frozenset({"agno", "entry_point"})
"""The kinds of registered plugins that have tools, named as their functions are."""
_MOST_QUESTIONS: Final = 40
"""Suggestions are slow to find: a file with thousands of wrong names gets them for the first ones."""


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """What a name stands for; ``unsure`` where a plugin's tools are not known yet."""

    kind: Literal["plugin", "tool", "category", "toolkit", "unsure", "unknown"]
    plugin: str = ""
    tool: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what two spellings of one thing have in common."""
        return self.kind, self.plugin, self.tool


class MemberNames:
    """The names of a configuration, looked up as the catalog will (selectors.find), without starting anything.

    ``joined`` are the plugins that will be in the catalog. ``unregistered`` are those that the file only says
    something of and no one has.
    ``tools`` are the own names of the tools of plugins that have been asked before.
    """

    def __init__(
        self,
        config: UncheckedConfig,
        registered: Mapping[str, RegisteredSpec],
        tools: Mapping[str, Collection[str]],
        *,
        joined: Collection[str],
    ) -> None:
        self.joined = joined
        self.plugins: Mapping[str, ServerSpec | PythonSpec | RegisteredSpec] = {**registered, **config.written}
        folds = {name.casefold() for name in registered}
        self.unregistered = frozenset(name for name in config.settings if name.casefold() not in folds)
        self.off = config.off | self.unregistered
        self._tools: dict[str, frozenset[str]] = {name: frozenset(own) for name, own in tools.items()}
        self._by_prefix: dict[str, list[str]] = {}
        self._nameless: list[str] = []
        for name, spec in config.written.items():
            self._admit_server(name, spec)
        specs = (registered.get(name) for name in joined if name not in config.written and name not in tools)
        self._unasked = tuple(spec for spec in specs if spec is not None)
        self._owners: dict[str, list[str]] = {}
        for name, own in self._tools.items():
            for tool in own if name in self.plugins else ():
                self._owners.setdefault(tool, []).append(name)
        self._questions: dict[str, str] = {}

    def _admit_server(self, name: str, spec: ServerSpec | PythonSpec) -> None:
        if isinstance(spec, PythonSpec):
            prefix = spec.prefix or ""
            known = names_offered(spec.target, Path(spec.folder or "."))
            if name not in self._tools and known is not None:
                self._tools[name] = known
        else:
            prefix = name if spec.prefix is None else spec.prefix
        if prefix:
            self._by_prefix.setdefault(_UNSAFE.sub("_", prefix), []).append(name)
        elif name not in self._tools:
            self._nameless.append(name)

    def meaning_of(self, name: str) -> NameMeaning:
        """Return what a name stands for."""
        stated, bare = split_kind(name)
        if stated in ("category", "toolkit"):
            return NameMeaning(stated, tool=bare)
        if stated != "tool" and (bare in self.plugins or bare in self.off):
            return NameMeaning("plugin", bare)
        return NameMeaning("unknown") if stated == "plugin" else self._tool(bare)

    def _tool(self, name: str) -> NameMeaning:
        plugin, slash, tool = name.rpartition("/")
        if slash and (plugin in self.plugins or plugin in self.off):
            return self._meaning_of(plugin, tool)
        for cut in re.finditer("__", name):
            for plugin in self._by_prefix.get(name[: cut.start()], ()):
                found = self._meaning_of(plugin, name[cut.end() :])
                if found.kind == "tool":
                    return found
        owners = self._owners.get(name, ())
        if owners:
            return NameMeaning("tool", owners[0], name)
        return NameMeaning("unsure") if self._nameless and not slash else NameMeaning("unknown")

    def means_something(self, name: str) -> bool:
        """Return whether a name stands for something, or may once the plugins were asked that are not known yet."""
        if self.meaning_of(name).kind != "unknown":
            return True
        stated, bare = split_kind(name)
        return stated in (None, "tool") and any(_may_offer(spec, bare) for spec in self._unasked)

    def _meaning_of(self, plugin: str, tool: str) -> NameMeaning:
        known = self._tools.get(plugin)
        return (
            NameMeaning("tool", plugin, tool) if tool and (known is None or tool in known) else NameMeaning("unknown")
        )

    @property
    def nameless(self) -> str:
        """Return the plugins whose tools have bare names that are not known yet."""
        return ", ".join(f"'{name}'" for name in self._nameless[:5])

    def question(self, name: str) -> str:
        """Return "did you mean" for a name that means nothing."""
        if name not in self._questions and len(self._questions) < _MOST_QUESTIONS:
            bare = split_kind(name)[1]
            plugin, slash, _ = bare.rpartition("/")
            own = [f"{plugin}/{tool}" for tool in self._tools.get(plugin, ())] if slash else []
            self._questions[name] = did_you_mean(bare, own or self.possible_names())
        return self._questions.get(name, "")

    def possible_names(self) -> Iterable[str]:
        """Return every name that may be meant."""
        return [*self.plugins, *self._owners]

    def is_shared_only(self, plugin: str) -> bool:
        """Return whether a plugin works only where it is shared (P5)."""
        spec = self.plugins.get(plugin)
        return spec is not None and spec.shared_only


def _may_offer(spec: RegisteredSpec, name: str) -> bool:
    """Return whether a registered plugin, which is constructed only when it is loaded, may have a tool of this name."""
    kind, _, target = spec.loader.partition(":")
    known = _mentioned(target) if kind == "agno" else None
    return name.isidentifier() and kind in _BRINGS_TOOLS and (known is None or name in known)


_mentioned = cache(names_mentioned)


TOOLS, DEFAULTS, ESSENTIAL = "tools", "defaults", "essential"
"""Lists of an agent's own tools; the host's own tools may stand in the first two."""
_OWN = (TOOLS, DEFAULTS, ESSENTIAL)


def check_members(items: Iterable[Member], names: MemberNames, where: str) -> Iterator[Problem]:
    """Yield the names that mean nothing, and what stands twice."""
    first: dict[Any, Member] = {}
    for item in items:
        if where in _OWN and item.name in META_TOOLS and names.meaning_of(item.name).kind in ("unknown", "unsure"):
            message = f"'{item.name}' is added automatically where it is needed."
            yield warning_problem("reserved", message, item.place, "Remove it.")
            continue
        meaning = names.meaning_of(item.name)
        if item.name in HOST_TOOLS:
            yield from _host_tool_problems(item, where)
        else:
            yield from check_member(item, meaning, names)
        identity = meaning.identity if meaning.kind not in ("unknown", "unsure") else item.name
        if identity in first and may_be_equal(first[identity].overrides, item.overrides):
            message = f"'{item.name}' is listed twice in {where}."
            yield warning_problem("duplicate_name", message, item.place, "The first one is used.")
        first.setdefault(identity, item)


def _host_tool_problems(item: Member, where: str) -> Iterator[Problem]:
    """Yield why one of the host's own tools cannot stand where it stands."""
    if where not in (TOOLS, DEFAULTS):
        message = f"'{item.name}' is run by Pegboard itself and can be listed in `tools` only."
        yield error("reserved", message, item.place, "Write it there.")
    elif item.overrides or item.filtered:
        message = f"'{item.name}' takes no settings here."
        yield warning_problem("reserved", message, item.place, f"Write '- {item.name}'.")


def check_member(item: Member, meaning: NameMeaning, names: MemberNames) -> Iterator[Problem]:
    """Yield why a name cannot stand in a list of tools, if it cannot."""
    match meaning.kind:
        case "plugin" | "tool" | "category":
            return
        case "toolkit":
            message = f"'{item.name}' is a toolkit; only plugins and tools can be listed here."
            yield error("unknown_tool", message, item.place, "Write its members.")
        case "unsure":
            message = f"'{item.name}' is not known yet; it may be a tool of {names.nameless}."
            yield warning_problem("unresolved_tool", message, item.place, names.question(item.name))
        case "unknown":
            message = f"'{one_line(item.name, limit=80)}' is not a known plugin or tool."
            yield error("unknown_tool", message, item.place, names.question(item.name))


def may_be_equal(one: Any, other: Any) -> bool:
    """Return whether two settings may turn out equal once their types are known (T5)."""
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(may_be_equal(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(may_be_equal, one, other))
    return one == other or str(one).strip().lower() == str(other).strip().lower()
