"""Hang back what a name means (S10)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.access.lookup import lookup
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import STICKY, UNLOAD, Lease
from pegboard.core.state.active_tools import active_tools, from_start
from pegboard.core.state.commands import NO_SESSION, CommandContext, Item, display_name, not_found, title
from pegboard.core.state.sessions import State, leased_tools
from pegboard.core.state.surfaces import LoadedTool


def unload(access: CompiledPermissions, state: State, name: str, terms: CommandContext) -> tuple[State, Item]:
    """Return the state with what a name means hung back, or why not (S10)."""
    ref = lookup(access, name)
    if ref is None:
        return state, not_found(access, name)
    subject = title(access, ref)
    targets = frozenset(tool.id for tool, _ in leased_tools(access, Lease(subject=ref, until=UNLOAD)))
    outs = active_tools(access, state)
    after = _without(access, state, ref, targets)
    if _sticky(access, ref, [outs[i] for i in targets if i in outs], changes=after != state):
        message = f"{subject} cannot be unloaded: it is out from the start."
        return state, Item(name=name, status="sticky", message=message, subject=ref)
    still = active_tools(access, after)
    needing = sorted({by for i in targets if i in still for by in still[i].needed_by} - targets)
    if after == state:
        if needing and ref.kind != "toolkit":
            message = f"{subject} cannot be unloaded: {_names(access, needing)} needs it."
            return state, Item(name=name, status="sticky", message=message, subject=ref)
        return state, Item(name=name, status="not_loaded", message=f"{subject} is not loaded.", subject=ref)
    if not terms.stable:
        return state, Item(name=name, status="error", message=NO_SESSION, subject=ref)
    when = "will be removed on the next request in this session." if _later(terms) else "is unloaded."
    kept = f" A part of it stays out: {_names(access, needing)} needs it." if needing else ""
    return after, Item(name=name, status="unloaded", message=f"{subject} {when}{kept}", subject=ref)


def _later(terms: CommandContext) -> bool:
    return terms.takes_effect == "next_request"


def _names(access: CompiledPermissions, tool_ids: list[str]) -> str:
    return ", ".join(display_name(access, Ref("tool", tool_id)) for tool_id in tool_ids)


def _sticky(access: CompiledPermissions, ref: Ref, out: list[LoadedTool], *, changes: bool) -> bool:
    """Return whether what a name stands for is out from the start, all of it or all that is out."""
    if ref.kind == "toolkit":
        return from_start(access, ref.name)
    stuck = [STICKY.intersection(held.because) != frozenset() for held in out]
    return any(stuck) and (all(stuck) or not changes)


def _without(access: CompiledPermissions, state: State, ref: Ref, targets: frozenset[str]) -> State:
    """Return the state without what a name stands for.

    A toolkit takes only its own lease with it, where it has one; a plugin or tool goes from every
    lease that covers it.
    """
    if ref.kind == "toolkit" and state.leases_on(ref):
        kept = tuple(lease for lease in state.leases if lease.subject != ref)
        return replace(state, leases=kept)
    leases: list[Lease] = []
    for lease in state.leases:
        covered = frozenset(tool.id for tool, _ in leased_tools(access, lease))
        if lease.subject == ref or (covered and covered <= targets and _smaller(lease, ref)):
            continue
        cut = covered & targets
        spare = ref.kind == "toolkit" or not cut
        leases.append(lease if spare else replace(lease, excluded=lease.excluded | cut))
    return state.with_leases(lease for lease in leases if not lease.excluded or _any_left(access, lease))


def _smaller(lease: Lease, ref: Ref) -> bool:
    return ref.kind != "toolkit" or lease.subject.kind != "toolkit"


def _any_left(access: CompiledPermissions, lease: Lease) -> bool:
    return any(True for _ in leased_tools(access, lease))
