"""What the names in lists of tools mean, before any server was started or module imported."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from pegboard.config.check.python_names import mentioned, offered
from pegboard.config.compile import UncheckedConfig
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.specs import PythonSpec, RegisteredSpec, ServerSpec

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_BRINGS_TOOLS: Final = frozenset({"agno", "entry_point"})
"""The kinds of registered plugins that have tools, named as their functions are."""
_MOST_QUESTIONS: Final = 40
"""Suggestions are slow to find: a file with thousands of wrong names gets them for the first ones."""


@dataclass(frozen=True, slots=True)
class Meaning:
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
    something of and nobody has.
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
            self._admit(name, spec)
        specs = (registered.get(name) for name in joined if name not in config.written and name not in tools)
        self._unasked = tuple(spec for spec in specs if spec is not None)
        self._owners: dict[str, list[str]] = {}
        for name, own in self._tools.items():
            for tool in own if name in self.plugins else ():
                self._owners.setdefault(tool, []).append(name)
        self._questions: dict[str, str] = {}

    def _admit(self, name: str, spec: ServerSpec | PythonSpec) -> None:
        if isinstance(spec, PythonSpec):
            prefix = spec.prefix or ""
            known = offered(spec.target, Path(spec.folder or "."))
            if name not in self._tools and known is not None:
                self._tools[name] = known
        else:
            prefix = name if spec.prefix is None else spec.prefix
        if prefix:
            self._by_prefix.setdefault(_UNSAFE.sub("_", prefix), []).append(name)
        elif name not in self._tools:
            self._nameless.append(name)

    def meaning(self, name: str) -> Meaning:
        """Return what a name stands for."""
        stated, bare = split_kind(name)
        if stated in ("category", "toolkit"):
            return Meaning(stated, tool=bare)
        if stated != "tool" and (bare in self.plugins or bare in self.off):
            return Meaning("plugin", bare)
        return Meaning("unknown") if stated == "plugin" else self._tool(bare)

    def _tool(self, name: str) -> Meaning:
        plugin, slash, tool = name.rpartition("/")
        if slash and (plugin in self.plugins or plugin in self.off):
            return self._of(plugin, tool)
        for cut in re.finditer("__", name):
            for plugin in self._by_prefix.get(name[: cut.start()], ()):
                found = self._of(plugin, name[cut.end() :])
                if found.kind == "tool":
                    return found
        owners = self._owners.get(name, ())
        if owners:
            return Meaning("tool", owners[0], name)
        return Meaning("unsure") if self._nameless and not slash else Meaning("unknown")

    def means_something(self, name: str) -> bool:
        """Return whether a name stands for something, or may once the plugins were asked that are not known yet."""
        if self.meaning(name).kind != "unknown":
            return True
        stated, bare = split_kind(name)
        return stated in (None, "tool") and any(_may_offer(spec, bare) for spec in self._unasked)

    def _of(self, plugin: str, tool: str) -> Meaning:
        known = self._tools.get(plugin)
        return Meaning("tool", plugin, tool) if tool and (known is None or tool in known) else Meaning("unknown")

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
            self._questions[name] = did_you_mean(bare, own or self.known())
        return self._questions.get(name, "")

    def known(self) -> Iterable[str]:
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


_mentioned = cache(mentioned)
