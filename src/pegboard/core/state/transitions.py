"""Pure transitions: state + command → new state + outcome (S5–S10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from pegboard.core.access.names import display_name, lookup, title
from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import STICKY, TURN, UNLOAD, Lease, LeaseReason
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools, holding_names, is_toolkit_from_start
from pegboard.core.state.commands import (
    NO_SESSION,
    SUCCEEDED,
    Command,
    CommandContext,
    EndTurn,
    Fallback,
    Item,
    Load,
    MarkTurn,
    Outcome,
    SetLoadout,
    Status,
    Unload,
    Use,
    not_found_item,
)
from pegboard.core.state.loading import first_turn, load
from pegboard.core.state.requirements import with_required
from pegboard.core.state.sessions import State
from pegboard.core.state.shrinking import excess_over_budget, fit_to_budget, size_of
from pegboard.core.state.subjects import (
    excluded_by_loadout,
    leased_tools,
    narrowing_of_loadout,
    remove_dead_leases,
    stands_for_nothing,
)

RECENT_KEPT = 64
"""How many tools a session remembers as used."""


def transition(
    permissions: CompiledPermissions, state: State, command: Command, terms: CommandContext
) -> tuple[State, Outcome]:
    """Return the state after a command, and its outcome without policy text; ``state`` is healed first (S3)."""
    healed = remove_dead_leases(permissions, state)
    state = _within_budget(permissions, healed, terms)
    before = active_tools(permissions, state)
    after, items = _apply_command(permissions, state, command, terms)
    after = _within_budget(permissions, after, terms)
    active = active_tools(permissions, after)
    after = holding_names(permissions, after, active)
    outcome = _outcome(before, active, after.turn, items, terms)
    gave_way = _refs_given_way(healed, after) if not isinstance(command, EndTurn | MarkTurn | Unload) else ()
    return after, replace(outcome, gave_way=gave_way) if gave_way else outcome


def _refs_given_way(before: State, after: State) -> tuple[Ref, ...]:
    """Return what was anticipated and stands no more (S9)."""
    standing = {lease.subject for lease in after.leases}
    return tuple(lease.subject for lease in before.anticipated if lease.subject not in standing)


def _within_budget(permissions: CompiledPermissions, state: State, terms: CommandContext) -> State:
    return fit_to_budget(permissions, state, terms) if permissions.budgeted else state


def _apply_command(
    permissions: CompiledPermissions, state: State, command: Command, terms: CommandContext
) -> tuple[State, tuple[Item, ...]]:
    match command:
        case Load():
            return _apply_to_each(command.names, state, lambda s, n: load(permissions, s, n, command, terms))
        case Unload():
            return _apply_to_each(command.names, state, lambda s, n: unload(permissions, s, n, terms))
        case Fallback():
            return _single_item(fallback(permissions, state, terms))
        case SetLoadout():
            after, item = _set_loadout(permissions, state, command.loadout, terms)
            return (replace(after, own_loadout=command.own) if item.status in SUCCEEDED else after), (item,)
        case EndTurn():
            return _end_turn(permissions, state, command.turn)
        case MarkTurn():
            return _mark_turn(permissions, state, command.label)
        case Use():
            return use_tool(permissions, state, command.tool), ()
        case _:
            assert_never(command)


def _apply_to_each(
    names: tuple[str, ...], state: State, step: Callable[[State, str], tuple[State, Item]]
) -> tuple[State, tuple[Item, ...]]:
    items: list[Item] = []
    for name in dict.fromkeys(names):
        state, item = step(state, name)
        items.append(item)
    return state, tuple(items)


def _single_item(done: tuple[State, Item]) -> tuple[State, tuple[Item, ...]]:
    return done[0], (done[1],)


def _outcome(
    before: Mapping[str, LoadedTool],
    after: Mapping[str, LoadedTool],
    turn: int,
    items: tuple[Item, ...],
    terms: CommandContext,
) -> Outcome:
    succeeded = sum(item.status in SUCCEEDED for item in items)
    return Outcome(
        status="ok" if succeeded == len(items) else "partial" if succeeded else "refused",
        items=items,
        takes_effect=terms.takes_effect if succeeded else None,
        loaded=tuple(loaded.tool.wire for loaded in after.values()),
        added=tuple(loaded.tool for key, loaded in after.items() if key not in before),
        removed=tuple(loaded.tool.wire for key, loaded in before.items() if key not in after),
        message=" ".join(item.text for item in items),
        turn=turn,
    )


def _set_loadout(
    permissions: CompiledPermissions, state: State, loadout: str | None, terms: CommandContext
) -> tuple[State, Item]:
    """Return the state narrowed to a loadout, or to nothing; leases stay (L7)."""
    found = permissions.world.loadouts.get(loadout.casefold()) if loadout is not None else None
    if loadout is not None and found is None:
        return state, _no_loadout(permissions, loadout)
    chosen, before = found.name if found is not None else None, state.loadout
    after, message = replace(state, loadout=chosen), ""
    status: Status
    if chosen == before:
        status = "already_loaded" if chosen is not None else "not_loaded"
        message = f"Loadout '{chosen}' is active already." if chosen is not None else "No loadout is active."
    elif not terms.stable:
        after, status, message = state, "error", NO_SESSION
    elif chosen is None:
        status, message = "unloaded", f"Loadout '{before}' is not active any more; nothing is excluded."
    else:
        status, message = "loaded", f"Loadout '{chosen}' is active: what it excludes is out of reach in this session."
    return after, Item(name=chosen or (before if status == "unloaded" else "") or "", status=status, message=message)


def _no_loadout(permissions: CompiledPermissions, loadout: str) -> Item:
    names = tuple(known.name for known in permissions.world.loadouts.values())
    hint = did_you_mean(loadout, names) or f"There are: {', '.join(names)}."
    message = f"There is no loadout '{one_line(loadout, limit=100)}'. {hint}"
    return Item(name=loadout, status="not_found", message=message)


def _end_turn(
    permissions: CompiledPermissions, state: State, begins: int | None = None
) -> tuple[State, tuple[Item, ...]]:
    """Return the state in the turn that begins, without what lapses; turns passed over were without use (S6, S7)."""
    begins = state.turn + 1 if begins is None else begins
    if begins <= state.turn:
        return state, ()
    gone = tuple(lease for lease in state.leases if lease.lapses(begins - 1))
    items = tuple(
        Item(
            name=display_name(permissions, lease.subject),
            status="unloaded",
            message=f"{title(permissions, lease.subject)} was unloaded ({lease.until}).",
            subject=lease.subject,
        )
        for lease in gone
    )
    after = replace(
        state,
        turn=begins,
        leases=tuple(lease for lease in state.leases if not lease.lapses(begins - 1)),
        failure=None,
        unloaded=(),
        seen=(),
        evicted=tuple(item.name for item in items),
    )
    return after, items


def _mark_turn(permissions: CompiledPermissions, state: State, label: str) -> tuple[State, tuple[Item, ...]]:
    """Return the state with the label; the first one of a session ends nothing (G3)."""
    if state.label == label:
        return state, ()
    after, items = (state, ()) if state.label is None else _end_turn(permissions, state)
    return replace(after, label=label), items


def use_tool(permissions: CompiledPermissions, state: State, tool_id: str) -> State:
    """Return the state with the tool used in this turn; the same where that is known already (S2)."""
    tool = permissions.world.catalog.by_id(tool_id)
    if tool is None:
        return state
    ids = _used_with(permissions, state, tool_id)
    covering = [lease for lease in state.leases if any(one.id in ids for one, _ in leased_tools(permissions, lease))]
    if not covering or (tool_id in state.recent and all(lease.used_turn == state.turn for lease in covering)):
        return state
    recent = (tool_id, *(other for other in state.recent if other != tool_id))[:RECENT_KEPT]
    return replace(state.used(covering), recent=recent)


def _used_with(permissions: CompiledPermissions, state: State, tool_id: str) -> frozenset[str]:
    """Return a tool with those that it stands for: what requires it is used with it (T8)."""
    active = active_tools(permissions, state)
    found, pending = {tool_id}, [tool_id]
    while pending:
        loaded = active.get(pending.pop())
        fresh = set(loaded.needed_by) - found if loaded is not None else set[str]()
        found |= fresh
        pending.extend(fresh)
    return frozenset(found)


def unload(permissions: CompiledPermissions, state: State, name: str, terms: CommandContext) -> tuple[State, Item]:
    """Return the state with what a name means unloaded, or why not (S10)."""
    ref = lookup(permissions, name, active_tools(permissions, state))
    if ref is None:
        return state, not_found_item(permissions, state, name)
    tools = tuple(tool for tool, _ in leased_tools(permissions, Lease(subject=ref, until=UNLOAD)))
    if tools and all(excluded_by_loadout(permissions, state, tool) for tool in tools):
        return state, not_found_item(permissions, state, name)
    targets = frozenset(tool.id for tool in tools)
    after = _state_without(permissions, state, ref, targets)
    subject, changes, details = title(permissions, ref), after != state, dict[str, object]()
    requiring = _tools_still_requiring(permissions, after, targets)
    if _is_from_start(permissions, state, ref, targets, changes=changes):
        status, message = "sticky", f"{subject} cannot be unloaded: it is loaded from the start."
    elif not changes and requiring and ref.kind != "toolkit":
        status, message = "sticky", f"{subject} cannot be unloaded: {requiring} needs it."
        details = {"needed_by": requiring}
    elif not changes:
        status, message = "not_loaded", f"{subject} is not loaded."
    elif not terms.stable:
        status, message = "error", NO_SESSION
    else:
        message = _unloaded_message(subject, requiring, terms)
        seen = (state.seen or state.leases) if terms.from_next_turn else ()
        after = replace(after, unloaded=(*(one for one in after.unloaded if one != ref), ref), seen=seen)
        return after, Item(name=name, status="unloaded", message=message, subject=ref)
    return state, Item(name=name, status=status, message=message, subject=ref, details=details)


def _unloaded_message(subject: str, requiring: str, terms: CommandContext) -> str:
    """Return the sentence of seed 000, or one that says what stays because something else needs it."""
    later = terms.takes_effect == "next_request"
    when = "will be removed on the next request in this session." if later else "is unloaded."
    kept = f" A part of it stays loaded: {requiring} needs it." if requiring else ""
    return f"{subject} {when}{kept}"


def _tools_still_requiring(permissions: CompiledPermissions, after: State, targets: frozenset[str]) -> str:
    """Return the names of the tools that still need one of the targets once it is unloaded."""
    active = active_tools(permissions, after)
    requiring = sorted({by for i in targets if i in active for by in active[i].needed_by} - targets)
    return ", ".join(display_name(permissions, Ref("tool", tool_id)) for tool_id in requiring)


def _is_from_start(
    permissions: CompiledPermissions, state: State, ref: Ref, targets: frozenset[str], *, changes: bool
) -> bool:
    """Return whether what a name stands for is loaded from the start, all of it or all that is loaded."""
    if ref.kind == "toolkit":
        return is_toolkit_from_start(permissions, ref.name)
    active = active_tools(permissions, state)
    stuck = [not STICKY.isdisjoint(active[i].because) for i in targets if i in active]
    return any(stuck) and (all(stuck) or not changes)


def _state_without(permissions: CompiledPermissions, state: State, ref: Ref, targets: frozenset[str]) -> State:
    """Return the state without what a name stands for.

    A toolkit takes its own lease with it, where it has one, and what was anticipated of it (S5); a plugin or tool goes
    from every lease that covers it.
    """
    alone = ref.kind == "toolkit" and bool(state.leases_on(ref))
    leases: list[Lease] = []
    for lease in state.leases:
        covered = frozenset(tool.id for tool, _ in leased_tools(permissions, lease))
        ahead = lease.because is LeaseReason.ANTICIPATED
        whole = covered and covered <= targets and (ahead if alone else _is_smaller_than_lease(lease, ref))
        if lease.subject == ref or whole:
            continue
        cut = covered & targets
        spare = (ref.kind == "toolkit" and not ahead) or not cut
        leases.append(lease if spare else replace(lease, excluded=lease.excluded | cut))
    return state.with_leases(
        lease for lease in leases if not lease.excluded or not stands_for_nothing(permissions, lease)
    )


def _is_smaller_than_lease(lease: Lease, ref: Ref) -> bool:
    return ref.kind != "toolkit" or lease.subject.kind != "toolkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FallbackChoice:
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
    leases = (_fallback_lease(tool, state.turn, first_turn(state, terms)) for tool in choice.fresh)
    return state.with_leases((*state.leases, *leases)), item


def _choose(
    permissions: CompiledPermissions, state: State, candidates: Iterable[Tool], terms: CommandContext
) -> _FallbackChoice:
    active = active_tools(permissions, state)
    loaded = {tool.id for tool in candidates if tool.id in active}
    missing = _missing_candidates(permissions, state, candidates, active)
    size = size_of(permissions, active, terms)
    holders = {one.tool.wire: key for key, one in active.items()}
    for tool in missing:
        together = with_required(permissions, tool, loaded)
        if together is None or any(holders.get(one.wire, one.id) != one.id for one in together):
            continue
        larger = size.with_tools(permissions, together, terms)
        if not excess_over_budget(permissions, larger):
            size = larger
            loaded.update(one.id for one in together)
            holders.update((one.wire, one.id) for one in together)
    return _FallbackChoice(
        loaded=frozenset(loaded),
        fresh=tuple(tool for tool in missing if tool.id in loaded),
        excluded=tuple(tool for tool in missing if tool.id not in loaded),
    )


def _missing_candidates(
    permissions: CompiledPermissions, state: State, candidates: Iterable[Tool], active: Mapping[str, LoadedTool]
) -> list[Tool]:
    """Return the candidates that are not loaded and that the active loadout keeps, what was used last first."""
    keep = narrowing_of_loadout(permissions, state)
    missing = (tool for tool in candidates if tool.id not in active and (keep is None or keep(tool)))
    rank = {tool_id: position for position, tool_id in enumerate(state.recent)}
    return sorted(missing, key=lambda tool: rank.get(tool.id, len(rank)))


def _fallback_lease(tool: Tool, turn: int, from_turn: int) -> Lease:
    return Lease(
        subject=Ref("tool", tool.id),
        until=TURN,
        because=LeaseReason.FALLBACK,
        loaded_turn=turn,
        used_turn=turn,
        from_turn=from_turn,
    )
