"""Everything permitted for one turn, within the budget, what was used last first (S8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import TURN, Lease, LeaseReason
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools
from pegboard.core.state.commands import NO_SESSION, CommandContext, Item
from pegboard.core.state.loading import first_turn
from pegboard.core.state.requirements import with_required
from pegboard.core.state.sessions import State
from pegboard.core.state.shrinking import over, size_of
from pegboard.core.state.subjects import narrowing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What a fallback makes of the permitted tools that can run.

    ``loaded`` are the ids of all that are loaded then, ``fresh`` those of them that were not before;
    ``excluded`` are those for which there is no room, which lack what they require, or of which the name is taken.
    """

    loaded: frozenset[str]
    fresh: tuple[Tool, ...]
    excluded: tuple[Tool, ...]


def fallback(permissions: CompiledPermissions, state: State, terms: CommandContext) -> tuple[State, Item]:
    """Return the state with one-turn leases on everything permitted, and how much of it there was room for."""
    if not terms.stable:
        return state, Item(name="fallback", status="error", message=NO_SESSION)
    candidates = [tool for tool in permissions.permitted if not tool_fault(permissions, tool)]
    choice = _choose(permissions, state, candidates, terms)
    if choice.excluded:
        state = state.without(state.anticipated)
        choice = _choose(permissions, state, candidates, terms)
    loaded, of = len(choice.loaded), len(candidates)
    count = f"{loaded} of {of}" if loaded < of else f"All {loaded}"
    item = Item(
        name="fallback",
        status="loaded",
        message=f"Fallback mode: {count} tools loaded for this turn only",
        details={"loaded": loaded, "permitted": of, "excluded": [tool.wire for tool in choice.excluded]},
    )
    leases = (_lease(tool, state.turn, first_turn(state, terms)) for tool in choice.fresh)
    return state.with_leases((*state.leases, *leases)), item


def _choose(
    permissions: CompiledPermissions, state: State, candidates: Iterable[Tool], terms: CommandContext
) -> _Choice:
    active = active_tools(permissions, state)
    loaded = {tool.id for tool in candidates if tool.id in active}
    missing = _missing(permissions, state, candidates, active)
    size = size_of(permissions, active, terms)
    holders = {one.tool.wire: key for key, one in active.items()}
    for tool in missing:
        together = with_required(permissions, tool, loaded)
        if together is None or any(holders.get(one.wire, one.id) != one.id for one in together):
            continue
        larger = size.with_tools(permissions, together, terms)
        if not over(permissions, larger):
            size = larger
            loaded.update(one.id for one in together)
            holders.update((one.wire, one.id) for one in together)
    return _Choice(
        loaded=frozenset(loaded),
        fresh=tuple(tool for tool in missing if tool.id in loaded),
        excluded=tuple(tool for tool in missing if tool.id not in loaded),
    )


def _missing(
    permissions: CompiledPermissions, state: State, candidates: Iterable[Tool], active: Mapping[str, LoadedTool]
) -> list[Tool]:
    """Return the candidates that are not loaded and that the active loadout keeps, what was used last first."""
    keep = narrowing(permissions, state)
    missing = (tool for tool in candidates if tool.id not in active and (keep is None or keep(tool)))
    rank = {tool_id: position for position, tool_id in enumerate(state.recent)}
    return sorted(missing, key=lambda tool: rank.get(tool.id, len(rank)))


def _lease(tool: Tool, turn: int, from_turn: int) -> Lease:
    return Lease(
        subject=Ref("tool", tool.id),
        until=TURN,
        because=LeaseReason.FALLBACK,
        loaded_turn=turn,
        used_turn=turn,
        from_turn=from_turn,
    )
