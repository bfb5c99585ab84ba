"""Loadouts by name, how they are built, and what they make of a list of plugins (L5, L8, seed 003)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from pegboard.core.model.loadouts import (
    BUILT_IN,
    CATEGORIES,
    PLUGIN_CATEGORIES,
    Loadout,
    MergedLoadout,
    category_of,
    chain,
    merge,
)
from pegboard.core.model.tools import Frozen, Plugin
from pegboard.errors import UsageError


class Category(StrEnum):
    """The 13 categories (L4); a category of one's own is plain text."""

    FILESYSTEM = "Filesystem"
    GIT = "Git"
    GITHUB = "GitHub"
    SHELL = "Shell"
    WEB = "Web"
    SEARCH = "Search"
    NETWORK = "Network"
    MEMORY = "Memory"
    ORCHESTRATION = "Orchestration"
    ANALYSIS = "Analysis"
    SCHEDULING = "Scheduling"
    MULTIMODAL = "Multimodal"
    SECURITY = "Security"


class BuiltIn(StrEnum):
    """The loadouts that are always there (L4)."""

    MINIMAL = "minimal"
    DEVELOPER = "developer"
    RESEARCH = "research"
    DEVOPS = "devops"
    FULL = "full"


SUBAGENTS: Final[Mapping[str, BuiltIn]] = Frozen(
    {
        "explore": BuiltIn.RESEARCH,
        "task": BuiltIn.MINIMAL,
        "plan": BuiltIn.DEVELOPER,
        "review": BuiltIn.DEVELOPER,
        "general": BuiltIn.FULL,
    }
)
"""The loadout of each kind of subagent (L8)."""


def loadout_of_kind(kind: str) -> str:
    """Return the loadout of a kind of subagent; one that is not known has ``minimal`` (L8).

    >>> loadout_of_kind("Explore"), loadout_of_kind("dance")
    ('research', 'minimal')
    """
    return str(SUBAGENTS.get(kind.strip().casefold(), BuiltIn.MINIMAL))


class PluginCategories:
    """Names of plugins with their categories, folded once for everything that is resolved over them."""

    __slots__ = ("categories", "folds", "names")

    def __init__(self, plugins: Iterable[tuple[str, str | None]]) -> None:
        listed = list(plugins)
        self.names = [name for name, _ in listed]
        self.folds = [name.casefold() for name in self.names]
        self.categories = [category for _, category in listed]


def active_of(merged: MergedLoadout, plugins: PluginCategories) -> frozenset[str]:
    """Return which of the plugins a loadout makes active: by name, or by category (L2)."""
    if not merged.chain:
        return frozenset()
    named, disabled = merged.plugins, merged.disabled
    active = {c for c in set(plugins.categories) if merged.includes(_NOBODY, c) is not None}
    rows = zip(plugins.names, plugins.folds, plugins.categories, strict=True)
    return frozenset([n for n, fold, c in rows if (c in active or fold in named) and fold not in disabled])


_NOBODY: Final = "\0"
"""A name that no loadout names or disables, so that only its category speaks for it."""


def discoverable_of(merged: MergedLoadout, plugins: PluginCategories) -> frozenset[str]:
    """Return which of the plugins a loadout makes discoverable: a pattern matches, not active, not disabled (L2)."""
    patterns = [pattern.casefold() for pattern in merged.discoverable]
    exact = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
    prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    disabled = merged.disabled
    rows = zip(plugins.names, plugins.folds, strict=True)
    found = [n for n, fold in rows if (fold.startswith(prefixes) or fold in exact) and fold not in disabled]
    return frozenset(found) - active_of(merged, plugins) if found else frozenset()


class LoadoutRegistry:
    """The loadouts by their names, and what each makes of plugins (L5).

    A new registry has the five built-in ones. Names compare case-insensitively. What was resolved is
    remembered for as long as the same plugins are asked for and nothing is registered.

    Args:
        loadouts: what is registered at once.

    >>> registry = LoadoutRegistry()
    >>> sorted(registry.resolve_active("developer", ["git", "shell", "docker"]))
    ['git', 'shell']
    >>> sorted(registry.resolve_discoverable("developer", ["git", "shell", "docker"]))
    ['docker']
    """

    CATEGORIES = Category
    BUILT_IN = BuiltIn
    PLUGIN_CATEGORIES = PLUGIN_CATEGORIES

    def __init__(self, loadouts: Iterable[Loadout] = ()) -> None:
        self._loadouts: Mapping[str, Loadout] = BUILT_IN
        self._merged: dict[str, MergedLoadout] = {}
        self._plugins: tuple[str | Plugin, ...] = ()
        self._names = PluginCategories(())
        self._resolved: dict[tuple[str, str], frozenset[str]] = {}
        for loadout in loadouts:
            self.register(loadout)

    def register(self, loadout: Loadout) -> None:
        """Keep a loadout, in place of one of the same name.

        Args:
            loadout: the loadout.

        Raises:
            UsageError: it is not a loadout, or has no name.
        """
        self._loadouts = {**self._loadouts, require_loadout(loadout).name.casefold(): loadout}
        self._forget()

    def _known_loadouts(self) -> Mapping[str, Loadout]:
        """Return the loadouts of now by their case-folded names."""
        return self._loadouts

    def _forget(self) -> None:
        """Forget what was merged and resolved."""
        self._merged.clear()
        self._resolved.clear()

    def get(self, name: str) -> Loadout | None:
        """Return the loadout of this name, or None.

        Args:
            name: the loadout's name; case does not count.
        """
        return self._known_loadouts().get(name.casefold())

    def all(self) -> tuple[Loadout, ...]:
        """Return every loadout in the order of registration, the built-in ones first."""
        return tuple(self._known_loadouts().values())

    def chain(self, name: str) -> tuple[Loadout, ...]:
        """Return the loadout and its parents, root first (L3).

        Args:
            name: the loadout's name; case does not count.

        Returns:
            Nothing for an unknown name; a cycle is cut where it comes back.
        """
        return chain(name, self._known_loadouts())

    def merged(self, name: str) -> MergedLoadout:
        """Return the loadout with everything that it inherits (L2).

        Args:
            name: the loadout's name; case does not count.
        """
        fold, known_loadouts = name.casefold(), self._known_loadouts()
        known = self._merged.get(fold)
        if known is None:
            known = self._merged[fold] = merge(name, known_loadouts)
        return known

    def resolve_active(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Return the names of those plugins that the loadout makes active; an unknown one, none (L3).

        Args:
            name: the loadout's name; case does not count.
            plugins: names, or plugins with their own categories.
        """
        return self._resolve("active", name, plugins)

    def resolve_discoverable(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Return the names of those plugins that may be asked for, and are not active (L2).

        Args:
            name: the loadout's name; case does not count.
            plugins: names, or plugins with their own categories.
        """
        return self._resolve("discoverable", name, plugins)

    def _resolve(self, what: str, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        given = tuple(plugins)
        self._known_loadouts()
        if given != self._plugins:
            self._plugins = given
            self._names = PluginCategories(
                (p, category_of(p)) if isinstance(p, str) else (p.name, p.category or category_of(p.name))
                for p in given
            )
            self._resolved.clear()
        key = (what, name.casefold())
        known = self._resolved.get(key)
        if known is None:
            resolve = active_of if what == "active" else discoverable_of
            known = self._resolved[key] = resolve(self.merged(name), self._names)
        return known


def require_loadout(loadout: Loadout) -> Loadout:
    """Return the loadout; raises ``UsageError`` where it is none, or has no name."""
    if not isinstance(loadout, Loadout):
        message = f"{loadout!r:.100} is not a loadout."
        raise UsageError(message, code="bad_loadout", hint="Make one with Loadout(name=…) or LoadoutBuilder.")
    _text(loadout.name, "name")
    return loadout


class LoadoutBuilder:
    """A builder of one loadout, step by step; every method but ``build`` returns the same builder (L5).

    Args:
        name: the name of the loadout.

    >>> reviewer = (
    ...     LoadoutBuilder.create("security-reviewer")
    ...     .extends("developer")
    ...     .include_category("Security")
    ...     .add_plugin("think")
    ...     .add_discoverable("docker*")
    ...     .disable("websearch")
    ...     .build()
    ... )
    >>> reviewer.parent, reviewer.categories, reviewer.disabled
    ('developer', ('Security',), ('websearch',))
    """

    def __init__(self, name: str) -> None:
        self._name = _text(name, "name")
        self._parent: str | None = None
        self._categories: dict[str, str] = {}
        self._plugins: dict[str, str] = {}
        self._discoverable: dict[str, str] = {}
        self._disabled: dict[str, str] = {}

    @classmethod
    def create(cls, name: str) -> LoadoutBuilder:
        """Return a builder of a loadout.

        Args:
            name: the name of the loadout.

        Raises:
            UsageError: the name is empty.
        """
        return cls(name)

    def extends(self, parent: str) -> LoadoutBuilder:
        """Inherit from another loadout, which may be registered later.

        Args:
            parent: its name.

        Returns:
            The same builder.

        Raises:
            UsageError: it is empty.
        """
        self._parent = _text(parent, "parent")
        return self

    def include_category(self, category: str) -> LoadoutBuilder:
        """Make every plugin of a category active: one of the 13, or an author's own.

        Args:
            category: the category; case does not count.

        Returns:
            The same builder.

        Raises:
            UsageError: it is empty.
        """
        return self._add(self._categories, category, "category")

    def add_plugin(self, name: str) -> LoadoutBuilder:
        """Make one plugin active.

        Args:
            name: the plugin's name.

        Returns:
            The same builder.

        Raises:
            UsageError: it is empty.
        """
        return self._add(self._plugins, name, "plugin")

    def add_discoverable(self, pattern: str) -> LoadoutBuilder:
        """Make plugins discoverable: they may be asked for.

        Args:
            pattern: a name, ``prefix*`` or ``*``.

        Returns:
            The same builder.

        Raises:
            UsageError: it is empty.
        """
        return self._add(self._discoverable, pattern, "pattern")

    def disable(self, name: str) -> LoadoutBuilder:
        """Disable one plugin, whatever else makes it active.

        Args:
            name: the plugin's name.

        Returns:
            The same builder.

        Raises:
            UsageError: it is empty.
        """
        return self._add(self._disabled, name, "plugin")

    def build(self) -> Loadout:
        """Return the loadout as it has been described so far."""
        return Loadout(
            name=self._name,
            parent=self._parent,
            plugins=tuple(self._plugins.values()),
            categories=tuple(self._categories.values()),
            discoverable=tuple(self._discoverable.values()),
            disabled=tuple(self._disabled.values()),
        )

    def _add(self, group: dict[str, str], name: str, what: str) -> LoadoutBuilder:
        text = _text(name, what)
        group.setdefault(text.casefold(), text)
        return self


def _text(value: str, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        hint = f"Categories: {', '.join(CATEGORIES)}." if what == "category" else "Write one that is not empty."
        raise UsageError(f"The {what} of a loadout is empty.", code="bad_loadout", hint=hint)
    return str(value)
