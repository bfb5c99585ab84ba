"""Is it loaded? What is loaded from the start, and with the leases of a session (F1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions, tool_fault
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import ALWAYS, Lease, LeaseReason, LeaseTerm
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool
from pegboard.core.state.requirements import required_tools
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.state.subjects import (
    Keep,
    active_plugins,
    excluded_by_loadout,
    lease_entries,
    leased_tools,
    may_bring,
    narrowing_of_loadout,
    plugins_in_reach,
    reachable,
    start_narrowing,
    tools_of_subject,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTool:
    """A tool on which a lease stands: until when, because of what, under which overrides.

    ``because`` has every reason, the one that put it into its place first. ``needed_by`` are the
    tools that require it (T8). ``pending``: it is loaded from the next request on, so that a model neither sees nor
    calls it before; ``leaving``: it was unloaded, and a model sees it until the next request and cannot call it (D2).
    """

    tool: Tool
    until: LeaseTerm
    because: tuple[LeaseReason, ...]
    overrides: JsonObject = field(default=EMPTY)
    key: str = ""
    needed_by: tuple[str, ...] = ()
    pending: bool = False
    leaving: bool = False


class ActiveTools:
    """A collector of what is loaded: each tool once, in the order of F1; of two with one wire name the first (G10).

    A name that is ``held`` is that of the tool with the id there. ``excluded`` has the ids of the others, with the id
    of the tool that has their name.
    """

    __slots__ = ("_access", "_holders", "excluded", "found")

    def __init__(
        self,
        permissions: CompiledPermissions,
        found: Mapping[str, LoadedTool] = EMPTY,
        held: Mapping[str, str] = EMPTY,
    ) -> None:
        self._access = permissions
        self.found: dict[str, LoadedTool] = dict(found)
        self.excluded: dict[str, str] = {}
        self._holders = {**{one.tool.wire: key for key, one in found.items()}, **held}

    def add(
        self, tools: Iterable[tuple[Tool, Entry]], until: LeaseTerm, because: LeaseReason, *, pending: bool = False
    ) -> None:
        """Add tools, then what they require; one that is there gains a reason, at its place (S5)."""
        self.require(self.place(tools, until, because, pending=pending), until, pending=pending)

    def place(
        self, tools: Iterable[tuple[Tool, Entry]], until: LeaseTerm, because: LeaseReason, *, pending: bool = False
    ) -> tuple[Tool, ...]:
        """Add tools without what they require; return those that require something."""
        requiring: list[Tool] = []
        for tool, entry in tools:
            if self._add_reason(tool, entry, until, because, pending=pending) and tool.requires:
                requiring.append(tool)
        return tuple(requiring)

    def _add_reason(self, tool: Tool, entry: Entry, until: LeaseTerm, because: LeaseReason, *, pending: bool) -> bool:
        """Add a tool or a reason; return whether it is loaded, which it is not where its name is taken."""
        known = self.found.get(tool.id)
        if known is None:
            holder = self._holders.setdefault(tool.wire, tool.id)
            if holder != tool.id:
                self.excluded[tool.id] = holder
                return False
            known = LoadedTool(
                tool=tool, until=until, because=(because,), overrides=entry.overrides, key=entry.key, pending=pending
            )
        elif until > known.until or because not in known.because or known.pending > pending:
            reasons = known.because if because in known.because else (*known.because, because)
            known = replace(known, until=max(known.until, until), because=reasons, pending=known.pending and pending)
        self.found[tool.id] = known
        return True

    def require(self, tools: Iterable[Tool], until: LeaseTerm, *, pending: bool = False) -> None:
        """Add what tools require, and what that requires, for as long as the tools stand (T8)."""
        left = deque(tools)
        while left:
            by = left.popleft()
            for tool in required_tools(self._access, by):
                known = self.found.get(tool.id)
                if known is not None and by.id in known.needed_by and known.until >= until and known.pending <= pending:
                    continue
                (entry,) = tools_of_subject(self._access, Ref("tool", tool.id)).entries
                if not self._add_reason(tool, entry, until, LeaseReason.REQUIRED, pending=pending):
                    continue
                known = self.found[tool.id]
                if by.id not in known.needed_by:
                    self.found[tool.id] = replace(known, needed_by=(*known.needed_by, by.id))
                left.append(tool)


# -- from the start --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingTools:
    """What is loaded whatever a session loads; meta-tools stand between the two parts (F1).

    ``excluded`` are the tools that would be loaded, if the tool at their id had not their wire name (G10).
    """

    head: Mapping[str, LoadedTool]
    tail: Mapping[str, LoadedTool]
    excluded: Mapping[str, str]

    def __contains__(self, tool_id: str) -> bool:
        return tool_id in self.head or tool_id in self.tail

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)

    def __iter__(self) -> Iterator[str]:
        return chain(self.head, self.tail)


@once_per_permissions
def starting_tools(permissions: CompiledPermissions) -> StartingTools:
    """Return what is loaded for an agent before anything else is."""
    active = ActiveTools(permissions)
    requiring = active.place(
        _permitted_tools(permissions, permissions.entries.essential), ALWAYS, LeaseReason.ESSENTIAL
    )
    requiring += active.place(_permitted_tools(permissions, permissions.entries.static), ALWAYS, LeaseReason.STATIC)
    active.require(requiring, ALWAYS)
    head = dict(active.found)
    requiring = active.place(_permitted_tools(permissions, _initial(permissions)), ALWAYS, LeaseReason.INITIAL)
    if permissions.constraints.draws_ui:
        requiring += active.place(
            _tools_with_entries(permissions, lambda tool: tool.has_ui), ALWAYS, LeaseReason.INITIAL
        )
    requiring += active.place(_tools_by_switch(permissions), ALWAYS, LeaseReason.SWITCH)
    of_loadout = _permitted_tools(permissions, _active_of_loadout(permissions))
    requiring += active.place(_without_namesakes(permissions, of_loadout), ALWAYS, LeaseReason.LOADOUT)
    if permissions.constraints.everything:
        requiring += active.place(_tools_with_entries(permissions, lambda _: True), ALWAYS, LeaseReason.INITIAL)
    active.require(requiring, ALWAYS)
    found = dict(islice(active.found.items(), permissions.constraints.most_at_start))
    return StartingTools(
        head={key: one for key, one in found.items() if key in head},
        tail={key: one for key, one in found.items() if key not in head},
        excluded=active.excluded,
    )


def starting_entries(permissions: CompiledPermissions) -> Iterator[Entry]:
    """Yield what is to be loaded from the start, whether its tools are known or not."""
    yield from (*permissions.entries.essential, *permissions.entries.static)
    for name in permissions.agent.initial_toolkits:
        yield from permissions.entries.toolkits.get(name, ())
    for plugin in permissions.world.catalog.plugins.values():
        loadout, switch = permissions.loadout, permissions.switches.plugins.get(plugin.name)
        switched = switch is not None and switch.on
        active = loadout is not None and loadout.includes(plugin.name, plugin.category) is not None
        if (switched or active) and permissions.grants_unseen(plugin):
            yield permissions.entries.of_plugin(plugin.name)


@once_per_permissions
def _start_unknown(permissions: CompiledPermissions) -> bool:
    """Return whether something that is to be loaded from the start is not known yet."""
    return _has_unknown_plugin(permissions, starting_entries(permissions))


def _has_unknown_plugin(permissions: CompiledPermissions, entries: Iterable[Entry]) -> bool:
    plugins = permissions.world.catalog.plugins
    return any(not plugins[one.plugin].variant(one.key).known for one in entries)


def _permitted_tools(permissions: CompiledPermissions, group: Iterable[Entry]) -> Iterator[tuple[Tool, Entry]]:
    return ((tool, entry) for entry in group for tool in entry.tools if permissions.permits(tool))


def _tools_with_entries(
    permissions: CompiledPermissions, wanted: Callable[[Tool], bool]
) -> Iterator[tuple[Tool, Entry]]:
    return ((tool, permissions.entries.of_tool(tool)) for tool in permissions.permitted if wanted(tool))


def _initial(permissions: CompiledPermissions) -> Iterator[Entry]:
    """Yield the entries of the initial toolkits that the agent may load."""
    for name in permissions.agent.initial_toolkits:
        if permissions.may_load_toolkit(name):
            yield from permissions.entries.toolkits.get(name, ())


def _tools_by_switch(permissions: CompiledPermissions) -> Iterator[tuple[Tool, Entry]]:
    """Yield what only a switch grants: it is loaded from the start (P2)."""
    for tool in permissions.switches.named_on():
        reasons = permissions.decide(tool).reasons
        if all(reason.code == "granted_switch" for reason in reasons) and permissions.permits(tool):
            yield tool, permissions.entries.of_tool(tool)


def _active_of_loadout(permissions: CompiledPermissions) -> Iterator[Entry]:
    """Yield the plugins that the agent's loadout makes active, by name."""
    loadout = permissions.loadout
    if loadout is None:
        return
    for plugin in sorted(permissions.world.catalog.plugins.values(), key=lambda p: p.name):
        if loadout.includes(plugin.name, plugin.category) is not None:
            yield permissions.entries.of_plugin(plugin.name)


def _without_namesakes(
    permissions: CompiledPermissions, tools: Iterable[tuple[Tool, Entry]]
) -> Iterator[tuple[Tool, Entry]]:
    """Yield tools but for those that only a category brought in and that have the name of one that is written (L9)."""
    pairs, plugins = tuple(tools), permissions.world.catalog.plugins
    written = {tool.wire for tool, _ in pairs if not plugins[tool.plugin].by_category}
    return (pair for pair in pairs if pair[0].wire not in written or not plugins[pair[0].plugin].by_category)


def is_toolkit_from_start(permissions: CompiledPermissions, toolkit: str) -> bool:
    """Return whether a toolkit is loaded from the start: initial, or granted by nothing but a switch (P2)."""
    agent, start = permissions.agent, starting_tools(permissions)
    if toolkit in agent.allowed_toolkits and toolkit not in agent.initial_toolkits:
        return False
    if toolkit in agent.initial_toolkits and permissions.constraints.most_at_start is None:
        return True
    tools = tools_of_subject(permissions, Ref("toolkit", toolkit)).tools
    return bool(tools) and all(tool.id in start for tool, _ in tools)


@once_per_permissions
def loadable(permissions: CompiledPermissions, loadout: str | None = None) -> bool:
    """Return whether the agent has anything that its model may load, so that it needs meta-tools (T4).

    An active loadout takes none of it away, and adds what it only makes discoverable of what is static (L7).
    """
    if any(toolkit_to_load(permissions, DEFAULT, name) for name in permissions.entries.loadable_toolkits):
        return True
    if permissions.agent.dialect == "toolkits":
        return False
    if loadout is not None and _loadable_under(permissions, loadout):
        return True
    return any(_plugin_loadable(permissions, plugin) for plugin in permissions.world.catalog.plugins.values())


def names_loadable(permissions: CompiledPermissions) -> bool:
    """Return whether the agent's file names something that can be loaded in its dialect, loaded or not (T4)."""
    agent = permissions.agent
    others = agent.dialect != "toolkits" and (agent.discoverable or agent.loadout is not None)
    return bool(agent.allowed_toolkits or others)


def _loadable_under(permissions: CompiledPermissions, loadout: str) -> bool:
    state, plugins = State(loadout=loadout), permissions.world.catalog.plugins
    start = _compute_starting_tools(permissions, loadout, None)
    if any(tool.id not in start for tool in reachable(permissions, state)):
        return True
    unseen = plugins_in_reach(permissions, loadout) - active_plugins(permissions, loadout)
    return any(not plugins[name].tools and permissions.grants_unseen(plugins[name]) for name in unseen)


def toolkit_to_load(permissions: CompiledPermissions, state: State, name: str) -> bool:
    """Return whether a toolkit has something that is not loaded from the start and that a loadout does not exclude."""
    if name in permissions.agent.initial_toolkits and permissions.constraints.most_at_start is None:
        return False
    start, catalog = tools_loaded_at_start(permissions, state), permissions.world.catalog
    for entry in permissions.entries.toolkits[name]:
        plugin = catalog.plugins[entry.plugin]
        if any(tool.id not in start and _within_reach(permissions, state, tool) for tool in entry.tools):
            return True
        unseen = not plugin.variant(entry.key).known and permissions.grants_unseen(plugin)
        if unseen and may_bring(permissions, state, plugin):
            return True
    return not permissions.world.toolkits[name].complete(catalog)


def _within_reach(permissions: CompiledPermissions, state: State, tool: Tool) -> bool:
    return permissions.permits(tool) and not excluded_by_loadout(permissions, state, tool)


def _plugin_loadable(permissions: CompiledPermissions, plugin: Plugin) -> bool:
    start = starting_tools(permissions)
    if plugin.tools:
        rest = (tool for tool in plugin.tools if tool.id not in start and tool.id not in start.excluded)
        return any(map(permissions.permits, rest))
    return plugin.name not in permissions.entries.plugins_from_start and permissions.grants_unseen(plugin)


# -- with the leases of a session ------------------------------------------------------------------


def active_tools(permissions: CompiledPermissions, state: State) -> Mapping[str, LoadedTool]:
    """Return every loaded tool by its id: what is loaded from the start, then what was loaded, in order (F1)."""
    known = _compute_starting_tools(permissions, state.loadout, state.shrunk)
    if not state.leases:
        return known
    held = _names_of_leases(permissions, state)
    start = {key: one for key, one in known.items() if held.get(one.tool.wire, key) == key} if held else known
    active = ActiveTools(permissions, start, held)
    for lease in state.leases:
        pending = lease.from_turn > max(state.turn, 0)
        active.add(leased_tools(permissions, lease), lease.until, lease.because, pending=pending)
    return _keep_of_loadout(active.found, narrowing_of_loadout(permissions, state))


def holding_names(permissions: CompiledPermissions, state: State, active: Mapping[str, LoadedTool]) -> State:
    """Return the state whose leases hold the names of their tools, where another tool may get one of them later (G10).

    That is so where more becomes known, and where tools of two plugins have one name of their own, which prefixes tell
    apart now.

    Args:
        permissions: Of the session.
        state: After a command.
        active: What is loaded in it.
    """
    if not state.leases:
        return state
    named = permissions.world.catalog.named
    may_clash = (
        _start_unknown(permissions)
        or any(_has_unknown_plugin(permissions, lease_entries(permissions, lease)) for lease in state.leases)
        or any(len(named(tool.name)) > 1 for lease in state.leases for tool, _ in leased_tools(permissions, lease))
    )
    if not may_clash:
        return state
    leases = tuple(
        replace(
            lease,
            names=frozenset((tool.id, tool.wire) for tool, _ in leased_tools(permissions, lease) if tool.id in active),
        )
        for lease in state.leases
    )
    return state if leases == state.leases else replace(state, leases=leases)


def _names_of_leases(permissions: CompiledPermissions, state: State) -> Mapping[str, str]:
    """Return the ids of tools by the wire names that leases hold for them: see :func:`holding_names` (G10)."""
    return {
        tool.wire: tool.id
        for lease in reversed(state.leases)
        if lease.names
        for tool, _ in leased_tools(permissions, lease)
        if (tool.id, tool.wire) in lease.names
    }


def leases_with_tools(permissions: CompiledPermissions, state: State, leases: Iterable[Lease]) -> Iterator[Lease]:
    """Yield the leases but for those whose tools have all lost their names to what others loaded before (G10)."""
    held = _names_of_leases(permissions, state)
    for lease in leases:
        tools = leased_tools(permissions, lease) if held else ()
        if not tools or any(held.get(tool.wire, tool.id) == tool.id for tool, _ in tools):
            yield lease


def tools_loaded_at_start(permissions: CompiledPermissions, state: State) -> Mapping[str, LoadedTool]:
    """Return what is loaded from the start of a session under its active loadout, whatever the budget (L7)."""
    return _compute_starting_tools(permissions, state.loadout, None)


@once_per_permissions
def _compute_starting_tools(
    permissions: CompiledPermissions, loadout: str | None, shrunk: str | None
) -> Mapping[str, LoadedTool]:
    """Return what is loaded before anything is: the agent's start, and what the session's loadout makes active (L7)."""
    start = starting_tools(permissions)
    found: Mapping[str, LoadedTool] = {**start.head, **start.tail}
    if loadout is not None:
        active = ActiveTools(permissions, found)
        tools = _without_namesakes(permissions, _tools_of_session_loadout(permissions, loadout))
        active.add(tools, ALWAYS, LeaseReason.LOADOUT)
        found = dict(islice(active.found.items(), permissions.constraints.most_at_start))
    return _keep_of_loadout(found, start_narrowing(permissions, State(loadout=loadout, shrunk=shrunk)))


def _tools_of_session_loadout(permissions: CompiledPermissions, loadout: str) -> Iterator[tuple[Tool, Entry]]:
    """Yield the permitted tools of the plugins that a loadout makes active, by name."""
    plugins = permissions.world.catalog.plugins
    for name in sorted(active_plugins(permissions, loadout)):
        for tool in permissions.plugin_permissions.tools_of(plugins[name]):
            yield tool, permissions.entries.of_tool(tool)


def _keep_of_loadout(active: Mapping[str, LoadedTool], keep: Keep | None) -> Mapping[str, LoadedTool]:
    """Return what a loadout keeps: essentials, what it makes active, and what those require (L7, T8)."""
    if keep is None:
        return active
    stay = {key for key, one in active.items() if LeaseReason.ESSENTIAL in one.because or keep(one.tool)}
    because_of_others = [(key, one) for key, one in active.items() if one.needed_by and key not in stay]
    while fresh := {key for key, one in because_of_others if key not in stay and not stay.isdisjoint(one.needed_by)}:
        stay |= fresh
    return {key: one for key, one in active.items() if key in stay}


def available(permissions: CompiledPermissions, tools: Iterable[LoadedTool]) -> list[LoadedTool]:
    """Return the loaded tools that can run now, in order (P6)."""
    look = _partly_unavailable(permissions)
    return [
        loaded
        for loaded in tools
        if not loaded.tool.unavailable
        and (
            not (permissions.faults or loaded.tool.plugin in look)
            or not tool_fault(permissions, loaded.tool, loaded.key)
        )
    ]


@once_per_permissions
def _partly_unavailable(permissions: CompiledPermissions) -> frozenset[str]:
    """Return the plugins that cannot run, whole or in a variant: each tool of them is looked at."""
    plugins = permissions.world.catalog.plugins.values()
    return frozenset(plugin.name for plugin in plugins if any(one.unavailable for one in plugin.variants.values()))


def available_tools(permissions: CompiledPermissions, state: State) -> tuple[Tool, ...]:
    """Return the loaded tools of a session that can run, now or from the next request on, in order (D2, P6)."""
    return tuple(loaded.tool for loaded in available(permissions, active_tools(permissions, state).values()))
