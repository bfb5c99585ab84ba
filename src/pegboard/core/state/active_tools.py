"""Is it out, and what is said? Leases become an ordered surface (F1, F5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions, Reason
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import ALWAYS, Lease, LeaseReason, LeaseTerm
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Tool
from pegboard.core.state.narrowing import Keep, exclusion_reason, narrowing, start_narrowing
from pegboard.core.state.sessions import State, leased_tools, tools_of_subject
from pegboard.core.state.surfaces import Explanation, LoadedTool, Surface


class ActiveTools:
    """Collect what is out, each tool once, in the order of F1."""

    __slots__ = ("_access", "found")

    def __init__(self, access: CompiledPermissions, found: Mapping[str, LoadedTool] | None = None) -> None:
        self._access = access
        self.found: dict[str, LoadedTool] = dict(found or {})

    def add(self, taken: Iterable[tuple[Tool, Entry]], until: LeaseTerm, because: LeaseReason) -> None:
        """Add tools, then what they require; one that is there gains a reason, at its place (S5)."""
        self.require(self.place(taken, until, because), until)

    def place(self, taken: Iterable[tuple[Tool, Entry]], until: LeaseTerm, because: LeaseReason) -> tuple[Tool, ...]:
        """Add tools without what they require; return those that require something."""
        needing: list[Tool] = []
        for tool, entry in taken:
            self._put(tool, entry, until, because)
            if tool.requires:
                needing.append(tool)
        return tuple(needing)

    def _put(self, tool: Tool, entry: Entry, until: LeaseTerm, because: LeaseReason) -> LoadedTool:
        out = self.found.get(tool.id)
        if out is None:
            out = LoadedTool(tool=tool, until=until, because=(because,), overrides=entry.overrides, key=entry.key)
        elif until > out.until or because not in out.because:
            reasons = out.because if because in out.because else (*out.because, because)
            out = replace(out, until=max(out.until, until), because=reasons)
        self.found[tool.id] = out
        return out

    def require(self, tools: Iterable[Tool], until: LeaseTerm) -> None:
        """Add what tools require, and what that requires, for as long as the tools stand (T8)."""
        pending = deque(tools)
        while pending:
            by = pending.popleft()
            for needed in required(self._access, by):
                out = self.found.get(needed.id)
                if out is not None and by.id in out.needed_by and out.until >= until:
                    continue
                (entry,) = tools_of_subject(self._access, Ref("tool", needed.id)).entries
                out = self._put(needed, entry, until, LeaseReason.REQUIRED)
                if by.id not in out.needed_by:
                    self.found[needed.id] = replace(out, needed_by=(*out.needed_by, by.id))
                pending.append(needed)


def required(access: CompiledPermissions, tool: Tool) -> Iterator[Tool]:
    """Yield the permitted tools that a tool names as required."""
    for needed_id in tool.requires:
        needed = access.world.catalog.by_id(needed_id)
        if needed is not None and access.permits(needed):
            yield needed


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingTools:
    """Hold what is out whatever a session loads; meta-tools stand between the two (F1)."""

    head: Mapping[str, LoadedTool]
    tail: Mapping[str, LoadedTool]


@once_per_permissions
def starting_tools(access: CompiledPermissions) -> StartingTools:
    """Return what is loaded for an agent before anything else is."""
    outs = ActiveTools(access)
    needing = outs.place(_permitted(access, access.essential), ALWAYS, LeaseReason.ESSENTIAL)
    needing += outs.place(_permitted(access, access.static), ALWAYS, LeaseReason.STATIC)
    outs.require(needing, ALWAYS)
    head = frozenset(outs.found)
    kits = (access.toolkits.get(name, ()) for name in access.agent.initial_toolkits if access.may_load_toolkit(name))
    needing = outs.place(_permitted(access, (entry for kit in kits for entry in kit)), ALWAYS, LeaseReason.INITIAL)
    needing += outs.place(_switched(access), ALWAYS, LeaseReason.SWITCH)
    if access.loadout is not None:
        for plugin in sorted(access.world.catalog.plugins.values(), key=lambda p: p.name):
            if access.loadout.includes(plugin.name, plugin.category) is not None:
                entry = access.plugin_entry(plugin.name)
                needing += outs.place(_permitted(access, (entry,)), ALWAYS, LeaseReason.LOADOUT)
    if access.circumstances.everything:
        needing += outs.place(((t, access.entry_for(t)) for t in access.permitted), ALWAYS, LeaseReason.INITIAL)
    outs.require(needing, ALWAYS)
    return StartingTools(
        head={key: out for key, out in outs.found.items() if key in head},
        tail={key: out for key, out in outs.found.items() if key not in head},
    )


def _permitted(access: CompiledPermissions, group: Iterable[Entry]) -> Iterator[tuple[Tool, Entry]]:
    return ((tool, entry) for entry in group for tool in entry.tools if access.permits(tool))


def _switched(access: CompiledPermissions) -> Iterator[tuple[Tool, Entry]]:
    """Yield what only a switch grants: it is out from the start (P2)."""
    for tool in access.switched_on():
        reasons = access.decide(tool).reasons
        if all(reason.code == "granted_switch" for reason in reasons) and access.permits(tool):
            yield tool, access.entry_for(tool)


def from_start(access: CompiledPermissions, toolkit: str) -> bool:
    """Return whether a toolkit is out from the start: initial, or granted by nothing but a switch (P2)."""
    agent, start = access.agent, starting_tools(access)
    if toolkit in agent.initial_toolkits or toolkit in agent.allowed_toolkits:
        return toolkit in agent.initial_toolkits
    tools = [tool.id for tool, _ in tools_of_subject(access, Ref("toolkit", toolkit)).tools]
    return bool(tools) and all(tool_id in start.head or tool_id in start.tail for tool_id in tools)


def active_tools(access: CompiledPermissions, state: State) -> Mapping[str, LoadedTool]:
    """Return every tool that is out by its id: the base, then what was loaded, in order (F1)."""
    start = _narrowed(access, state)
    if not state.leases:
        return start
    outs = ActiveTools(access, start)
    for lease in state.leases:
        outs.add(leased_tools(access, lease), lease.until, lease.because)
    return _kept(outs.found, narrowing(access, state))


def _narrowed(access: CompiledPermissions, state: State) -> Mapping[str, LoadedTool]:
    known = starting_tools(access)
    return _kept({**known.head, **known.tail}, start_narrowing(access, state))


def _kept(outs: Mapping[str, LoadedTool], keep: Keep | None) -> Mapping[str, LoadedTool]:
    """Return what a loadout keeps: essentials, what it makes active, and what those require (L7, T8)."""
    if keep is None:
        return outs
    stay = {key for key, out in outs.items() if LeaseReason.ESSENTIAL in out.because or keep(out.tool)}
    needed = [(key, out) for key, out in outs.items() if out.needed_by and key not in stay]
    while fresh := {key for key, out in needed if key not in stay and not stay.isdisjoint(out.needed_by)}:
        stay |= fresh
    return {key: out for key, out in outs.items() if key in stay}


def unavailable(access: CompiledPermissions, out: LoadedTool) -> str:
    """Return why a tool that is out cannot run now, or nothing (P6)."""
    plugin = access.world.catalog.plugins[out.tool.plugin]
    return out.tool.unavailable or plugin.variant(out.key).unavailable


def order(
    access: CompiledPermissions, outs: Mapping[str, LoadedTool], meta: Iterable[LoadedTool]
) -> tuple[LoadedTool, ...]:
    """Return what the model gets, in the order of F1, without what is unavailable."""
    head = starting_tools(access).head
    front = [out for key, out in outs.items() if key in head]
    back = [out for key, out in outs.items() if key not in head]
    return tuple(out for group in (front, meta, back) for out in group if not _away(access, out))


def _away(access: CompiledPermissions, out: LoadedTool) -> bool:
    return LeaseReason.META not in out.because and bool(unavailable(access, out))


def loaded_meta_tools(tools: Iterable[Tool]) -> tuple[LoadedTool, ...]:
    """Return the meta-tools as a surface holds them."""
    return tuple(LoadedTool(tool=tool, until=ALWAYS, because=(LeaseReason.META,)) for tool in tools)


def resolve(
    access: CompiledPermissions, state: State, *, session: str | None = None, meta: Iterable[Tool] = ()
) -> Surface:
    """Return the surface: total, deterministic, its cost that of what is out."""
    outs = active_tools(access, state)
    return Surface(
        agent=access.agent.name,
        session=session,
        turn=state.turn,
        tools=order(access, outs, loaded_meta_tools(meta)),
        loadout=state.loadout,
        shrunk=state.shrunk,
    )


@once_per_permissions
def loadable(access: CompiledPermissions) -> bool:
    """Return whether the agent has anything that it may load, so that it needs meta-tools (T4)."""
    start = starting_tools(access)
    out = start.head.keys() | start.tail.keys()
    catalog = access.world.catalog
    for name in access.toolkits:
        if name in access.agent.initial_toolkits or not access.may_load_toolkit(name):
            continue
        for entry in access.toolkits[name]:
            if any(t.id not in out and access.permits(t) for t in entry.tools):
                return True
            unseen = not catalog.plugins[entry.plugin].variant(entry.key).known
            if unseen and access.grants_unseen(catalog.plugins[entry.plugin]):
                return True
    for plugin in catalog.plugins.values():
        if plugin.tools:
            if any(tool.id not in out and access.permits(tool) for tool in plugin.tools):
                return True
        elif plugin.name not in access.plugins_out and access.grants_unseen(plugin):
            return True
    return False


def explain(access: CompiledPermissions, state: State, tool: Tool, *, known_conflict: str = "") -> Explanation:
    """Return the four predicates for a tool and the chain of reasons (F5)."""
    decision = access.decide(tool)
    out = active_tools(access, state).get(tool.id)
    plugin = access.world.catalog.plugins[tool.plugin]
    entry = access.entry_for(tool)
    fault = tool.unavailable or plugin.variant(out.key if out else entry.key).unavailable
    loaded = out is not None
    reasons = list(decision.reasons)
    if out is not None:
        reasons.extend(_lease_reason(access, state, out, because) for because in out.because)
    elif decision.permitted:
        why = exclusion_reason(access, state, tool)
        reasons.append(why or Reason(code="not_loaded", text="It is not loaded; it may be."))
    if known_conflict:
        reasons.append(Reason(code="conflict", text=known_conflict))
    if fault and decision.permitted:
        reasons.append(Reason(code="unavailable", text=fault, where=plugin.place))
    return Explanation(
        tool=tool.wire,
        permitted=decision.permitted,
        loaded=loaded,
        visible=loaded and not fault,
        callable=decision.permitted and loaded and not fault,
        reasons=tuple(reasons),
    )


_LEASE_TEXT: Mapping[LeaseReason, str] = {
    LeaseReason.ESSENTIAL: "It is out because it is essential; it cannot be unloaded.",
    LeaseReason.STATIC: "It is out because it is a static tool; it cannot be unloaded.",
    LeaseReason.META: "It is out because tools can be loaded.",
    LeaseReason.INITIAL: "It is out because its toolkit is initial; it is sticky.",
    LeaseReason.SWITCH: "It is out because only a switch grants it; it is sticky.",
    LeaseReason.LOADOUT: "It is out because the agent's loadout makes it active; it is sticky.",
    LeaseReason.LOADED: "It is out because it was loaded.",
    LeaseReason.FALLBACK: "It is out for this turn, by fallback.",
}


def _lease_reason(access: CompiledPermissions, state: State, out: LoadedTool, because: LeaseReason) -> Reason:
    if because is LeaseReason.REQUIRED:
        return Reason(code="loaded_required", text=f"It is out because {_needing(access, out)} it.")
    text = _LEASE_TEXT[because]
    if because in (LeaseReason.LOADED, LeaseReason.FALLBACK):
        found = _lease_of(access, state, out, because)
        if found is not None:
            text = (
                f"It is out because {found.subject.kind} '{found.subject.name}' was loaded in turn "
                f"{found.loaded_turn}, until {found.until}."
            )
    return Reason(code=f"loaded_{because.value}", text=text)


def _needing(access: CompiledPermissions, out: LoadedTool) -> str:
    tools = (access.world.catalog.by_id(tool_id) for tool_id in out.needed_by)
    names = [tool.wire for tool in tools if tool is not None]
    return f"{', '.join(names)} {'requires' if len(names) == 1 else 'require'}"


def _lease_of(access: CompiledPermissions, state: State, out: LoadedTool, because: LeaseReason) -> Lease | None:
    for lease in state.leases:
        if lease.because is because and any(tool.id == out.tool.id for tool, _ in leased_tools(access, lease)):
            return lease
    return None
