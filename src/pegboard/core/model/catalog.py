"""Every plugin and tool known, indexed once; an immutable value."""

from __future__ import annotations

import operator
from bisect import insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

from pegboard.core.model.naming import wire_name
from pegboard.core.model.tools import Frozen, Plugin, Tool
from pegboard.core.persistent_map import PersistentMap

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
    """Two tools that would have the same name on the wire: the first has it, the second is excluded (G10).

    It is the one that no approval gates where the other one is ``gated``, else the later one.
    """

    wire: str
    first: str
    second: str
    gated: bool = False

    @property
    def text(self) -> str:
        """Return it as a sentence."""
        first, second, name = self.first, self.second, self.wire
        if self.gated:
            return f"'{first}' and '{second}' are both called '{name}'; the one that no approval gates is excluded."
        return f"'{first}' and '{second}' are both called '{name}'; the later one is excluded."


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


Name = str | tuple[str]
"""What only one tool of a catalog has: its wire name, and in a tuple its id where that has a second slash."""


@dataclass(frozen=True, slots=True)
class _Admission:
    """What comes of plugins that are admitted together; ``outside`` is what others have taken."""

    outside: Callable[[Name], Tool | None]
    is_gated: Callable[[Tool], bool]
    plugins: dict[str, Plugin] = field(default_factory=dict[str, Plugin])
    taken: dict[Name, Tool] = field(default_factory=dict[Name, Tool])
    wanted: dict[Name, tuple[str, ...]] = field(default_factory=dict[Name, tuple[str, ...]])
    clashes: dict[str, tuple[Clash, ...]] = field(default_factory=dict[str, tuple[Clash, ...]])

    def admit(self, plugins: Sequence[Plugin]) -> None:
        """Add plugins in the order of the catalog, without the tools of which a name is taken.

        Tools that an approval gates come before all others: no other one gets to run in their name.
        """
        excluded: dict[str, dict[int, Clash]] = {whole.name: {} for whole in plugins}
        for gated in (True, False):
            for whole in plugins:
                if gated and not _may_gate(whole):
                    continue
                for at, tool in enumerate(whole.tools):
                    if whole.gated(tool) is gated and (clash := self._clash(tool, gated=gated)) is not None:
                        excluded[whole.name][at] = clash
        for whole in plugins:
            self._keep(whole, excluded[whole.name])

    def _clash(self, tool: Tool, *, gated: bool) -> Clash | None:
        """Return with what a tool clashes, or let it have its names."""
        names = _names(tool)
        first = next((taken for name in names if (taken := self.taken.get(name) or self.outside(name))), None)
        if first is None:
            self.taken.update(dict.fromkeys(names, tool))
            return None
        for name in names:
            self.wanted[name] = (*self.wanted.get(name, ()), tool.plugin)
        return Clash(wire=tool.wire, first=first.id, second=tool.id, gated=not gated and self.is_gated(first))

    def _keep(self, whole: Plugin, excluded: Mapping[int, Clash]) -> None:
        if excluded:
            self.clashes[whole.name] = tuple(excluded.values())
            whole = replace(whole, tools=tuple(tool for at, tool in enumerate(whole.tools) if at not in excluded))
        self.plugins[whole.name] = whole


def _may_gate(plugin: Plugin) -> bool:
    return bool(plugin.gates) or any(tool.confirmation is not None for tool in plugin.tools)


class Catalog:
    """Every plugin and tool known.

    Tools have their wire names once they are in a catalog. A tool whose wire name (or id, where
    names have slashes) is taken is excluded and reported in :attr:`clashes`, so that one bad name
    never costs the list. Of two plugins of one name the later one counts.

    A catalog with other plugins shares with the one before what has not changed, down to the objects of the tools. It
    costs what has changed: the plugins that came, and those whose tools come or go with theirs.
    """

    __slots__ = (
        "_aliases", "_clashes", "_folds", "_lengths", "_order", "_taken", "_wanted", "_whole", "plugins",
    )  # fmt: skip

    def __init__(self, plugins: Iterable[Plugin] = ()) -> None:
        self.plugins: Mapping[str, Plugin] = Frozen()
        self._clashes: Mapping[str, tuple[Clash, ...]] = {}
        self._whole: Mapping[str, Plugin] = {}  # those that lack tools in `plugins`, with these
        self._order: Mapping[str, int] = {}
        self._taken: PersistentMap[Name, Tool] = PersistentMap({})
        self._wanted: PersistentMap[Name, tuple[str, ...]] = PersistentMap(
            {}
        )  # the names of excluded tools, with their plugins
        self._aliases: PersistentMap[str, tuple[Tool, ...]] | None = None
        self._folds: Mapping[str, list[str]] | None = None
        self._lengths = 0
        self._take({plugin.name: _with_wire_names(plugin) for plugin in plugins})

    def with_plugins(self, changed: Iterable[Plugin]) -> Catalog:
        """Return the catalog with these plugins in place of those of the same names; itself where they are the same."""
        update = {plugin.name: self._completed(plugin) for plugin in changed}
        update = {name: plugin for name, plugin in update.items() if plugin is not self._whole_of(name)}
        if not update:
            return self
        after = copy(self)
        after._take(self._moved_by(update))  # noqa: SLF001 - the same class
        return after

    def _completed(self, plugin: Plugin) -> Plugin:
        """Return a plugin with wire names, and with what was excluded from it and stands in its manifests still.

        What is equal to what was there is that object.
        """
        here, whole = self.plugins.get(plugin.name), self._whole_of(plugin.name)
        if here is None or whole is None:
            return _with_wire_names(plugin)
        if plugin is here:
            return whole
        known = {tool.name: tool for tool in whole.tools}
        tools = [*_with_wire_names(plugin).tools, *_excluded(here, whole, plugin)]
        same = (known[tool.name] if known.get(tool.name) == tool else tool for tool in tools)
        found = replace(plugin, tools=tuple(same))
        return whole if found == whole else found

    def _whole_of(self, name: str) -> Plugin | None:
        """Return the plugin of a name with what is excluded from it here."""
        return self._whole.get(name) or self.plugins.get(name)

    def _moved_by(self, update: Mapping[str, Plugin]) -> Mapping[str, Plugin]:
        """Return the plugins with those whose tools may come or go with theirs.

        These are the later owners of a name, and those that want a name which may become free, or which only they want.
        """
        found = dict(update)
        before = (whole for name in update if (whole := self._whole_of(name)) is not None)
        pending = [tool for plugin in (*update.values(), *before) for tool in plugin.tools]
        while pending:
            tool = pending.pop()
            for name in _names(tool):
                for plugin in self._affected(name, tool, update):
                    if plugin not in found and (whole := self._whole_of(plugin)) is not None:
                        found[plugin] = whole
                        pending += whole.tools
        return found

    def _affected(self, name: Name, tool: Tool, update: Mapping[str, Plugin]) -> tuple[str, ...]:
        """Return the other plugins for which it makes a difference whether a tool has a name."""
        owner = self._taken.get(name)
        if owner is None or owner.plugin == tool.plugin:
            return self._wanted.get(name) or ()
        return (owner.plugin,) if self._precedence(tool, update) < self._precedence(owner, update) else ()

    def _precedence(self, tool: Tool, update: Mapping[str, Plugin]) -> tuple[bool, int]:
        """Return what sorts the tools that want one name: what an approval gates first, then the order (G10)."""
        return not self._gated(tool, update), self._order.get(tool.plugin, len(self._order))

    def _gated(self, tool: Tool, update: Mapping[str, Plugin]) -> bool:
        plugin = update.get(tool.plugin) or self._whole_of(tool.plugin)
        return plugin is not None and plugin.gated(tool)

    def _take(self, update: Mapping[str, Plugin]) -> None:
        """Take in whole plugins, with all those whose tools come or go with them; nobody else has this catalog yet."""
        if new := [name for name in update if name not in self._order]:
            self._order = {**self._order, **{name: at for at, name in enumerate(new, len(self._order))}}
            self._folds = None
        admission = _Admission(lambda name: self._owner_outside(name, update), lambda tool: self._gated(tool, update))
        admission.admit([update[name] for name in sorted(update, key=self._order.__getitem__)])
        gone = [tool for name in update if name in self.plugins for tool in self.plugins[name].tools]
        self._keep_excluded(update, admission)
        plugins = {name: self._same(plugin) for name, plugin in admission.plugins.items()}
        came = [tool for plugin in plugins.values() for tool in plugin.tools]
        self.plugins = Frozen(self.plugins, **plugins)
        freed: dict[Name, Tool | None] = {name: None for tool in gone for name in _names(tool)}
        self._taken = self._taken.changed(freed | admission.taken)
        if self._aliases is not None:
            self._aliases = self._aliases.changed(self._changed_aliases(self._aliases, gone, came))
        self._lengths += len(came) - len(gone)

    def _owner_outside(self, name: Name, plugins: Container[str]) -> Tool | None:
        """Return the tool that has a name, unless it is of one of these plugins."""
        owner = self._taken.get(name)
        return None if owner is None or owner.plugin in plugins else owner

    def _same(self, plugin: Plugin) -> Plugin:
        """Return the plugin that was here where it is the same, with the same tools."""
        here = self.plugins.get(plugin.name)
        if here is None or here != plugin or not all(map(operator.is_, here.tools, plugin.tools)):
            return plugin
        return here

    def _keep_excluded(self, update: Mapping[str, Plugin], admission: _Admission) -> None:
        """Keep what is excluded, with the names for which it waits."""
        before = [name for name in update if name in self._clashes]
        if not (before or admission.clashes):
            return
        wanted = {name: self._wanted.get(name) or () for name in admission.wanted}
        for name in (name for plugin in before for tool in self._whole[plugin].tools for name in _names(tool)):
            wanted[name] = tuple(plugin for plugin in self._wanted.get(name) or () if plugin not in update)
        changed = {name: (*plugins, *admission.wanted.get(name, ())) or None for name, plugins in wanted.items()}
        self._wanted = self._wanted.changed(changed)
        kept = {name: found for name, found in self._clashes.items() if name not in update}
        self._clashes = kept | admission.clashes
        self._whole = {name: self._whole[name] for name in kept} | {name: update[name] for name in admission.clashes}

    @property
    def clashes(self) -> tuple[Clash, ...]:
        """Return the tools that are excluded, in the order of the catalog.

        What only a category brought in gives way to what is written, without a word (L9).
        """
        reported = (name for name in self._clashes if not self.plugins[name].by_category)
        names = sorted(reported, key=self._order.__getitem__)
        return tuple(clash for name in names for clash in self._clashes[name])

    def clashes_of(self, plugin: str) -> tuple[Clash, ...]:
        """Return the tools of a plugin that are excluded since others have their names."""
        return self._clashes.get(plugin, ())

    def _changed_aliases(
        self, known: PersistentMap[str, tuple[Tool, ...]], gone: Iterable[Tool], came: Iterable[Tool]
    ) -> Mapping[str, tuple[Tool, ...] | None]:
        """Return what stands under the aliases of tools once some have gone and others have come."""
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
        return self._lengths

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over every tool, plugin by plugin."""
        for plugin in self.plugins.values():
            yield from plugin.tools

    def by_wire(self, name: str) -> Tool | None:
        """Return the tool with this wire name."""
        return self._taken.get(name)

    def by_id(self, tool_id: str) -> Tool | None:
        """Return the tool with this id (``plugin/tool``)."""
        plugin_name, slash, name = tool_id.partition("/")
        if "/" in name:
            return self._taken.get((tool_id,))
        plugin = self.plugins.get(plugin_name) if slash else None
        if plugin is None:
            return None
        tool = self.by_wire(_wire_of(plugin, name))
        if tool is not None and tool.id == tool_id:
            return tool
        return next((t for t in plugin.tools if t.name == name), None)

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

    def find_tool(self, name: str) -> Tool | None:
        """Return the tool with this wire name, this id or, if only one has it, this own name."""
        tool = self.by_wire(name) or self.by_id(name)
        if tool is None:
            same = self.named(name)
            tool = same[0] if len(same) == 1 else None
        return tool

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


def _with_wire_names(plugin: Plugin) -> Plugin:
    """Return a plugin each tool of which has its wire name."""
    if all(tool.wire for tool in plugin.tools):
        return plugin
    tools = (tool if tool.wire else replace(tool, wire=_wire_of(plugin, tool.name)) for tool in plugin.tools)
    return replace(plugin, tools=tuple(tools))


def _wire_of(plugin: Plugin, name: str) -> str:
    prefix = plugin.prefix if plugin.kind == "server" else (plugin.prefix or "")
    return wire_name(plugin.name, name, prefix=prefix)


def _names(tool: Tool) -> tuple[Name, ...]:
    return (tool.wire, (tool.id,)) if tool.id.count("/") > 1 else (tool.wire,)


def _aliases_of(tool: Tool) -> tuple[str, ...]:
    wire, own = tool.wire.casefold(), tool.name.casefold()
    return (wire,) if wire == own else (wire, own)


def _excluded(here: Plugin, whole: Plugin, changed: Plugin) -> Iterator[Tool]:
    """Yield what a plugin lacked before it changed, where its manifests still list it and it has none of that name."""
    known, names = set(map(id, here.tools)), {tool.name for tool in changed.tools}
    listed = {name for variant in changed.variants.values() for name in variant.tools or ()}
    yield from (t for t in whole.tools if id(t) not in known and t.name in listed and t.name not in names)
