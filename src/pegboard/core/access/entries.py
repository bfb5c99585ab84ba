"""What an agent names: its lists of tools and its toolkits, looked up in the catalog (T1, T9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from pegboard.core.access.switches import Switches, ToolkitEntries
from pegboard.core.model.agents import Agent
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.selectors import Entry, Member, entries, entry_of, find
from pegboard.core.model.tools import Tool


class AgentEntries:
    """The entries of one agent in a world: essential and static tools, toolkits, and what each is looked up for."""

    def __init__(
        self, looked_up: ToolkitEntries, agent: Agent, switches: Switches, *, sub_app: str | None = None
    ) -> None:
        self.looked_up = looked_up
        self._world = world = looked_up.world
        self._agent = agent
        self._switches = switches
        self._sub_app: tuple[Member, ...] = world.sub_apps.get(sub_app or "", ())
        self._plain: dict[str, Entry] = {}

    @cached_property
    def essential(self) -> tuple[Entry, ...]:
        """Return the entries of the essential tools."""
        return tuple(entries(self._agent.essential, self._world.catalog))

    @cached_property
    def static(self) -> tuple[Entry, ...]:
        """Return the entries of the static tools, those of the session's sub-app after them (T9)."""
        return tuple(entries((*self._agent.static, *self._sub_app), self._world.catalog))

    @cached_property
    def toolkits(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return the entries of every toolkit that is allowed or switched on, in the agent's order."""
        names = dict.fromkeys((*self._agent.allowed_toolkits, *self._switches.toolkits_on))
        known = self._world.toolkits
        return {name: self.looked_up.entries_of_toolkit(name) for name in names if name in known}

    def may_load(self, toolkit: str) -> bool:
        """Return whether a toolkit is allowed or switched on, and not switched off; the agent is not paused."""
        if self._switches.pauses.agent:
            return False
        switch = self._switches.toolkits.get(toolkit)
        allowed = toolkit in self._agent.allowed_toolkits if switch is None else switch.on
        return allowed and toolkit in self._world.toolkits

    @cached_property
    def loadable_toolkits(self) -> tuple[str, ...]:
        """Return the toolkits that the agent may load, in its order."""
        return tuple(name for name in self.toolkits if self.may_load(name))

    @cached_property
    def by_plugin(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return by plugin every entry of the agent, those that take precedence first."""
        return _by_plugin((self.essential, self.static, *(self.toolkits[name] for name in self.loadable_toolkits)))

    @cached_property
    def filters(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return by plugin every entry that determines which of its functions exist for the agent.

        A toolkit that is switched off is among them: switching it off must not undo its filters.
        """
        off = (name for name in self._switches.toolkits if name not in self.toolkits)
        others = (self.looked_up.entries_of_toolkit(name) for name in off)
        return _by_plugin((self.essential, self.static, *self.toolkits.values(), *others))

    def of_tool(self, tool: Tool) -> Entry:
        """Return the entry under whose overrides a tool runs that is loaded by its own name."""
        for entry in self.by_plugin.get(tool.plugin, ()):
            if tool.id in entry.ids:
                return entry
        return self.of_plugin(tool.plugin)

    def of_plugin(self, plugin: str) -> Entry:
        """Return the entry under whose overrides a plugin runs that is loaded by its own name."""
        for entry in self.by_plugin.get(plugin, ()):
            if entry.whole:
                return entry
        known = self._plain.get(plugin)
        if known is None:
            known = self._plain[plugin] = entry_of(self._world.catalog.plugins[plugin], Member(name=plugin))
        return known

    @cached_property
    def plugins_from_start(self) -> frozenset[str]:
        """Return the plugins that an entry loads as a whole from the start."""
        initial = (self.toolkits.get(name, ()) for name in self._agent.initial_toolkits)
        groups = (self.essential, self.static, *initial)
        return frozenset(entry.plugin for group in groups for entry in group if entry.whole)

    @cached_property
    def unresolved(self) -> bool:
        """Return whether the agent names something unknown: a tool of a plugin that was not asked yet, perhaps."""
        members = chain(self._agent.essential, self._agent.static, self._sub_app, self._toolkit_members())
        return self._switches.unresolved or any(find(item.name, self._world.catalog) is None for item in members)

    @cached_property
    def unresolved_from_start(self) -> Mapping[str, tuple[str, ...]]:
        """Return by plugin the names of tools that are to be loaded from the start and are not known (yet)."""
        world, found = self._world, dict[str, list[str]]()
        initial = (world.toolkits[name].members for name in self._agent.initial_toolkits if name in world.toolkits)
        for item in chain(self._agent.essential, self._agent.static, self._sub_app, *initial):
            bare = split_kind(item.name)[1]
            for mark in ("/", "__"):
                head, _, tool = bare.partition(mark)
                plugin = world.catalog.headed(head) if tool else None
                if plugin is not None and find(item.name, world.catalog) is None:
                    found.setdefault(plugin.name, []).append(tool)
        return {plugin: tuple(tools) for plugin, tools in found.items()}

    def _toolkit_members(self) -> Iterator[Member]:
        return chain.from_iterable(self._world.toolkits[name].members for name in self.loadable_toolkits)


def entries_of_tool(group: Iterable[Entry], tool: Tool) -> Iterator[Entry]:
    """Yield the entries of a group that contain a tool."""
    return (entry for entry in group if tool.id in entry.ids)


def _by_plugin(groups: Iterable[tuple[Entry, ...]]) -> Mapping[str, tuple[Entry, ...]]:
    found: dict[str, list[Entry]] = {}
    for group in groups:
        for entry in group:
            found.setdefault(entry.plugin, []).append(entry)
    return {plugin: tuple(items) for plugin, items in found.items()}
