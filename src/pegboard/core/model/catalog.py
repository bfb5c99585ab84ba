"""Every plugin and tool known, indexed once; an immutable value."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pegboard.core.model.naming import wire_name
from pegboard.core.model.tools import Frozen, Plugin, Tool

RefKind = Literal["toolkit", "plugin", "tool", "category"]
KINDS: tuple[RefKind, ...] = ("toolkit", "plugin", "tool", "category")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Two tools that would have the same name on the wire; the later one is excluded (G10)."""

    wire: str
    first: str
    second: str


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
    """Every plugin and tool known.

    Tools have their wire names once they are in a catalog. A tool whose wire name (or id, where
    names have slashes) is taken is excluded and reported in :attr:`clashes`, so that one bad name
    never costs the list. Of two plugins of one name the later one counts.
    """

    __slots__ = ("_by_name", "_by_wire", "_excluded", "_folded", "_lengths", "_slashed", "clashes", "plugins")

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        named: dict[str, Plugin] = {}
        self._by_wire: dict[str, Tool] = {}
        self._slashed: dict[str, Tool] = {}
        self._excluded: dict[str, tuple[Tool, ...]] = {}
        self._by_name: dict[str, list[Tool]] | None = None
        self._folded: dict[str, list[str]] | None = None
        clashes: list[Clash] = []
        for name, plugin in {plugin.name: plugin for plugin in plugins}.items():
            named[name] = self._admit(plugin, clashes)
        self.plugins: Mapping[str, Plugin] = Frozen(named)
        self.clashes: tuple[Clash, ...] = tuple(clashes)
        self._lengths = sum(len(p.tools) for p in named.values())

    def _admit(self, plugin: Plugin, clashes: list[Clash]) -> Plugin:
        """Return the plugin with wire names on its tools, without those whose name is taken."""
        prefix = plugin.prefix if plugin.kind == "server" else (plugin.prefix or "")
        kept: list[Tool] = []
        excluded: list[Tool] = []
        for tool in plugin.tools:
            wire = tool.wire or wire_name(plugin.name, tool.name, prefix=prefix)
            slashed = "/" in plugin.name or "/" in tool.name
            taken = self._by_wire.get(wire) or (self._slashed.get(tool.id) if slashed else None)
            if taken is not None:
                clashes.append(Clash(wire=wire, first=taken.id, second=tool.id))
                excluded.append(tool)
                continue
            named = tool if tool.wire else replace(tool, wire=wire)
            self._by_wire[wire] = named
            if slashed:
                self._slashed[tool.id] = named
            kept.append(named)
        if excluded:
            self._excluded[plugin.name] = tuple(excluded)
        unchanged = len(kept) == len(plugin.tools) and all(map(operator.is_, kept, plugin.tools))
        return plugin if unchanged else replace(plugin, tools=tuple(kept))

    def _restored(self, plugin: Plugin) -> Plugin:
        """Return the plugin with what was excluded from it here and is still in its manifests."""
        lost = self._excluded.get(plugin.name, ())
        if not lost:
            return plugin
        here = {tool.name for tool in plugin.tools}
        listed = {name for variant in plugin.variants.values() for name in variant.tools or ()}
        unchanged = self.plugins.get(plugin.name) is plugin
        back = tuple(t for t in lost if unchanged or (t.name in listed and t.name not in here))
        return replace(plugin, tools=(*plugin.tools, *back))

    def __len__(self) -> int:
        """Return how many tools there are."""
        return self._lengths

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over every tool, plugin by plugin."""
        for plugin in self.plugins.values():
            yield from plugin.tools

    def with_plugins(self, changed: Iterable[Plugin]) -> Catalog:
        """Return the catalog with these plugins in place of those of the same names."""
        update = {plugin.name: plugin for plugin in changed}
        kept = [self._restored(update.pop(name, plugin)) for name, plugin in self.plugins.items()]
        return Catalog([*kept, *update.values()])

    def by_wire(self, name: str) -> Tool | None:
        """Return the tool with this wire name."""
        return self._by_wire.get(name)

    def by_id(self, tool_id: str) -> Tool | None:
        """Return the tool with this id (``plugin/tool``)."""
        plugin_name, slash, name = tool_id.partition("/")
        if "/" in name:
            return self._slashed.get(tool_id)
        plugin = self.plugins.get(plugin_name) if slash else None
        if plugin is None:
            return None
        tool = self._by_wire.get(self._wire_of(plugin, name))
        if tool is not None and tool.id == tool_id:
            return tool
        return next((t for t in plugin.tools if t.name == name), None)

    @staticmethod
    def _wire_of(plugin: Plugin, name: str) -> str:
        prefix = plugin.prefix if plugin.kind == "server" else (plugin.prefix or "")
        return wire_name(plugin.name, name, prefix=prefix)

    def named(self, name: str) -> tuple[Tool, ...]:
        """Return every tool whose own name is this one."""
        if self._by_name is None:
            index: dict[str, list[Tool]] = {}
            for tool in self:
                index.setdefault(tool.name, []).append(tool)
            self._by_name = index
        return tuple(self._by_name.get(name, ()))

    def find_tool(self, name: str) -> Tool | None:
        """Return the tool with this wire name, this id or, if only one has it, this own name."""
        tool = self.by_wire(name) or self.by_id(name)
        if tool is None:
            same = self.named(name)
            tool = same[0] if len(same) == 1 else None
        return tool

    def find_folded(self, name: str) -> tuple[str, ...]:
        """Return plugin names, wire names and own names that equal this one but for their case."""
        if self._folded is None:
            index: dict[str, list[str]] = {}
            for plugin in self.plugins.values():
                index.setdefault(plugin.name.casefold(), []).append(plugin.name)
                for tool in plugin.tools:
                    for alias in {tool.wire, tool.name}:
                        index.setdefault(alias.casefold(), []).append(alias)
            self._folded = index
        return tuple(dict.fromkeys(self._folded.get(name.casefold(), ())))

    def category(self, name: str) -> tuple[Plugin, ...]:
        """Return the plugins of a category, whatever the case of its name."""
        fold = name.casefold()
        return tuple(p for p in self.plugins.values() if (p.category or "").casefold() == fold)
