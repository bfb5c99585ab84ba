"""Loadouts by agent type: a selector with a parent (seed 003)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pegboard.core.model.tools import Frozen
from pegboard.problems import Place

CATEGORIES: Final = (
    "Filesystem",
    "Git",
    "GitHub",
    "Shell",
    "Web",
    "Search",
    "Network",
    "Memory",
    "Orchestration",
    "Analysis",
    "Scheduling",
    "Multimodal",
    "Security",
)
"""The categories of seed 003, in its order (L4)."""

_KNOWN: Final = frozenset(category.casefold() for category in CATEGORIES)


class _CaseInsensitiveMapping(Frozen):
    """A mapping whose keys are found in any case."""

    __slots__ = ()

    def __getitem__(self, key: str) -> str:
        """Return the value of a key."""
        return str(super().__getitem__(key.casefold()))

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a key."""
        return isinstance(key, str) and super().__contains__(key.casefold())

    def get(self, key: str, default: Any = None, /) -> Any:
        """Return the value of a key, or the default."""
        return super().get(key.casefold(), default)


PLUGIN_CATEGORIES: Final[Mapping[str, str]] = _CaseInsensitiveMapping(
    {
        **dict.fromkeys(("file", "batchedit", "diff", "notebook", "migration"), "Filesystem"),
        "git": "Git",
        "github": "GitHub",
        **dict.fromkeys(("shell", "environment", "clipboard", "runtime"), "Shell"),
        **dict.fromkeys(("web", "browser"), "Web"),
        **dict.fromkeys(("search", "websearch"), "Search"),
        "tailscale": "Network",
        "memory": "Memory",
        **dict.fromkeys(("tasks", "sessions", "mcp", "mcpecosystem", "capabilities", "channels"), "Orchestration"),
        **dict.fromkeys(("think", "paritydocs", "skillparity", "benchmark", "usage"), "Analysis"),
        "scheduler": "Scheduling",
        "multimodal": "Multimodal",
        **dict.fromkeys(("policy", "encoding"), "Security"),
    }
)
"""The category of a plugin name, whatever its case (L4, seed 003)."""


def category_of(plugin: str) -> str | None:
    """Return the category that seed 003 gives a plugin of this name.

    >>> category_of("batchEdit"), category_of("unheard-of")
    ('Filesystem', None)
    """
    return PLUGIN_CATEGORIES.get(plugin)


def matches_pattern(pattern: str, name: str) -> bool:
    """Return whether a pattern names this plugin: exact, ``prefix*`` or ``*``; case is ignored (L2).

    >>> matches_pattern("docker*", "Docker-compose"), matches_pattern("git", "github"), matches_pattern("*", "any")
    (True, False, True)
    """
    pattern, name = pattern.casefold(), name.casefold()
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def matches_any(patterns: Iterable[str], name: str) -> str | None:
    """Return the first pattern that names this plugin."""
    return next((pattern for pattern in patterns if matches_pattern(pattern, name)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loadout:
    """What a kind of agent has: active, discoverable and disabled plugins (L1).

    Attributes:
        name: its name; case does not count.
        parent: the loadout that it inherits from, or None.
        plugins: the plugins that it makes active.
        categories: the categories whose plugins it makes active.
        discoverable: patterns of plugins that may be asked for: a name, ``prefix*`` or ``*``.
        disabled: the plugins that it takes away, whatever else makes them active.
        others: whether it also takes the plugins that have none of the 13 categories.
        place: where a configuration defines it, or None.
    """

    name: str
    parent: str | None = None
    plugins: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    discoverable: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    others: bool = False
    place: Place | None = None


def _built_in(
    name: str,
    *categories: str,
    plugins: tuple[str, ...] = (),
    discoverable: tuple[str, ...] = (),
) -> Loadout:
    parent = None if name in ("minimal", "full") else "minimal"
    return Loadout(
        name=name,
        parent=parent,
        plugins=plugins,
        categories=categories,
        discoverable=discoverable,
        others=name == "full",
    )


BUILT_IN: Final[Mapping[str, Loadout]] = Frozen(
    {
        loadout.name: loadout
        for loadout in (
            _built_in("minimal", "Filesystem", "Shell", plugins=("think",), discoverable=("*",)),
            _built_in(
                "developer",
                *("Git", "GitHub", "Search", "Analysis", "Memory"),
                discoverable=("docker*", "mcp*"),
            ),
            _built_in("research", "Search", "Web", "Memory", "Multimodal"),
            _built_in(
                "devops",
                *("Git", "Network", "Scheduling"),
                discoverable=("docker*", "kube*", "terraform*"),
            ),
            _built_in("full", *CATEGORIES),
        )
    }
)
"""The five loadouts that are always there (L4, seed 003)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedLoadout:
    """A chain of loadouts merged root first, names case-folded (L2)."""

    name: str
    chain: tuple[str, ...] = ()
    plugins: Mapping[str, str] = Frozen()
    categories: Mapping[str, str] = Frozen()
    discoverable: tuple[str, ...] = ()
    disabled: Mapping[str, str] = Frozen()
    others: str | None = None

    def disables(self, plugin: str) -> str | None:
        """Return the loadout of the chain that disables the plugin."""
        return self.disabled.get(plugin.casefold())

    def includes(self, plugin: str, category: str | None) -> str | None:
        """Return the loadout of the chain that makes the plugin active, if nothing disables it."""
        if plugin.casefold() in self.disabled:
            return None
        fold = (category or "").casefold()
        named = self.plugins.get(plugin.casefold()) or self.categories.get(fold)
        return named or (None if fold in _KNOWN else self.others)

    def discovers(self, plugin: str, category: str | None) -> str | None:
        """Return the pattern that makes the plugin discoverable: not active, not disabled (L2)."""
        if plugin.casefold() in self.disabled or self.includes(plugin, category) is not None:
            return None
        return matches_any(self.discoverable, plugin)


def chain(name: str, loadouts: Mapping[str, Loadout]) -> tuple[Loadout, ...]:
    """Return the loadout and its parents, root first; ``loadouts`` has case-folded keys (L3).

    A cycle is cut at its first revisit, an unknown parent ends the chain, an unknown name is empty.
    """
    found: list[Loadout] = []
    seen: set[str] = set()
    fold: str | None = name.casefold()
    while fold is not None and fold not in seen and fold in loadouts:
        seen.add(fold)
        found.append(loadouts[fold])
        parent = loadouts[fold].parent
        fold = parent.casefold() if parent else None
    return tuple(reversed(found))


def merge(name: str, loadouts: Mapping[str, Loadout]) -> MergedLoadout:
    """Return the loadout with everything that it inherits (L2)."""
    links = chain(name, loadouts)
    patterns = dict.fromkeys(pattern for link in links for pattern in link.discoverable)
    return MergedLoadout(
        name=name,
        chain=tuple(link.name for link in links),
        plugins=Frozen({p.casefold(): link.name for link in links for p in link.plugins}),
        categories=Frozen({c.casefold(): link.name for link in links for c in link.categories}),
        discoverable=tuple(patterns),
        disabled=Frozen({p.casefold(): link.name for link in links for p in link.disabled}),
        others=next((link.name for link in reversed(links) if link.others), None),
    )
