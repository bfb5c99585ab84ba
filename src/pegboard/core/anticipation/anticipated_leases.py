"""Leases on what no one has asked for yet, where nothing speaks against them (S5, S9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pegboard.core.access.permissions import CompiledPermissions, own_fault
from pegboard.core.access.read_only import is_destructive
from pegboard.core.model.agents import Anticipate
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease, LeaseReason, LeaseTerm
from pegboard.core.model.masking import Masker
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import active_tools, starting_tools
from pegboard.core.state.commands import CommandContext, Outcome
from pegboard.core.state.loading import conflict_of
from pegboard.core.state.requirements import missing_requirements
from pegboard.core.state.sessions import State
from pegboard.core.state.shrinking import excess
from pegboard.core.state.subjects import (
    excluded_by_loadout,
    lease_entries,
    leased_tools,
    tools_of_subject,
    unloaded_in_turn,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anticipation:
    """What a session may load before anyone asks for it, under what its host's requests cost.

    ``limits`` are the bounds of what one message brings; ``carried`` is how many tokens of tools that are probably
    needed it is cheaper to carry than to ask a model for them once more, ``whole`` the same of the tools of a plugin
    of which one is used; ``until`` is how long such a lease stands.
    """

    limits: Anticipate
    carried: int
    whole: int
    until: LeaseTerm
    price: Callable[[Iterable[Tool]], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An anticipated lease that may stand, with the tools that it would add."""

    lease: Lease
    adds: tuple[Tool, ...]


def candidate(
    permissions: CompiledPermissions, state: State, subject: Ref, anticipation: Anticipation
) -> Candidate | None:
    """Return the anticipated lease on a subject, or None where it must not stand (S5).

    It starts no server and constructs no plugin: what is not known or cannot run is not anticipated. It
    never conflicts, and nothing that was unloaded one by one, or in this turn, comes back with it. Of a plugin
    everything comes but what is destructive.
    """
    if state.leases_on(subject):
        return None
    tools = tools_of_subject(permissions, subject).tools
    lease = Lease(
        subject=subject,
        excluded=frozenset(tool.id for tool, _ in tools if is_destructive(tool)),
        until=anticipation.until,
        because=LeaseReason.ANTICIPATED,
        loaded_turn=state.turn,
        used_turn=state.turn,
    )
    entries, active = lease_entries(permissions, lease), active_tools(permissions, state)
    tools = tuple(
        tool for tool, _ in leased_tools(permissions, lease) if not excluded_by_loadout(permissions, state, tool)
    )
    if all(tool.id in active for tool in tools) or permissions.out_of_scope(entries):
        return None
    if not all(_stands_ready(permissions, entry) for entry in entries):
        return None
    if any(own_fault(permissions, tool) for tool in tools) or missing_requirements(permissions, tools):
        return None
    after = active_tools(permissions, state.with_lease(lease))
    if not all(tool.id in after for tool in tools):  # another tool has the name of one
        return None
    adds = tuple(loaded.tool for key, loaded in after.items() if key not in active)
    if not adds or any(map(is_destructive, adds)):
        return None
    if _cut_before(state, adds) or any(unloaded_in_turn(permissions, state, tool) for tool in adds):
        return None
    clashes = conflict_of(permissions, active, entries, Masker()) is not None
    return None if clashes else Candidate(lease=lease, adds=adds)


def _stands_ready(permissions: CompiledPermissions, entry: Entry) -> bool:
    """Return whether a plugin is known under these overrides and can run."""
    variant = permissions.world.catalog.plugins[entry.plugin].variant(entry.key)
    return variant.known and not variant.unavailable


def _cut_before(state: State, tools: Iterable[Tool]) -> bool:
    """Return whether one of the tools was unloaded from a lease that still stands."""
    cut = {tool_id for lease in state.leases for tool_id in lease.excluded}
    return any(tool.id in cut for tool in tools)


def fits_budget(permissions: CompiledPermissions, state: State, found: Candidate, terms: CommandContext) -> bool:
    """Return whether an anticipated lease leaves the budget as it is: nothing gives way to it (S9)."""
    return not excess(permissions, replace(state.with_lease(found.lease), shrunk=None), terms)


def newly_anticipated(permissions: CompiledPermissions, state: State) -> tuple[Tool, ...]:
    """Return the tools that joined ahead of being asked for in this turn, in the order of their loading."""
    active, start = active_tools(permissions, state), starting_tools(permissions)
    known: set[str] = set()
    found: dict[str, Tool] = {}
    for lease in state.leases:
        leased = (tool for tool, _ in leased_tools(permissions, lease))
        joined = [tool for tool in leased if tool.id not in known and tool.id not in start]
        if lease.because is LeaseReason.ANTICIPATED and lease.loaded_turn == state.turn:
            found.update((tool.id, tool) for tool in joined if tool.id in active)
        known.update(tool.id for tool in joined)
    return tuple(found.values())


def unused_leases(state: State) -> tuple[Lease, ...]:
    """Return the anticipated leases of which nothing was used since."""
    return tuple(
        lease for lease in state.anticipated if not any(_of_subject(lease.subject, tool_id) for tool_id in state.recent)
    )


def _of_subject(subject: Ref, tool_id: str) -> bool:
    return subject.name == (tool_id if subject.kind == "tool" else tool_id.partition("/")[0])


# -- tools that are used together with what was loaded or used --------------------------------------


def with_siblings(
    permissions: CompiledPermissions,
    state: State,
    plugins: Iterable[str],
    anticipation: Anticipation,
    terms: CommandContext,
) -> tuple[State, tuple[Lease, ...]]:
    """Return the state with what else these plugins have, as far as it is cheaper carried than asked for."""
    brought: list[Lease] = []
    for plugin in dict.fromkeys(plugins):
        found = candidate(permissions, state, Ref("plugin", plugin), anticipation)
        if (
            found is not None
            and anticipation.price(found.adds) <= anticipation.whole
            and fits_budget(permissions, state, found, terms)
        ):
            state = state.with_lease(found.lease)
            brought.append(found.lease)
    return state, tuple(brought)


def beside_load(
    permissions: CompiledPermissions, state: State, outcome: Outcome, anticipation: Anticipation, terms: CommandContext
) -> tuple[State, Outcome]:
    """Return what a load did once the siblings of the tools that it names have joined behind them."""
    named = (item.subject for item in outcome.items if item.status in ("loaded", "already_loaded"))
    plugins = [ref.name.partition("/")[0] for ref in named if ref is not None and ref.kind == "tool"]
    after, brought = with_siblings(permissions, state, plugins, anticipation, terms)
    if not brought:
        return state, outcome
    before, active = active_tools(permissions, state), active_tools(permissions, after)
    fresh = tuple(loaded.tool for key, loaded in active.items() if key not in before)
    loaded = tuple(one.tool.wire for one in active.values())
    subjects = tuple(lease.subject for lease in brought)
    return after, replace(outcome, added=(*outcome.added, *fresh), loaded=loaded, anticipated=subjects)


def used_plugins(permissions: CompiledPermissions, state: State) -> tuple[str, ...]:
    """Return the plugins of which a tool was used that is still loaded, the last used first."""
    active = active_tools(permissions, state)
    return tuple(dict.fromkeys(tool_id.partition("/")[0] for tool_id in state.recent if tool_id in active))
