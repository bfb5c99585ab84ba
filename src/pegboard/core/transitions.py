"""Pure transitions: state + command → new state + outcome (S5–S10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from pegboard.core.catalog import Ref
from pegboard.core.commands import (
    FINE,
    NO_SESSION,
    Command,
    EndTurn,
    Fallback,
    Item,
    Load,
    MarkTurn,
    Outcome,
    Terms,
    Unload,
    Use,
    bare,
    label,
)
from pegboard.core.leases import TURN, Because, Lease
from pegboard.core.loading import load
from pegboard.core.permissions import Access
from pegboard.core.resolving import outs_of
from pegboard.core.sessions import State, heal, leased_tools
from pegboard.core.surfaces import Out
from pegboard.core.tools import Tool
from pegboard.core.unloading import unload

RECENT_KEPT = 64


def apply(access: Access, state: State, command: Command, terms: Terms) -> tuple[State, Outcome]:
    """Return the state after a command, and what to say about it; ``state`` is healed first (S3)."""
    state = heal(access, state)
    before = outs_of(access, state)
    match command:
        case Load():
            after, items = _each(command.names, state, lambda s, n: load(access, s, n, command, terms))
        case Unload():
            after, items = _each(command.names, state, lambda s, n: unload(access, s, n, terms))
        case Fallback():
            after, items = _fallback(access, state, terms)
        case EndTurn():
            after, items = _end_turn(state)
        case MarkTurn():
            after, items = _mark_turn(state, command.label)
        case Use():
            after, items = _use(access, state, command.tool), ()
        case _:
            assert_never(command)
    return after, _outcome(access, before, after, items, terms)


def _each(
    names: tuple[str, ...], state: State, step: Callable[[State, str], tuple[State, Item]]
) -> tuple[State, tuple[Item, ...]]:
    items: list[Item] = []
    for name in dict.fromkeys(names):
        state, item = step(state, name)
        items.append(item)
    return state, tuple(items)


def _outcome(access: Access, before: Mapping[str, Out], state: State, items: tuple[Item, ...], terms: Terms) -> Outcome:
    after = outs_of(access, state)
    fine = sum(item.status in FINE for item in items)
    status = "ok" if fine == len(items) else "partial" if fine else "refused"
    return Outcome(
        status=status,
        items=items,
        takes_effect=terms.takes_effect if any(i.status in FINE for i in items) else None,
        loaded=tuple(out.tool.wire for out in after.values()),
        added=tuple(o.tool for i, o in after.items() if i not in before),
        removed=tuple(o.tool.wire for i, o in before.items() if i not in after),
        message=" ".join(item.message for item in items),
        turn=state.turn,
    )


def _fallback(access: Access, state: State, terms: Terms) -> tuple[State, tuple[Item, ...]]:
    if not terms.stable:
        return state, (Item(name="fallback", status="error", message=NO_SESSION),)
    outs = outs_of(access, state)
    candidates = [tool for tool in access.permitted if not _tool_fault(access, tool)]
    missing = [tool for tool in candidates if tool.id not in outs]
    rank = {tool_id: position for position, tool_id in enumerate(state.recent)}
    missing.sort(key=lambda tool: rank.get(tool.id, len(rank)))
    room = _room(access, [out.tool for out in outs.values()], terms)
    taken = [tool for tool in missing if room(tool)]
    for tool in taken:
        ref = Ref("tool", tool.id)
        state = state.with_lease(
            Lease(
                subject=ref,
                until=TURN,
                because=Because.FALLBACK,
                loaded_turn=state.turn,
                used_turn=state.turn,
            )
        )
    now_out = sum(tool.id in outs for tool in candidates) + len(taken)
    left_out = [tool.wire for tool in missing if tool not in taken]
    of = "All " if not left_out else ""
    count = f"{of}{now_out}" if not left_out else f"{now_out} of {len(candidates)}"
    message = f"Fallback mode: {count} tools loaded for this turn only"
    details = {"out": now_out, "permitted": len(candidates), "left_out": left_out}
    return state, (Item(name="fallback", status="loaded", message=message, details=details),)


def _tool_fault(access: Access, tool: Tool) -> str:
    plugin = access.world.catalog.plugins[tool.plugin]
    return tool.unavailable or plugin.variant(access.entry_for(tool).key).unavailable


def _room(access: Access, out: list[Tool], terms: Terms) -> Callable[[Tool], bool]:
    """Return a function that takes a tool where the budget has room for it."""
    budget = access.agent.budget
    held = [*terms.meta, *out]
    count = len(held)
    tokens = terms.price(held) if terms.price is not None and budget.tokens is not None else 0

    def fits(tool: Tool) -> bool:
        nonlocal count, tokens
        price = terms.price([tool]) if terms.price and budget.tokens is not None else 0
        if budget.tools is not None and count + 1 > budget.tools:
            return False
        if budget.tokens is not None and tokens + price > budget.tokens:
            return False
        count, tokens = count + 1, tokens + price
        return True

    return fits


def _end_turn(state: State) -> tuple[State, tuple[Item, ...]]:
    gone = [lease for lease in state.leases if lease.lapses(state.turn)]
    items = tuple(
        Item(
            name=bare(lease.subject),
            status="unloaded",
            message=f"{label(lease.subject)} was hung back ({lease.until}).",
            subject=lease.subject,
        )
        for lease in gone
    )
    after = replace(
        state,
        turn=state.turn + 1,
        leases=tuple(lease for lease in state.leases if lease not in gone),
        failure=None,
    )
    return after, items


def _mark_turn(state: State, label: str) -> tuple[State, tuple[Item, ...]]:
    """Return the state with the label; the first one of a session ends nothing (G3)."""
    if state.label == label:
        return state, ()
    after, items = (state, ()) if state.label is None else _end_turn(state)
    return replace(after, label=label), items


def _use(access: Access, state: State, tool_id: str) -> State:
    """Return the state with the tool used in this turn; the same where that is known already (S2)."""
    tool = access.world.catalog.by_id(tool_id)
    if tool is None:
        return state
    covering = [lease for lease in state.leases if any(held.id == tool_id for held, _ in leased_tools(access, lease))]
    if not covering or (tool_id in state.recent and all(lease.used_turn == state.turn for lease in covering)):
        return state
    recent = (tool_id, *(other for other in state.recent if other != tool_id))[:RECENT_KEPT]
    leases = tuple(replace(lease, used_turn=state.turn) if lease in covering else lease for lease in state.leases)
    return replace(state, leases=leases, recent=recent)
