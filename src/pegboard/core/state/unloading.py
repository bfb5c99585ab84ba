"""Unload what a name means (S10)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.access.names import display_name, lookup, title
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import STICKY, UNLOAD, Lease, LeaseReason
from pegboard.core.state.active_tools import active_tools, from_start
from pegboard.core.state.commands import NO_SESSION, CommandContext, Item, not_found
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import excluded_by_loadout, leased_tools, stands_for_nothing


def unload(permissions: CompiledPermissions, state: State, name: str, terms: CommandContext) -> tuple[State, Item]:
    """Return the state with what a name means unloaded, or why not (S10)."""
    ref = lookup(permissions, name, active_tools(permissions, state))
    if ref is None:
        return state, not_found(permissions, state, name)
    tools = tuple(tool for tool, _ in leased_tools(permissions, Lease(subject=ref, until=UNLOAD)))
    if tools and all(excluded_by_loadout(permissions, state, tool) for tool in tools):
        return state, not_found(permissions, state, name)
    targets = frozenset(tool.id for tool in tools)
    after = _without(permissions, state, ref, targets)
    subject, changes, details = title(permissions, ref), after != state, dict[str, object]()
    requiring = _requiring(permissions, after, targets)
    if _sticky(permissions, state, ref, targets, changes=changes):
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


def _requiring(permissions: CompiledPermissions, after: State, targets: frozenset[str]) -> str:
    """Return the names of the tools that still need one of the targets once it is unloaded."""
    active = active_tools(permissions, after)
    requiring = sorted({by for i in targets if i in active for by in active[i].needed_by} - targets)
    return ", ".join(display_name(permissions, Ref("tool", tool_id)) for tool_id in requiring)


def _sticky(
    permissions: CompiledPermissions, state: State, ref: Ref, targets: frozenset[str], *, changes: bool
) -> bool:
    """Return whether what a name stands for is loaded from the start, all of it or all that is loaded."""
    if ref.kind == "toolkit":
        return from_start(permissions, ref.name)
    active = active_tools(permissions, state)
    stuck = [not STICKY.isdisjoint(active[i].because) for i in targets if i in active]
    return any(stuck) and (all(stuck) or not changes)


def _without(permissions: CompiledPermissions, state: State, ref: Ref, targets: frozenset[str]) -> State:
    """Return the state without what a name stands for.

    A toolkit takes its own lease with it, where it has one, and what was anticipated of it (S5); a plugin or tool goes
    from every lease that covers it.
    """
    alone = ref.kind == "toolkit" and bool(state.leases_on(ref))
    leases: list[Lease] = []
    for lease in state.leases:
        covered = frozenset(tool.id for tool, _ in leased_tools(permissions, lease))
        ahead = lease.because is LeaseReason.ANTICIPATED
        whole = covered and covered <= targets and (ahead if alone else _smaller(lease, ref))
        if lease.subject == ref or whole:
            continue
        cut = covered & targets
        spare = (ref.kind == "toolkit" and not ahead) or not cut
        leases.append(lease if spare else replace(lease, excluded=lease.excluded | cut))
    return state.with_leases(
        lease for lease in leases if not lease.excluded or not stands_for_nothing(permissions, lease)
    )


def _smaller(lease: Lease, ref: Ref) -> bool:
    return ref.kind != "toolkit" or lease.subject.kind != "toolkit"
