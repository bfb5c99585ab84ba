"""Every plugin and tool known, indexed once; an immutable value."""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeVar

from pegboard.core.model.naming import wire_name
from pegboard.core.model.tools import Frozen, Plugin, Tool

RefKind = Literal["toolkit", "plugin", "tool", "category"]
KINDS: tuple[RefKind, ...] = ("toolkit", "plugin", "tool", "category")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ROOM: Final = 16
"""The square of the changes may be this many times the size of what they stand over."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a toolkit, plugin, tool or category without doubt; to tools by their id."""

    kind: RefKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Return the reference that :meth:`__str__` wrote."""
        kind, _, name = text.partition(":")
        for known in KINDS:
            if kind == known and name:
                return cls(known, name)
        raise ValueError(f"not a reference: {text!r}")


def split_kind(name: str) -> tuple[RefKind | None, str]:
    """Return the kind that a name states in front (``tool:x``), if it does, and the rest.

    >>> split_kind("toolkit:devops")
    ('toolkit', 'devops')
    >>> split_kind("git/log")
    (None, 'git/log')
    """
    head, colon, rest = name.partition(":")
    if colon:
        for kind in KINDS:
            if head == kind:
                return kind, rest
    return None, name


class Catalog:
    """Every plugin and tool known, by name and id; immutable.

    Tools have their wire names once they are in a catalog. Several tools may have one: a wire name belongs to a tool
    only among what is loaded together (G10). Of two plugins of one name the later one counts, and of two tools of one
    id the one whose plugin has the longer name, else the first.
    """

    __slots__ = ("_aliases", "_folds", "_order", "plugins")

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self.plugins: Mapping[str, Plugin] = Frozen()
        self._order: Mapping[str, int] = {}
        self._aliases: PersistentMap[str, tuple[Tool, ...]] | None = None
        self._folds: Mapping[str, list[str]] | None = None
        self._add_plugins({plugin.name: _with_wire_names(plugin) for plugin in plugins})

    def with_plugins(self, changed: Iterable[Plugin]) -> Catalog:
        """Return the catalog with these plugins in place of those of the same names; itself where they are the same."""
        update = {plugin.name: _with_wire_names(plugin) for plugin in changed}
        update = {name: plugin for name, plugin in update.items() if plugin is not self.plugins.get(name)}
        if not update:
            return self
        after = copy(self)
        after._add_plugins(update)  # noqa: SLF001 - the same class
        return after if any(after.plugins[name] is not self.plugins.get(name) for name in update) else self

    def _add_plugins(self, update: dict[str, Plugin]) -> None:
        """Take in plugins; no one else has this catalog yet."""
        if new := [name for name in update if name not in self._order]:
            self._order = {**self._order, **{name: at for at, name in enumerate(new, len(self._order))}}
            self._folds = None
            shorter = (head for name in new for head in _heads(name) if head in self.plugins and head not in update)
            update |= {head: self.plugins[head] for head in shorter}
        plugins = {name: self._reuse_plugin(self._with_own_tools(plugin)) for name, plugin in update.items()}
        gone = [tool for name in plugins if name in self.plugins for tool in self.plugins[name].tools]
        came = [tool for plugin in plugins.values() for tool in plugin.tools]
        self.plugins = Frozen(self.plugins, **plugins)
        if self._aliases is not None:
            self._aliases = self._aliases.changed(self._changed_aliases(self._aliases, gone, came))

    def _with_own_tools(self, plugin: Plugin) -> Plugin:
        """Return a plugin without the tools whose id means an earlier tool, or one of a plugin with a longer name."""
        tools: dict[str, Tool] = {}
        for tool in plugin.tools:
            if not any(head in self._order for head in _heads(tool.id) if len(head) > len(plugin.name)):
                tools.setdefault(tool.name, tool)
        return plugin if len(tools) == len(plugin.tools) else replace(plugin, tools=tuple(tools.values()))

    def _reuse_plugin(self, plugin: Plugin) -> Plugin:
        """Return the plugin that was here where it is equal, else it with the tools that were here and are equal."""
        here = self.plugins.get(plugin.name)
        if here is None or here is plugin:
            return plugin
        known = {tool.name: tool for tool in here.tools}
        same = tuple(known[tool.name] if known.get(tool.name) == tool else tool for tool in plugin.tools)
        plugin = plugin if all(map(operator.is_, same, plugin.tools)) else replace(plugin, tools=same)
        return here if here == plugin and all(map(operator.is_, here.tools, plugin.tools)) else plugin

    def _changed_aliases(
        self, known: PersistentMap[str, tuple[Tool, ...]], gone: Iterable[Tool], came: Iterable[Tool]
    ) -> Mapping[str, tuple[Tool, ...] | None]:
        """Return what is found under the aliases of tools once some have gone and others have come."""
        changed: dict[str, list[Tool]] = {}
        for tool in gone:
            for alias in _aliases_of(tool):
                found = changed.setdefault(alias, list(known.get(alias) or ()))
                found[:] = [other for other in found if other is not tool]
        for tool in came:
            for alias in _aliases_of(tool):
                found = changed.setdefault(alias, list(known.get(alias) or ()))
                insort(found, tool, key=lambda other: self._order[other.plugin])
        return {alias: tuple(found) or None for alias, found in changed.items()}

    def __len__(self) -> int:
        """Return how many tools there are."""
        return sum(len(plugin.tools) for plugin in self.plugins.values())

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over every tool, plugin by plugin."""
        for plugin in self.plugins.values():
            yield from plugin.tools

    def by_wire(self, name: str) -> tuple[Tool, ...]:
        """Return every tool with this wire name, in the order of the plugins."""
        return tuple(tool for tool in self._with_alias(name) if tool.wire == name)

    def by_id(self, tool_id: str) -> Tool | None:
        """Return the tool with this id (``plugin/tool``)."""
        for head in _heads(tool_id):
            plugin = self.plugins.get(head)
            if plugin is not None:
                name = tool_id[len(head) + 1 :]
                return next((tool for tool in self._with_alias(name) if tool.id == tool_id), None)
        return None

    def named(self, name: str) -> tuple[Tool, ...]:
        """Return every tool whose own name is this one."""
        return tuple(tool for tool in self._with_alias(name) if tool.name == name)

    def _with_alias(self, name: str) -> tuple[Tool, ...]:
        """Return every tool whose wire name or own name equals this one but for its case."""
        if self._aliases is None:
            index: dict[str, list[Tool]] = {}
            for tool in self:
                for alias in _aliases_of(tool):
                    index.setdefault(alias, []).append(tool)
            self._aliases = PersistentMap({alias: tuple(tools) for alias, tools in index.items()})
        return self._aliases.get(name.casefold()) or ()

    def meant_by(self, name: str) -> tuple[Tool, ...]:
        """Return the tool of this id, else those of this wire name, else those of this own name."""
        found = self.by_id(name)
        return (found,) if found is not None else self.by_wire(name) or self.named(name)

    def find_tool(self, name: str) -> Tool | None:
        """Return the tool with this id or, if only one has it, this wire name or own name."""
        found = self.meant_by(name)
        return found[0] if len(found) == 1 else None

    def find_folded(self, name: str) -> tuple[str, ...]:
        """Return plugin names, wire names and own names that equal this one but for their case."""
        fold = name.casefold()
        if self._folds is None:
            self._folds = {}
            for plugin in self.plugins:
                self._folds.setdefault(plugin.casefold(), []).append(plugin)
        aliases = (alias for tool in self._with_alias(name) for alias in (tool.wire, tool.name))
        return (*self._folds.get(fold, ()), *dict.fromkeys(alias for alias in aliases if alias.casefold() == fold))

    def but_for_case(self, name: str) -> tuple[Tool, ...]:
        """Return the tools that are meant by the names which equal this one but for their case."""
        found = (self.find_tool(alias) for alias in self.find_folded(name))
        return tuple({tool.id: tool for tool in found if tool is not None}.values())

    def unseen_owners(self, name: str) -> Iterator[Plugin]:
        """Yield the plugins, not asked for their tools yet, that a name means or to which a tool of it would belong.

        A tool's name is ``plugin/tool``, or a wire name with the plugin's name or prefix in front.
        """
        bare = split_kind(name)[1]
        for head in dict.fromkeys((bare, bare.partition("/")[0], bare.partition("__")[0])):
            plugin = self.headed(head)
            if plugin is not None and not plugin.tools:
                yield plugin

    def holder_of(self, name: str) -> Plugin | None:
        """Return the plugin of which a tool with this wire name or id is new, and waits for a person (A4)."""
        for plugin in self.plugins.values():
            if any(name in (f"{plugin.name}/{own}", _wire_of(plugin, own)) for own in plugin.unreviewed.new):
                return plugin
        return None

    def excluded(self, name: str) -> tuple[Plugin, str] | None:
        """Return the plugin whose list has a tool of this wire name or id that cannot be used, and why; else None."""
        for plugin in self.plugins.values():
            for own, reason in plugin.excluded.items():
                if name in (f"{plugin.name}/{own}", _wire_of(plugin, own)):
                    return plugin, reason
        return None

    def wire_of(self, plugin: Plugin, name: str) -> str:
        """Return the name on the wire of a tool of a plugin, listed or not."""
        return _wire_of(plugin, name)

    def headed(self, head: str) -> Plugin | None:
        """Return the plugin of this name, else the one whose wire names begin with it, or None.

        Of several with one prefix it is one whose tools are not known, where there is such a one.
        """
        if (named := self.plugins.get(head)) is not None:
            return named
        prefixed = [plugin for plugin in self.plugins.values() if plugin.prefix == head != ""]
        return min(prefixed, key=lambda plugin: bool(plugin.tools), default=None)

    def category(self, name: str) -> tuple[Plugin, ...]:
        """Return the plugins of a category, whatever the case of its name."""
        fold = name.casefold()
        return tuple(p for p in self.plugins.values() if p.category and p.category.casefold() == fold)


class PersistentMap(Generic[K, V]):
    """An immutable mapping that shares with the one before it what has not changed.

    It is a base that many versions share, and over it what has changed since (None: gone). A change copies the changes
    before it; once they are about as many as the square root of the base, both become a new base. So n entries that
    come one after the other cost n times the square root of n at worst, in copies that no Python code steps through,
    and a look-up costs two.
    """

    __slots__ = ("_base", "_changes")

    def __init__(self, base: Mapping[K, V], changes: Mapping[K, V | None] | None = None) -> None:
        self._base = base
        self._changes: Mapping[K, V | None] = changes or {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._changes[key] if key in self._changes else self._base.get(key)

    def changed(self, changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
        """Return the mapping with other values, and without the keys whose value is None."""
        if not changes:
            return self
        over = {**self._changes, **changes}
        if len(over) ** 2 <= _ROOM * len(self._base):
            return PersistentMap(self._base, over)
        whole = dict(self._base)
        for key, value in over.items():
            if value is None:
                whole.pop(key, None)
            else:
                whole[key] = value
        return PersistentMap(whole)


def _with_wire_names(plugin: Plugin) -> Plugin:
    """Return a plugin each tool of which has its wire name."""
    if all(tool.wire for tool in plugin.tools):
        return plugin
    tools = (tool if tool.wire else replace(tool, wire=_wire_of(plugin, tool.name)) for tool in plugin.tools)
    return replace(plugin, tools=tuple(tools))


def _wire_of(plugin: Plugin, name: str) -> str:
    prefix = plugin.prefix if plugin.kind == "server" else (plugin.prefix or "")
    return wire_name(plugin.name, name, prefix=prefix)


def _heads(name: str) -> Iterator[str]:
    """Yield what stands before each slash of a name, the longest first."""
    at = name.rfind("/")
    while at > 0:
        yield name[:at]
        at = name.rfind("/", 0, at)


def _aliases_of(tool: Tool) -> tuple[str, ...]:
    wire, own = tool.wire.casefold(), tool.name.casefold()
    return (wire,) if wire == own else (wire, own)
