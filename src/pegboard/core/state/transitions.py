"""Pure transitions: state + command → new state + outcome (S5–S10)."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import assert_never

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import TURN, Lease, LeaseReason
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import active_tools, required, unavailable
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
    Unload,
    Use,
    display_name,
    title,
)
from pegboard.core.state.loading import load, tool_fault
from pegboard.core.state.narrowing import narrowing
from pegboard.core.state.sessions import State, heal, leased_tools
from pegboard.core.state.shrinking import fit_to_budget
from pegboard.core.state.surfaces import LoadedTool
from pegboard.core.state.unloading import unload
from pegboard.core.surface.policy import later

RECENT_KEPT = 64


def apply(access: CompiledPermissions, state: State, command: Command, terms: CommandContext) -> tuple[State, Outcome]:
    """Return the state after a command, and what to say about it; ``state`` is healed first (S3)."""
    state = fit_to_budget(access, heal(access, state), terms)
    before = active_tools(access, state)
    match command:
        case Load():
            after, items = _each(command.names, state, lambda s, n: load(access, s, n, command, terms))
        case Unload():
            after, items = _each(command.names, state, lambda s, n: unload(access, s, n, terms))
        case Fallback():
            after, items = _fallback(access, state, terms)
        case SetLoadout():
            after, items = _set_loadout(access, state, command.loadout, terms)
        case EndTurn():
            after, items = _end_turn(access, state)
        case MarkTurn():
            after, items = _mark_turn(access, state, command.label)
        case Use():
            after, items = used(access, state, command.tool), ()
        case _:
            assert_never(command)
    after = fit_to_budget(access, after, terms)
    return after, _outcome(access, before, after, items, terms)


def _each(
    names: tuple[str, ...], state: State, step: Callable[[State, str], tuple[State, Item]]
) -> tuple[State, tuple[Item, ...]]:
    items: list[Item] = []
    for name in dict.fromkeys(names):
        state, item = step(state, name)
        items.append(item)
    return state, tuple(items)


def _outcome(
    access: CompiledPermissions,
    before: Mapping[str, LoadedTool],
    state: State,
    items: tuple[Item, ...],
    terms: CommandContext,
) -> Outcome:
    after = active_tools(access, state)
    added = tuple(o.tool for i, o in after.items() if i not in before)
    fine = sum(item.status in SUCCEEDED for item in items)
    status = "ok" if fine == len(items) else "partial" if fine else "refused"
    return Outcome(
        status=status,
        items=items,
        takes_effect=terms.takes_effect if any(i.status in SUCCEEDED for i in items) else None,
        loaded=tuple(out.tool.wire for out in after.values()),
        added=added,
        removed=tuple(o.tool.wire for i, o in before.items() if i not in after),
        message=" ".join(item.message for item in items),
        policy=terms.masker.text(later(access, state, added)) if added else "",
        turn=state.turn,
    )


def _fallback(access: CompiledPermissions, state: State, terms: CommandContext) -> tuple[State, tuple[Item, ...]]:
    if not terms.stable:
        return state, (Item(name="fallback", status="error", message=NO_SESSION),)
    outs, keep = active_tools(access, state), narrowing(access, state)
    candidates = [tool for tool in access.permitted if not tool_fault(access, tool)]
    missing = [tool for tool in candidates if tool.id not in outs and (keep is None or keep(tool))]
    rank = {tool_id: position for position, tool_id in enumerate(state.recent)}
    missing.sort(key=lambda tool: rank.get(tool.id, len(rank)))
    room = _room(access, [out.tool for out in outs.values() if not unavailable(access, out)], terms)
    now_out = {tool.id for tool in candidates if tool.id in outs}
    for tool in missing:
        together = _with_required(access, tool, now_out)
        if together is not None and room(together):
            now_out.update(held.id for held in together)
    leases = (
        Lease(
            subject=Ref("tool", tool.id),
            until=TURN,
            because=LeaseReason.FALLBACK,
            loaded_turn=state.turn,
            used_turn=state.turn,
        )
        for tool in missing
        if tool.id in now_out
    )
    left_out = [tool.wire for tool in missing if tool.id not in now_out]
    count = f"{len(now_out)} of {len(candidates)}" if len(now_out) < len(candidates) else f"All {len(now_out)}"
    message = f"Fallback mode: {count} tools loaded for this turn only"
    details = {"out": len(now_out), "permitted": len(candidates), "left_out": left_out}
    item = Item(name="fallback", status="loaded", message=message, details=details)
    return state.with_leases((*state.leases, *leases)), (item,)


def _set_loadout(
    access: CompiledPermissions, state: State, loadout: str | None, terms: CommandContext
) -> tuple[State, tuple[Item, ...]]:
    """Return the state narrowed to a loadout, or to nothing; what was taken out stays taken (L7)."""
    known = access.world.loadouts
    if loadout is not None and loadout.casefold() not in known:
        names = tuple(held.name for held in known.values())
        hint = did_you_mean(loadout, names) or f"There are: {', '.join(names)}."
        shown = one_line(loadout, limit=100)
        message = f"There is no loadout '{shown}'. {hint}"
        return state, (Item(name=loadout, status="not_found", message=message),)
    chosen = known[loadout.casefold()].name if loadout is not None else None
    before = state.loadout
    if chosen == before:
        message = f"Loadout '{chosen}' is active already." if chosen is not None else "No loadout is active."
        status = "already_loaded" if chosen is not None else "not_loaded"
        return state, (Item(name=chosen or "", status=status, message=message),)
    if not terms.stable:
        return state, (Item(name=chosen or "", status="error", message=NO_SESSION),)
    if chosen is None:
        message = f"Loadout '{before}' is not active any more; nothing is left out."
        return replace(state, loadout=None), (Item(name=before or "", status="unloaded", message=message),)
    message = f"Loadout '{chosen}' is active: what it leaves out is out of reach in this session."
    return replace(state, loadout=chosen), (Item(name=chosen, status="loaded", message=message),)


def _with_required(access: CompiledPermissions, tool: Tool, out: Container[str]) -> tuple[Tool, ...] | None:
    """Return the tool and what it requires beyond what is out, or None where that cannot come (T8)."""
    together = {tool.id: tool} if tool.id not in out else {}
    pending = list(together.values())
    while pending:
        by = pending.pop()
        able = [needed for needed in required(access, by) if not tool_fault(access, needed)]
        if len(able) < len(by.requires):
            return None
        fresh = [needed for needed in able if needed.id not in out and needed.id not in together]
        together.update((needed.id, needed) for needed in fresh)
        pending.extend(fresh)
    return tuple(together.values())


def _room(access: CompiledPermissions, out: list[Tool], terms: CommandContext) -> Callable[[tuple[Tool, ...]], bool]:
    """Return a function that takes tools where the budget has room for all of them."""
    budget = access.agent.budget
    held = [*terms.meta, *out]
    count = len(held)
    tokens = terms.price(held) if terms.price is not None and budget.tokens is not None else 0

    def fits(tools: tuple[Tool, ...]) -> bool:
        nonlocal count, tokens
        price = terms.price(tools) if terms.price is not None and budget.tokens is not None else 0
        if budget.tools is not None and count + len(tools) > budget.tools:
            return False
        if budget.tokens is not None and tokens + price > budget.tokens:
            return False
        count, tokens = count + len(tools), tokens + price
        return True

    return fits


def _end_turn(access: CompiledPermissions, state: State) -> tuple[State, tuple[Item, ...]]:
    gone = tuple(lease for lease in state.leases if lease.lapses(state.turn))
    items = tuple(
        Item(
            name=display_name(access, lease.subject),
            status="unloaded",
            message=f"{title(access, lease.subject)} was hung back ({lease.until}).",
            subject=lease.subject,
        )
        for lease in gone
    )
    after = replace(
        state,
        turn=state.turn + 1,
        leases=tuple(lease for lease in state.leases if not lease.lapses(state.turn)),
        failure=None,
        evicted=tuple(item.name for item in items),
    )
    return after, items


def _mark_turn(access: CompiledPermissions, state: State, label: str) -> tuple[State, tuple[Item, ...]]:
    """Return the state with the label; the first one of a session ends nothing (G3)."""
    if state.label == label:
        return state, ()
    after, items = (state, ()) if state.label is None else _end_turn(access, state)
    return replace(after, label=label), items


def used(access: CompiledPermissions, state: State, tool_id: str) -> State:
    """Return the state with the tool used in this turn; the same where that is known already (S2)."""
    tool = access.world.catalog.by_id(tool_id)
    if tool is None:
        return state
    ids = _used_with(access, state, tool_id)
    covering = [lease for lease in state.leases if any(held.id in ids for held, _ in leased_tools(access, lease))]
    if not covering or (tool_id in state.recent and all(lease.used_turn == state.turn for lease in covering)):
        return state
    recent = (tool_id, *(other for other in state.recent if other != tool_id))[:RECENT_KEPT]
    return replace(state.used(covering), recent=recent)


def _used_with(access: CompiledPermissions, state: State, tool_id: str) -> frozenset[str]:
    """Return a tool with those that it stands for: what requires it is used with it (T8)."""
    outs = active_tools(access, state)
    found, pending = {tool_id}, [tool_id]
    while pending:
        out = outs.get(pending.pop())
        fresh = set(out.needed_by) - found if out is not None else set[str]()
        found |= fresh
        pending.extend(fresh)
    return frozenset(found)
