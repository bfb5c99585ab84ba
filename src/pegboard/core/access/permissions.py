"""May it? One fold over grants and denials, with the chain of reasons (P1, P2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from pegboard.core.access.derived import Derived
from pegboard.core.access.switches import Switch, Switches
from pegboard.core.model.agents import Agent, WorkerScope, World
from pegboard.core.model.loadouts import MergedLoadout, matches_any, merge
from pegboard.core.model.selectors import Entry, Member, entries, entry_of, find
from pegboard.core.model.toolkits import ISOLATING_SCOPES, Toolkit
from pegboard.core.model.tools import EMPTY, Plugin, Tool
from pegboard.problems import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Say one thing that speaks for or against a tool: a stable code, a sentence, a place."""

    code: str
    text: str
    where: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Hold whether a tool is permitted, and everything that spoke for and against it (P1).

    The first reason is the one that decided.
    """

    permitted: bool
    reasons: tuple[Reason, ...]

    @property
    def code(self) -> str:
        """Return the code of the reason that decided."""
        return self.reasons[0].code


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConstraints:
    """Hold what a session adds to its agent's profile.

    ``stored`` are the switches set at run time; ``parent`` is the access of the session that this
    one is a child of (P8), in which ``narrowed`` is that session's active loadout. ``everything``
    puts all that is permitted out from the start, where a host's cache makes that cheapest (F4).
    """

    stored: Mapping[str, bool] = field(default=EMPTY)
    sub_app: str | None = None
    worker_scope: WorkerScope | None = None
    narrowed: str | None = None
    everything: bool = False
    parent: CompiledPermissions | None = None


class CompiledPermissions:
    """Answer "may it?" for one agent under given circumstances.

    Compiled once for a world; every answer is remembered. Nothing in it depends on what a session
    has loaded.
    """

    def __init__(self, world: World, agent: Agent, circumstances: SessionConstraints | None = None) -> None:
        self.world = world
        self.agent = agent
        self.circumstances = circumstances or SessionConstraints()
        self._decisions: dict[Hashable, Decision] = {}
        self._plain_entries: dict[str, Entry] = {}
        self.derived: Derived = {}

    # -- what the agent names ------------------------------------------------------------------

    @cached_property
    def essential(self) -> tuple[Entry, ...]:
        """Return the entries of the essential tools."""
        return tuple(entries(self.agent.essential, self.world.catalog))

    @cached_property
    def static(self) -> tuple[Entry, ...]:
        """Return the entries of the static tools, those of the session's sub-app after them (T9)."""
        extra = self.world.sub_apps.get(self.circumstances.sub_app or "", ())
        return tuple(entries((*self.agent.static, *extra), self.world.catalog))

    @cached_property
    def toolkits(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return the entries of every toolkit that the agent may load, in its order."""
        names = dict.fromkeys((*self.agent.allowed_toolkits, *self.switches.toolkits_on))
        return {
            name: self.world.toolkits[name].entries(self.world.catalog) for name in names if name in self.world.toolkits
        }

    @cached_property
    def loadout(self) -> MergedLoadout | None:
        """Return the agent's loadout with what it inherits."""
        name = self.agent.loadout
        return merge(name, self.world.loadouts) if name is not None else None

    @cached_property
    def _narrowed(self) -> MergedLoadout | None:
        name = self.circumstances.narrowed
        return merge(name, self.world.loadouts) if name is not None else None

    def _survives_loadout(self, tool: Tool, plugin: Plugin, narrowed: MergedLoadout) -> bool:
        """Return whether an active loadout leaves a tool to the session's children: active or essential (L7)."""
        held = (e for e in self.essential if e.plugin == plugin.name and (tool.id in e.ids or not tool.name))
        return narrowed.includes(plugin.name, plugin.category) is not None or any(True for _ in held)

    @property
    def isolating(self) -> bool:
        """Return whether shared-only plugins are out of reach (P5)."""
        return self.agent.isolating or self.circumstances.worker_scope in ISOLATING_SCOPES

    @property
    def scope_label(self) -> str:
        """Return the scope in force, as it is said to people."""
        narrowed = self.circumstances.worker_scope
        if narrowed in ISOLATING_SCOPES:
            return f"worker_scope={narrowed}"
        if self.agent.worker_scope in ISOLATING_SCOPES:
            return f"worker_scope={self.agent.worker_scope}"
        if self.agent.private_per is not None:
            return f"private.per={self.agent.private_per}"
        return f"worker_scope={narrowed or self.agent.worker_scope}"

    # -- switches ------------------------------------------------------------------------------

    @cached_property
    def switches(self) -> Switches:
        """Return the switches in force; a stored one replaces the file's."""
        return Switches(self.world, self.agent, self.circumstances.stored)

    @property
    def effective(self) -> Mapping[str, bool]:
        """Return every switch in force by its written name."""
        return self.switches.effective

    # -- the fold ------------------------------------------------------------------------------

    def permits(self, tool: Tool) -> bool:
        """Return whether the agent may use the tool."""
        return self.decide(tool).permitted

    def decide(self, tool: Tool) -> Decision:
        """Return whether the agent may use the tool, and why (P1)."""
        key = self._cache_key(tool)
        known = self._decisions.get(key)
        if known is None:
            known = self._decisions[key] = self._decide(tool)
        return known

    def _cache_key(self, tool: Tool) -> Hashable:
        """Return a key that is equal only for tools which are decided alike, for the same reasons."""
        own: Hashable = (tool.plugin, tool.default_on)
        if tool.plugin in self._mixed_plugins:
            tool_id = tool.id
            naming = self._naming.get(tool.plugin, ())
            stands = tuple((tool_id in entry.names, tool_id in entry.ids) for entry in naming) if naming else ()
            own = tool_id if tool_id in self.switches.tools else (own, stands)
        parent = self.circumstances.parent
        return own if parent is None else (own, parent._cache_key(tool))  # noqa: SLF001 - the same class

    @cached_property
    def _mixed_plugins(self) -> frozenset[str]:
        """Return the plugins whose tools need not all be decided alike."""
        catalog = self.world.catalog
        by_id = (catalog.by_id(i) for i in (*self.switches.tools, *self.switches.members))
        partly = (
            plugin
            for plugin, held in self._naming.items()
            if any(len(entry.ids) != len(catalog.plugins[plugin].tools) for entry in held)
        )
        return frozenset((*partly, *(tool.plugin for tool in by_id if tool is not None)))

    def _decide(self, tool: Tool) -> Decision:
        plugin = self.world.catalog.plugins.get(tool.plugin)
        if plugin is None:
            return Decision(permitted=False, reasons=(Reason(code="unknown", text="It is not in the catalog."),))
        grants = tuple(self._grants(tool, plugin))
        denials = tuple(self._denials(tool, plugin))
        if not grants:
            nothing = Reason(
                code="not_granted",
                text=f"Nothing grants it to agent '{self.agent.name}'.",
                where=self.agent.place,
            )
            return Decision(permitted=False, reasons=(*denials, nothing))
        if denials:
            return Decision(permitted=False, reasons=(*denials, *grants))
        parent = self.circumstances.parent
        if parent is not None and not parent.permits(tool):
            reason = Reason(code="denied_parent", text="The parent session may not use it.")
            return Decision(permitted=False, reasons=(reason, *grants))
        return Decision(permitted=True, reasons=grants)

    def _grants(self, tool: Tool, plugin: Plugin) -> Iterator[Reason]:
        name = self.agent.name
        for entry in self._holding(self.essential, tool):
            yield _grant("essential", f"It is an essential tool of agent '{name}'.", entry)
        for entry in self._holding(self.static, tool):
            yield _grant("static", f"It is a static tool of agent '{name}'.", entry)
        for toolkit in self.agent.allowed_toolkits:
            for entry in self._holding(self.toolkits.get(toolkit, ()), tool):
                yield _grant("toolkit", f"Toolkit '{toolkit}' is allowed.", entry)
        yield from self._plugin_grants(plugin)
        if (why := self._switched_on(tool)) is not None:
            yield why

    def _plugin_grants(self, plugin: Plugin) -> Iterator[Reason]:
        loadout = self.loadout
        if loadout is not None:
            link = loadout.includes(plugin.name, plugin.category)
            pattern = loadout.discovers(plugin.name, plugin.category)
            if link is not None:
                text = f"Loadout '{loadout.name}' makes it active (by '{link}')."
                yield Reason(code="granted_loadout", text=text, where=self._loadout_place(link))
            elif pattern is not None:
                text = f"Loadout '{loadout.name}' makes it discoverable (pattern '{pattern}')."
                yield Reason(code="granted_discoverable", text=text)
        pattern = matches_any(self.agent.discoverable, plugin.name)
        if pattern is not None:
            text = f"It is discoverable (pattern '{pattern}')."
            yield Reason(code="granted_discoverable", text=text, where=self.agent.place)

    def _switched_on(self, tool: Tool) -> Reason | None:
        own = self.switches.own(tool)
        on = next((switch for switch in (*self.switches.bundles(tool), own) if switch is not None and switch.on), None)
        return None if on is None else self._switch_reason("granted_switch", on)

    def _denials(self, tool: Tool, plugin: Plugin) -> Iterator[Reason]:
        yield from self._switched_off(tool)
        link = self.loadout.disables(plugin.name) if self.loadout is not None else None
        if link is not None:
            text = f"Loadout '{link}' disables plugin '{plugin.name}'."
            yield Reason(code="denied_loadout", text=text, where=self._loadout_place(link))
        if self._narrowed is not None and not self._survives_loadout(tool, plugin, self._narrowed):
            text = f"Loadout '{self._narrowed.name}' is active and leaves plugin '{plugin.name}' out."
            yield Reason(code="narrowed_loadout", text=text)
        if plugin.shared_only and self.isolating:
            text = f"Plugin '{plugin.name}' works only where it is shared, not with {self.scope_label}."
            yield Reason(code="denied_scope", text=text, where=self.agent.place)
        naming = [entry for entry in self._naming.get(tool.plugin, ()) if tool.id in entry.names]
        if naming and not any(tool.id in entry.ids for entry in naming):
            text = "Every entry that names its plugin leaves it out (include_tools, exclude_tools)."
            yield Reason(code="denied_filter", text=text, where=naming[0].member.place)

    def _switched_off(self, tool: Tool) -> Iterator[Reason]:
        bundles = self.switches.bundles(tool)
        off = [switch for switch in bundles if not switch.on]
        own = self.switches.own(tool)
        if off:
            yield from (self._switch_reason("denied_switch", switch) for switch in off)
        elif own is not None and not own.on:
            yield self._switch_reason("denied_switch", own)
        elif own is None and not bundles and not self._default_on(tool):
            yield Reason(code="denied_default", text="It is off until it is switched on (default_on).")

    def _default_on(self, tool: Tool) -> bool:
        return tool.default_on and self.world.catalog.plugins[tool.plugin].default_on

    # -- where a tool stands -------------------------------------------------------------------

    @cached_property
    def _all_entries(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return by plugin every entry of the agent, the ones that count first in front."""
        loadable = (held for name, held in self.toolkits.items() if self.may_load_toolkit(name))
        return _by_plugin((self.essential, self.static, *loadable))

    @cached_property
    def _naming(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return by plugin every entry that says which of its functions there are.

        A toolkit that is switched off is among them: switching it off must not undo its filters.
        """
        world = self.world
        off = (name for name in self.switches.toolkits if name not in self.toolkits)
        others = (world.toolkits[name].entries(world.catalog) for name in off)
        return _by_plugin((self.essential, self.static, *self.toolkits.values(), *others))

    @staticmethod
    def _holding(group: tuple[Entry, ...], tool: Tool) -> Iterator[Entry]:
        return (entry for entry in group if tool.id in entry.ids)

    def entry_for(self, tool: Tool) -> Entry:
        """Return the entry under whose overrides a tool runs that is loaded by its own name."""
        for entry in self._all_entries.get(tool.plugin, ()):
            if tool.id in entry.ids:
                return entry
        return self.plugin_entry(tool.plugin)

    def plugin_entry(self, plugin: str) -> Entry:
        """Return the entry under whose overrides a plugin runs that is loaded by its own name."""
        for entry in self._all_entries.get(plugin, ()):
            if entry.whole:
                return entry
        known = self._plain_entries.get(plugin)
        if known is None:
            known = entry_of(self.world.catalog.plugins[plugin], Member(name=plugin))
            self._plain_entries[plugin] = known
        return known

    def may_load_toolkit(self, name: str) -> bool:
        """Return whether the toolkit is allowed or switched on, and not switched off."""
        switch = self.switches.toolkits.get(name)
        allowed = name in self.agent.allowed_toolkits if switch is None else switch.on
        return allowed and name in self.world.toolkits

    def toolkit(self, name: str) -> Toolkit:
        """Return the toolkit as it is defined."""
        return self.world.toolkits[name]

    def switched_on(self) -> Iterator[Tool]:
        """Yield every tool that a switch set to true names, toolkits first."""
        return self.switches.named_on()

    @cached_property
    def plugins_out(self) -> frozenset[str]:
        """Return the plugins that an entry puts out whole from the start."""
        initial = (self.toolkits.get(name, ()) for name in self.agent.initial_toolkits)
        groups = (self.essential, self.static, *initial)
        return frozenset(entry.plugin for group in groups for entry in group if entry.whole)

    def may_have_tools_of(self, plugin: Plugin) -> bool:
        """Return whether something grants the plugin or a part of it, seen or not seen yet."""
        if any(self.permits(tool) for tool in plugin.tools):
            return True
        return not plugin.tools and self.grants_unseen(plugin)

    def scope_only(self, plugin: Plugin) -> bool:
        """Return whether only the scope stands between the agent and some of a plugin (P5)."""
        if not (plugin.shared_only and self.isolating):
            return False
        if plugin.tools:
            return any(self.scope_alone(tool) for tool in plugin.tools)
        probe = Tool(plugin=plugin.name, name="")
        return [r.code for r in self._denials(probe, plugin)] == ["denied_scope"] and self._names_whole(plugin)

    def scope_alone(self, tool: Tool) -> bool:
        """Return whether only the scope stands between the agent and a tool (P5)."""
        decision = self.decide(tool)
        denials = [r.code for r in decision.reasons if not r.code.startswith("granted_")]
        parent = self.circumstances.parent
        return denials == ["denied_scope"] and (parent is None or parent.permits(tool) or parent.scope_alone(tool))

    def grants_unseen(self, plugin: Plugin) -> bool:
        """Return whether a plugin whose tools are not known yet would be granted and not denied."""
        parent = self.circumstances.parent
        if parent is not None and not parent.grants_unseen(plugin):
            return False
        probe = Tool(plugin=plugin.name, name="")
        return self._names_whole(plugin) and not any(True for _ in self._denials(probe, plugin))

    def _names_whole(self, plugin: Plugin) -> bool:
        """Return whether something names the plugin, seen or not, or a pattern matches it."""
        switch = self.switches.plugins.get(plugin.name)
        named = plugin.name in self._all_entries or (switch is not None and switch.on)
        return named or any(True for _ in self._plugin_grants(plugin))

    @cached_property
    def unresolved(self) -> bool:
        """Return whether the agent names something unknown: a tool of a plugin that was not asked yet, perhaps."""
        catalog = self.world.catalog
        sub_app = self.world.sub_apps.get(self.circumstances.sub_app or "", ())
        held = (self.world.toolkits[name].members for name in self.toolkits if self.may_load_toolkit(name))
        members = chain(self.agent.essential, self.agent.static, sub_app, *held)
        return self.switches.unresolved or any(find(item.name, catalog) is None for item in members)

    @cached_property
    def permitted(self) -> tuple[Tool, ...]:
        """Return every permitted tool, in the order of the catalog; the same object every time."""
        return tuple(tool for tool in self.world.catalog if self.permits(tool))

    def _loadout_place(self, link: str) -> Place | None:
        found = self.world.loadouts.get(link.casefold())
        return found.place if found is not None else None

    def _switch_reason(self, code: str, switch: Switch) -> Reason:
        state = "on" if switch.on else "off"
        how = " at run time" if switch.at_run_time else ""
        text = f"The {switch.subject.kind} '{switch.name}' is switched {state}{how} for agent '{self.agent.name}'."
        return Reason(code=code, text=text, where=switch.place)


def _by_plugin(groups: Iterable[tuple[Entry, ...]]) -> Mapping[str, tuple[Entry, ...]]:
    found: dict[str, list[Entry]] = {}
    for group in groups:
        for entry in group:
            found.setdefault(entry.plugin, []).append(entry)
    return {plugin: tuple(items) for plugin, items in found.items()}


def _grant(code: str, text: str, entry: Entry) -> Reason:
    return Reason(code=f"granted_{code}", text=text, where=entry.member.place)
