"""May it? Everything that an agent is permitted, compiled once for a world (P1, P2)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import chain
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from pegboard.core.access.decisions import Decision, DecisionInputs, Decisions, Reason
from pegboard.core.access.entries import AgentEntries
from pegboard.core.access.switches import NOTHING_PAUSED, Derived, Pauses, Switches, ToolkitEntries
from pegboard.core.model.agents import Agent, Scope, WorkerScope, World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import MergedLoadout, merge
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import EMPTY, Plugin, Tool

LOCAL: Final = "local"
"""The principal of whoever started the process: connections that describe a server are its own."""

P = ParamSpec("P")
T = TypeVar("T")


class KeepsDerived(Protocol):
    """A value that never changes and keeps what was derived from it."""

    @property
    def derived(self) -> Derived:
        """Return what was computed so far, by function and further arguments."""
        ...


S = TypeVar("S", bound=KeepsDerived)


def once_per_permissions(compute: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Return a function that computes its value once per permissions and further arguments.

    They are all positional and hashable. The values go with the permissions: when the world or a switch changes.
    """

    @wraps(compute)
    def compute_once(permissions: S, *key: Any) -> T:
        kept = permissions.derived
        try:
            return cast("T", kept[compute, *key])
        except KeyError:
            value = kept[compute, *key] = cast("Any", compute)(permissions, *key)
            return value

    return cast("Callable[Concatenate[S, P], T]", compute_once)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConstraints:
    """What a session adds to its agent's profile.

    ``stored`` are the switches set at run time, ``personal`` those for its principal or a child alone,
    ``pauses`` what an operator has paused; ``parent`` are the permissions of the session that this one is a child of
    (P8), in which ``narrowed`` is that session's active loadout. With
    ``everything``, all that is permitted is loaded from the start, where a host's cache makes that
    cheapest (F4); with ``draws_ui``, every tool with a user interface, where the host draws it (G4).
    ``most_at_start`` is how many tools are loaded from the start where a provider takes no longer list (D4); None is
    any number. The model may load the others.
    """

    stored: Mapping[str, bool] = field(default=EMPTY)
    personal: Mapping[str, bool] = field(default=EMPTY)
    pauses: Pauses = NOTHING_PAUSED
    sub_app: str | None = None
    worker_scope: WorkerScope | None = None
    narrowed: str | None = None
    everything: bool = False
    draws_ui: bool = False
    most_at_start: int | None = None
    parent: CompiledPermissions | None = None


class CompiledPermissions:
    """The permissions of one agent in a world, under the constraints of a session.

    Its parts: ``entries`` is what the agent names, toolkits among it; ``decisions`` is the fold over grants and
    denials; ``switches`` and ``scope`` are those in force; whole plugins, seen or not, have a part of their own.
    Nothing depends on what a session has loaded. ``faults`` are the reasons why tools cannot run now for a session, as
    predicates say (T12). What others compute once from it is kept in ``derived``, by :func:`once_per_permissions`.
    ``before`` are the permissions of the same agent and constraints in another world or with other switches, from which
    is taken over what cannot have changed; ``looked_up`` are the toolkits of the world, as other permissions of it have
    looked them up.
    """

    def __init__(
        self,
        world: World,
        agent: Agent,
        constraints: SessionConstraints | None = None,
        *,
        before: CompiledPermissions | None = None,
        looked_up: ToolkitEntries | None = None,
    ) -> None:
        self.world = world
        self.agent = agent
        self.constraints = constraints = constraints or SessionConstraints()
        parent = constraints.parent
        self.scope = Scope(agent=agent, narrowed=constraints.worker_scope)
        self.isolating = self.scope.isolating
        self.budgeted = bool(agent.budget)
        if looked_up is None or looked_up.world is not world:
            same = before is not None and before.world is world
            looked_up = before.entries.looked_up if before is not None and same else ToolkitEntries(world)
        self.switches = Switches(
            looked_up,
            agent,
            constraints.stored,
            personal=constraints.personal,
            pauses=constraints.pauses,
        )
        self.entries = AgentEntries(looked_up, agent, self.switches, sub_app=constraints.sub_app)
        given = DecisionInputs(
            world=world,
            agent=agent,
            entries=self.entries,
            switches=self.switches,
            scope=self.scope,
            narrowed=merge(constraints.narrowed, world.loadouts) if constraints.narrowed is not None else None,
            parent=parent.decisions if parent is not None else None,
        )
        self.decisions = Decisions(given)
        of_parent = parent.plugin_permissions if parent is not None else None
        self.plugin_permissions = PluginPermissions(given, self.decisions, of_parent)
        self.faults: Mapping[str, str] = EMPTY
        self.derived: Derived = {}
        if before is not None and self._may_carry_over(before):
            changed = self._changed_since(before)
            self.decisions.carry_over(before.decisions, changed)
            self.plugin_permissions.carry_over(before.plugin_permissions, changed)

    def _may_carry_over(self, before: CompiledPermissions) -> bool:
        """Return whether both are decided alike where neither names a plugin, and it has not changed."""
        mine, theirs = self.constraints, before.constraints
        return (
            self.agent == before.agent
            and self.world.loadouts is before.world.loadouts
            and mine.parent is theirs.parent is None
            and mine.pauses.agent is theirs.pauses.agent
            and (mine.worker_scope, mine.narrowed) == (theirs.worker_scope, theirs.narrowed)
        )

    def _changed_since(self, before: CompiledPermissions) -> frozenset[str]:
        """Return the plugins that are others now, and those of which an entry or a switch speaks, before or now."""
        now, then = self.world.catalog.plugins, before.world.catalog.plugins
        others = (name for name, plugin in now.items() if then.get(name) is not plugin)
        paused = self.constraints.pauses.plugins ^ before.constraints.pauses.plugins
        return frozenset(
            (*others, *(then.keys() - now.keys()), *self._plugins_named(), *before._plugins_named(), *paused)
        )

    def _plugins_named(self) -> Iterator[str]:
        """Yield the plugins of which an entry or a switch speaks, or of a tool."""
        yield from self.entries.filters
        yield from self.switches.plugins
        switched = (self.world.catalog.by_id(tool_id) for tool_id in self.switches.tools)
        yield from (tool.plugin for tool in switched if tool is not None)

    def with_faults(self, faults: Mapping[str, str]) -> CompiledPermissions:
        """Return the same permissions where these tools, by their ids, cannot run now; availability permits nothing."""
        after = copy(self)
        after.faults, after.derived = faults, {}
        return after

    @property
    def loadout(self) -> MergedLoadout | None:
        """Return the agent's loadout with what it inherits."""
        return self.decisions.loadout

    def permits(self, tool: Tool) -> bool:
        """Return whether the agent may use the tool."""
        return self.decisions.decide(tool).permitted

    def decide(self, tool: Tool) -> Decision:
        """Return whether the agent may use the tool, and why (P1)."""
        return self.decisions.decide(tool)

    @cached_property
    def permitted(self) -> tuple[Tool, ...]:
        """Return every permitted tool, in the order of the catalog; the same object every time."""
        plugins = self.world.catalog.plugins.values()
        return tuple(chain.from_iterable(map(self.plugin_permissions.tools_of, plugins)))

    def may_load_toolkit(self, name: str) -> bool:
        """Return whether the toolkit is allowed or switched on, and not switched off."""
        return name in self.entries.loadable_toolkits

    def may_have_tools_of(self, plugin: Plugin) -> bool:
        """Return whether something grants the plugin or a part of it, seen or not seen yet."""
        return self.plugin_permissions.may_have_tools_of(plugin)

    def grants_unseen(self, plugin: Plugin) -> bool:
        """Return whether a plugin whose tools are not known yet would be granted and not denied."""
        return self.plugin_permissions.grants_unseen(plugin)

    def decide_unseen(self, plugin: Plugin) -> Decision:
        """Return whether a plugin whose tools are not known yet would be permitted, and why."""
        return self.plugin_permissions.decide_unseen(plugin)

    def scope_only(self, plugin: Plugin) -> bool:
        """Return whether only the scope stands between the agent and some of a plugin (P5)."""
        return self.plugin_permissions.scope_only(plugin)

    def scope_alone(self, tool: Tool) -> bool:
        """Return whether only the scope stands between the agent and a tool (P5)."""
        return self.plugin_permissions.scope_alone(tool)

    def out_of_scope(self, entries: Iterable[Entry]) -> tuple[str, ...]:
        """Return the plugins among these that work only where they are shared, where they are not (P5)."""
        if not self.isolating:
            return ()
        plugins = self.world.catalog.plugins
        return tuple(dict.fromkeys(entry.plugin for entry in entries if plugins[entry.plugin].shared_only))


def host_tools(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the host's own tools that the agent lists, in its order, without those that are switched off.

    A child that is cut to its parent has those of its parent only (P8); an agent that is paused has none.
    """
    if permissions.switches.pauses.agent:
        return ()
    off = {split_kind(name)[1] for name, on in permissions.switches.effective.items() if not on}
    parent = permissions.constraints.parent
    above = permissions.agent.host_tools if parent is None else host_tools(parent)
    return tuple(name for name in permissions.agent.host_tools if name not in off and name in above)


def delegates(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the agents that may work for this one under their own profiles (P8)."""
    parent = permissions.constraints.parent
    known = permissions.world.agents if parent is None else delegates(parent)
    return tuple(name for name in permissions.agent.may_delegate if name in known)


def tool_fault(permissions: CompiledPermissions, tool: Tool, key: str | None = None) -> str:
    """Return why a permitted tool cannot run now, or nothing.

    ``key`` has the overrides under which it runs; by default those under which it would be loaded by its own name.
    """
    fault = own_fault(permissions, tool)
    variants = permissions.world.catalog.plugins[tool.plugin].variants
    if fault or not any(variant.unavailable for variant in variants.values()):
        return fault
    variant = variants.get(permissions.entries.of_tool(tool).key if key is None else key)
    return variant.unavailable if variant is not None else ""


def own_fault(permissions: CompiledPermissions, tool: Tool) -> str:
    """Return why a tool cannot run although its plugin may, or nothing."""
    return tool.unavailable or permissions.faults.get(tool.id, "")


_SCOPE_ALONE = ["denied_scope"]


class PluginPermissions:
    """The permissions of plugins as a whole; one that was not asked for its tools yet is decided by a nameless tool."""

    def __init__(self, given: DecisionInputs, decisions: Decisions, parent: PluginPermissions | None) -> None:
        self._given = given
        self._decisions = decisions
        self._parent = parent
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._unseen: dict[str, bool] = {}

    def carry_over(self, before: PluginPermissions, changed: Container[str]) -> None:
        """Take over what was found before, but of plugins that have changed or are named otherwise."""
        self._tools = {name: tools for name, tools in before._tools.items() if name not in changed}
        self._unseen = {name: found for name, found in before._unseen.items() if name not in changed}

    def tools_of(self, plugin: Plugin) -> tuple[Tool, ...]:
        """Return the permitted tools of a plugin of the catalog; the same object until something changes for it."""
        known = self._tools.get(plugin.name)
        if known is None:
            known = self._tools[plugin.name] = self._decisions.permitted_of(plugin)
        return known

    def may_have_tools_of(self, plugin: Plugin) -> bool:
        """Return whether something grants the plugin or a part of it, seen or not seen yet."""
        return bool(self.tools_of(plugin)) if plugin.tools else self.grants_unseen(plugin)

    def grants_unseen(self, plugin: Plugin) -> bool:
        """Return whether a plugin whose tools are not known yet would be granted and not denied."""
        known = self._unseen.get(plugin.name)
        if known is None:
            of_parent = self._parent is None or self._parent.grants_unseen(plugin)
            known = of_parent and self._names_whole(plugin) and not self._denial_codes(plugin)
            self._unseen[plugin.name] = known
        return known

    def decide_unseen(self, plugin: Plugin) -> Decision:
        """Return whether a plugin whose tools are not known yet would be permitted, and why (P1)."""
        agent, denials = self._given.agent, tuple(self._decisions.denials(_placeholder_tool(plugin), plugin))
        named = self._given.entries.by_plugin.get(plugin.name, ())
        where = plugin.place or next((entry.member.place for entry in named), agent.place)
        text = f"Plugin '{plugin.name}' is granted to agent '{agent.name}'."
        granted = Reason(code="granted", text=text, where=where)
        if self.grants_unseen(plugin):
            return Decision(permitted=True, reasons=(granted,))
        if denials and self._names_whole(plugin):
            return Decision(permitted=False, reasons=(*denials, granted))
        text = f"Plugin '{plugin.name}' is not granted to agent '{agent.name}'."
        reason = Reason(code="not_granted", text=text, where=where)
        return Decision(permitted=False, reasons=denials or (reason,))

    def scope_only(self, plugin: Plugin) -> bool:
        """Return whether only the scope stands between the agent and some of a plugin (P5)."""
        if not (plugin.shared_only and self._given.scope.isolating):
            return False
        if plugin.tools:
            return any(self.scope_alone(tool) for tool in plugin.tools)
        return self._denial_codes(plugin) == _SCOPE_ALONE and self._names_whole(plugin)

    def scope_alone(self, tool: Tool) -> bool:
        """Return whether only the scope stands between the agent and a tool (P5)."""
        reasons = self._decisions.decide(tool).reasons
        denials = [reason.code for reason in reasons if not reason.code.startswith("granted_")]
        return denials == _SCOPE_ALONE and (self._parent is None or self._parent._allows_but_scope(tool))  # noqa: SLF001

    def _allows_but_scope(self, tool: Tool) -> bool:
        return self._decisions.permits(tool) or self.scope_alone(tool)

    def _denial_codes(self, plugin: Plugin) -> Sequence[str]:
        return [reason.code for reason in self._decisions.denials(_placeholder_tool(plugin), plugin)]

    def _names_whole(self, plugin: Plugin) -> bool:
        """Return whether an entry or a switch names the plugin, or a loadout or pattern grants it."""
        switch = self._given.switches.plugins.get(plugin.name)
        if plugin.name in self._given.entries.by_plugin or (switch is not None and switch.on):
            return True
        return next(self._decisions.plugin_grants(plugin), None) is not None


def _placeholder_tool(plugin: Plugin) -> Tool:
    """Return the tool that stands for what a plugin may have that was not asked yet."""
    return Tool(plugin=plugin.name, name="")
