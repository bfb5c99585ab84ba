"""Hang back what a name means (S10)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.catalog import Ref
from pegboard.core.commands import NO_SESSION, Item, Terms, label, not_found
from pegboard.core.leases import STICKY, UNLOAD, Lease
from pegboard.core.lookup import lookup
from pegboard.core.permissions import Access
from pegboard.core.resolving import outs_of
from pegboard.core.sessions import State, leased_tools


def unload(access: Access, state: State, name: str, terms: Terms) -> tuple[State, Item]:
    """Return the state with what a name means hung back, or why not (S10)."""
    ref = lookup(access, name)
    if ref is None:
        return state, not_found(access, name)
    probe = Lease(subject=ref, until=UNLOAD)
    targets = frozenset(tool.id for tool, _ in leased_tools(access, probe))
    outs = outs_of(access, state)
    stuck = [outs[i] for i in targets if i in outs and STICKY & set(outs[i].because)]
    own = state.lease(ref)
    after = _without(access, state, ref, targets)
    if own is None and (_initial(access, ref) or (stuck and after == state)):
        message = f"{label(ref)} cannot be unloaded: it is out from the start."
        return state, Item(name=name, status="sticky", message=message, subject=ref)
    if not terms.stable:
        return state, Item(name=name, status="error", message=NO_SESSION, subject=ref)
    if after == state:
        needed = sorted({by for i in targets if i in outs for by in outs[i].needed_by})
        if needed:
            message = f"{label(ref)} cannot be unloaded: {', '.join(needed)} requires it."
            return state, Item(name=name, status="sticky", message=message, subject=ref)
        message = f"{label(ref)} is not loaded."
        return state, Item(name=name, status="not_loaded", message=message, subject=ref)
    when = (
        "will be removed on the next request in this session."
        if terms.takes_effect == "next_request"
        else "is unloaded."
    )
    message = f"{label(ref)} {when}"
    return after, Item(name=name, status="unloaded", message=message, subject=ref)


def _initial(access: Access, ref: Ref) -> bool:
    return ref.kind == "toolkit" and ref.name in access.agent.initial_toolkits


def _without(access: Access, state: State, ref: Ref, targets: frozenset[str]) -> State:
    """Return the state without what a name stands for.

    A toolkit takes only its own lease with it, where it has one; a plugin or tool goes from every
    lease that covers it.
    """
    if ref.kind == "toolkit" and state.lease(ref) is not None:
        kept = tuple(lease for lease in state.leases if lease.subject != ref)
        return replace(state, leases=kept)
    leases: list[Lease] = []
    for lease in state.leases:
        covered = frozenset(tool.id for tool, _ in leased_tools(access, lease))
        if lease.subject == ref or (covered and covered <= targets and _smaller(lease, ref)):
            continue
        cut = covered & targets
        spare = ref.kind == "toolkit" or not cut
        leases.append(lease if spare else replace(lease, minus=lease.minus | cut))
    kept = tuple(lease for lease in leases if not lease.minus or _any_left(access, lease))
    return replace(state, leases=kept)


def _smaller(lease: Lease, ref: Ref) -> bool:
    return ref.kind != "toolkit" or lease.subject.kind != "toolkit"


def _any_left(access: Access, lease: Lease) -> bool:
    return any(True for _ in leased_tools(access, lease))
