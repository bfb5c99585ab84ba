"""May it? One fold over grants and denials, with the chain of reasons (P1, P2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pegboard.core.agents import Agent, WorkerScope, World
from pegboard.core.catalog import Ref, split_kind
from pegboard.core.loadouts import MergedLoadout, merge
from pegboard.core.patterns import matches_any
from pegboard.core.selectors import Entry, Member, entries, entry_of, find
from pegboard.core.toolkits import ISOLATING_SCOPES, Toolkit
from pegboard.core.tools import EMPTY, Place, Plugin, Tool


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
class Circumstances:
    """Hold what a session adds to its agent's profile.

    ``stored`` are the switches set at run time; ``parent`` is the access of the session that this
    one is a child of (P8).
    """

    stored: Mapping[str, bool] = field(default=EMPTY)
    sub_app: str | None = None
    worker_scope: WorkerScope | None = None
    parent: Access | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switches:
    """Hold effective booleans by what they name (P2)."""

    toolkits: Mapping[str, bool]
    plugins: Mapping[str, bool]
    tools: Mapping[str, bool]

    def own(self, tool: Tool) -> bool | None:
        """Return the tool's own boolean, or that of its plugin."""
        value = self.tools.get(tool.id)
        return self.plugins.get(tool.plugin) if value is None else value


class Access:
    """Answer "may it?" for one agent under given circumstances.

    Compiled once for a world; every answer is remembered. Nothing in it depends on what a session
    has loaded.
    """

    def __init__(self, world: World, agent: Agent, circumstances: Circumstances | None = None) -> None:
        self.world = world
        self.agent = agent
        self.circumstances = circumstances or Circumstances()
        self._decisions: dict[str, Decision] = {}

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
        names = dict.fromkeys((*self.agent.allowed_toolkits, *self.switched_on_toolkits))
        return {
            name: self.world.toolkits[name].entries(self.world.catalog) for name in names if name in self.world.toolkits
        }

    @cached_property
    def loadout(self) -> MergedLoadout | None:
        """Return the agent's loadout with what it inherits."""
        name = self.agent.loadout
        return merge(name, self.world.loadouts) if name is not None else None

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
    def effective(self) -> Mapping[str, bool]:
        """Return every switch in force by its written name; a stored one replaces the file's."""
        return {**self.agent.switches, **self.circumstances.stored}

    @cached_property
    def _switches(self) -> _Switches:
        kinds: dict[str, dict[str, bool]] = {"toolkit": {}, "plugin": {}, "tool": {}}
        for name, value in self.effective.items():
            ref = self._switch_ref(name)
            if ref is not None and ref.kind in kinds:
                kinds[ref.kind][ref.name] = value
        return _Switches(toolkits=kinds["toolkit"], plugins=kinds["plugin"], tools=kinds["tool"])

    def _switch_ref(self, name: str) -> Ref | None:
        kind, bare = split_kind(name)
        if kind in (None, "toolkit") and bare in self.world.toolkits:
            return Ref("toolkit", bare)
        return find(name, self.world.catalog)

    @property
    def switched_on_toolkits(self) -> tuple[str, ...]:
        """Return the toolkits whose switch is true."""
        return tuple(name for name, on in self._switches.toolkits.items() if on)

    @cached_property
    def _switched_members(self) -> Mapping[str, tuple[tuple[str, bool], ...]]:
        """Return for every tool id the switched toolkits that contain it."""
        found: dict[str, list[tuple[str, bool]]] = {}
        for name, value in self._switches.toolkits.items():
            for entry in self.world.toolkits[name].entries(self.world.catalog):
                for tool_id in entry.ids:
                    found.setdefault(tool_id, []).append((name, value))
        return {tool_id: tuple(pairs) for tool_id, pairs in found.items()}

    def switch_place(self, name: str) -> Place | None:
        """Return where a switch stands, unless it was set at run time."""
        return None if name in self.circumstances.stored else self.agent.switch_places.get(name)

    # -- the fold ------------------------------------------------------------------------------

    def permits(self, tool: Tool) -> bool:
        """Return whether the agent may use the tool."""
        return self.decide(tool).permitted

    def decide(self, tool: Tool) -> Decision:
        """Return whether the agent may use the tool, and why (P1)."""
        alike = tool.default_on and tool.plugin not in self._singular
        key = tool.plugin if alike else tool.id
        known = self._decisions.get(key)
        if known is None:
            known = self._decisions[key] = self._fold(tool)
        return known

    @cached_property
    def _singular(self) -> frozenset[str]:
        """Return the plugins whose tools need not all be decided alike."""
        catalog = self.world.catalog
        if self.circumstances.parent is not None:
            return frozenset(catalog.plugins)
        by_id = (catalog.by_id(i) for i in (*self._switches.tools, *self._switched_members))
        partly = (
            plugin
            for plugin, held in self._all_entries.items()
            if any(len(entry.ids) != len(catalog.plugins[plugin].tools) for entry in held)
        )
        return frozenset((*partly, *(tool.plugin for tool in by_id if tool is not None)))

    def _fold(self, tool: Tool) -> Decision:
        plugin = self.world.catalog.plugins[tool.plugin]
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
        for toolkit, on in self._switched_members.get(tool.id, ()):
            if on:
                return self._switch_reason("granted_switch", toolkit, "toolkit", value=True)
        if self._switches.own(tool):
            kind = "tool" if self._switches.tools.get(tool.id) else "plugin"
            return self._switch_reason("granted_switch", self._own_name(tool), kind, value=True)
        return None

    def _denials(self, tool: Tool, plugin: Plugin) -> Iterator[Reason]:
        yield from self._switched_off(tool)
        link = self.loadout.disables(plugin.name) if self.loadout is not None else None
        if link is not None:
            text = f"Loadout '{link}' disables plugin '{plugin.name}'."
            yield Reason(code="denied_loadout", text=text, where=self._loadout_place(link))
        if plugin.shared_only and self.isolating:
            text = f"Plugin '{plugin.name}' works only where it is shared, not with {self.scope_label}."
            yield Reason(code="denied_scope", text=text, where=self.agent.place)
        filtering = [e for e in self._entries_naming(tool) if tool.id not in e.ids]
        if filtering and len(filtering) == sum(1 for _ in self._entries_naming(tool)):
            text = "Every entry that names its plugin leaves it out (include_tools, exclude_tools)."
            yield Reason(code="denied_filter", text=text, where=filtering[0].member.place)

    def _switched_off(self, tool: Tool) -> Iterator[Reason]:
        bundles = self._switched_members.get(tool.id, ())
        off = [toolkit for toolkit, on in bundles if not on]
        own = self._switches.own(tool)
        for toolkit in off:
            yield self._switch_reason("denied_switch", toolkit, "toolkit", value=False)
        if off:
            return
        if own is False:
            kind = "tool" if tool.id in self._switches.tools else "plugin"
            yield self._switch_reason("denied_switch", self._own_name(tool), kind, value=False)
        elif own is None and not bundles and not self._default_on(tool):
            yield Reason(code="denied_default", text="It is off until it is switched on (default_on).")

    def _default_on(self, tool: Tool) -> bool:
        return tool.default_on and self.world.catalog.plugins[tool.plugin].default_on

    # -- where a tool stands -------------------------------------------------------------------

    def _entries_naming(self, tool: Tool) -> Iterator[Entry]:
        for entry in self._all_entries.get(tool.plugin, ()):
            if tool.id in entry.names:
                yield entry

    @cached_property
    def _all_entries(self) -> Mapping[str, tuple[Entry, ...]]:
        """Return by plugin every entry of the agent, the ones that count first in front."""
        found: dict[str, list[Entry]] = {}
        groups = (self.essential, self.static, *self.toolkits.values())
        for group in groups:
            for entry in group:
                found.setdefault(entry.plugin, []).append(entry)
        return {plugin: tuple(items) for plugin, items in found.items()}

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
        return entry_of(self.world.catalog.plugins[plugin], Member(name=plugin))

    def may_load_toolkit(self, name: str) -> bool:
        """Return whether the toolkit is allowed or switched on, and not switched off."""
        if self._switches.toolkits.get(name) is False:
            return False
        return name in self.world.toolkits and (
            name in self.agent.allowed_toolkits or self._switches.toolkits.get(name) is True
        )

    def toolkit(self, name: str) -> Toolkit:
        """Return the toolkit as it is defined."""
        return self.world.toolkits[name]

    def switched_on(self) -> Iterator[Tool]:
        """Yield every tool that a switch set to true names, toolkits first."""
        catalog = self.world.catalog
        for name in self.switched_on_toolkits:
            for entry in self.world.toolkits[name].entries(catalog):
                yield from entry.tools
        for plugin, on in self._switches.plugins.items():
            yield from catalog.plugins[plugin].tools if on else ()
        for tool_id, on in self._switches.tools.items():
            tool = catalog.by_id(tool_id) if on else None
            if tool is not None:
                yield tool

    @cached_property
    def plugins_out(self) -> frozenset[str]:
        """Return the plugins that an entry puts out whole from the start."""
        initial = (self.toolkits.get(name, ()) for name in self.agent.initial_toolkits)
        groups = (self.essential, self.static, *initial)
        return frozenset(entry.plugin for group in groups for entry in group if entry.whole)

    def may_hold(self, plugin: Plugin) -> bool:
        """Return whether something grants the plugin or a part of it, seen or not seen yet."""
        if any(self.permits(tool) for tool in plugin.tools):
            return True
        return not plugin.tools and self.grants_unseen(plugin)

    def scope_only(self, plugin: Plugin) -> bool:
        """Return whether only the scope stands between the agent and a plugin (P5)."""
        if not (plugin.shared_only and self.isolating):
            return False
        probe = plugin.tools[0] if plugin.tools else Tool(plugin=plugin.name, name="")
        denials = [reason.code for reason in self._denials(probe, plugin)]
        granted = plugin.name in self._all_entries or any(True for _ in self._plugin_grants(plugin))
        return denials == ["denied_scope"] and granted

    def grants_unseen(self, plugin: Plugin) -> bool:
        """Return whether a plugin whose tools are not known yet would be granted and not denied."""
        probe = Tool(plugin=plugin.name, name="")
        if any(True for _ in self._denials(probe, plugin)):
            return False
        named = plugin.name in self._all_entries or self._switches.plugins.get(plugin.name) is True
        return named or any(True for _ in self._plugin_grants(plugin))

    @cached_property
    def permitted(self) -> tuple[Tool, ...]:
        """Return every permitted tool, in the order of the catalog; the same object every time."""
        return tuple(tool for tool in self.world.catalog if self.permits(tool))

    def _loadout_place(self, link: str) -> Place | None:
        found = self.world.loadouts.get(link.casefold())
        return found.place if found is not None else None

    def _own_name(self, tool: Tool) -> str:
        """Return the written name of the switch that is the tool's own, or its plugin's."""
        wanted = Ref("tool", tool.id) if tool.id in self._switches.tools else Ref("plugin", tool.plugin)
        return next((n for n in self.effective if self._switch_ref(n) == wanted), tool.plugin)

    def _switch_reason(self, code: str, name: str, kind: str, *, value: bool) -> Reason:
        state = "on" if value else "off"
        how = " at run time" if name in self.circumstances.stored else ""
        text = f"The {kind} '{name}' is switched {state}{how} for agent '{self.agent.name}'."
        return Reason(code=code, text=text, where=self.switch_place(name))


def _grant(code: str, text: str, entry: Entry) -> Reason:
    return Reason(code=f"granted_{code}", text=text, where=entry.member.place)
