"""Take out what a name means (S5, S9, S10, T5)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.catalog import Ref
from pegboard.core.commands import NO_SESSION, Item, Load, Terms, bare, label, not_found
from pegboard.core.conflicts import conflict_of
from pegboard.core.delivery import TakesEffect
from pegboard.core.leases import Lease
from pegboard.core.lookup import lookup
from pegboard.core.permissions import Access
from pegboard.core.resolving import outs_of, unavailable
from pegboard.core.selectors import Entry
from pegboard.core.sessions import State, lease_entries, leased_tools
from pegboard.core.tools import Tool


def load(access: Access, state: State, name: str, command: Load, terms: Terms) -> tuple[State, Item]:
    """Return the state with what a name means taken out, or why not; all of it or nothing (S10)."""
    ref = lookup(access, name)
    if ref is None:
        return state, not_found(access, name)
    lease = Lease(
        subject=ref,
        until=command.until or terms.until,
        loaded_turn=state.turn,
        used_turn=state.turn,
    )
    entries = tuple(lease_entries(access, lease))
    if (clash := _scope_clash(access, entries)) is not None:
        return state, replace(clash, name=name, subject=ref)
    tools = tuple(tool for tool, _ in leased_tools(access, lease))
    faults = _faults(access, entries, tools)
    if not tools and not faults:
        return state, not_found(access, name)
    already = _already(access, state, lease, tools)
    if already:
        message = f"{label(ref)} is already loaded."
        after = state.with_lease(lease) if _stronger(access, state, lease, tools) else state
        return after, Item(name=name, status="already_loaded", message=message, subject=ref)
    if not terms.stable:
        return state, Item(name=name, status="error", message=NO_SESSION, subject=ref)
    refusal = _refused(access, state, lease, entries, tools, faults, terms)
    if refusal is not None:
        return state, replace(refusal, name=name, subject=ref)
    message = _loaded_message(ref, terms.takes_effect)
    return state.with_lease(lease), Item(name=name, status="loaded", message=message, subject=ref)


def _refused(
    access: Access,
    state: State,
    lease: Lease,
    entries: tuple[Entry, ...],
    tools: tuple[Tool, ...],
    faults: tuple[str, ...],
    terms: Terms,
) -> Item | None:
    """Return why a load that may be is not done now: conflict, unavailable, budget, in this order."""
    subject = label(lease.subject)
    conflict = conflict_of(access, outs_of(access, state), entries, terms.masker)
    if conflict is not None:
        details = {
            "conflicting_tool": conflict.tool,
            "existing_overrides": conflict.existing,
            "candidate_overrides": conflict.candidate,
        }
        return Item(name="", status="conflict", message=f"{subject} {conflict.message}", details=details)
    faults = faults or _missing_requirements(access, tools)
    if faults:
        return Item(
            name="",
            status="tool_unavailable",
            message=f"{subject} is not available now: {' '.join(faults)}",
            details={"unavailable_messages": list(faults)},
        )
    return _over_budget(access, state, state.with_lease(lease), subject, terms)


def _loaded_message(ref: Ref, when: TakesEffect) -> str:
    """Return the sentence of seed 000, or one that says when the tools can be called."""
    if when == "next_request":
        return f"{label(ref)} will be available on the next request in this session."
    return f"{label(ref)} is loaded; call it from the next step on, not in the same batch."


def _scope_clash(access: Access, entries: tuple[Entry, ...]) -> Item | None:
    if not access.isolating:
        return None
    plugins = access.world.catalog.plugins
    clashing = [entry.plugin for entry in entries if plugins[entry.plugin].shared_only]
    if not clashing:
        return None
    names = ", ".join(dict.fromkeys(clashing))
    return Item(
        name="",
        status="scope_incompatible",
        message=f"{names} cannot be used with {access.scope_label}: it works only where it is shared.",
        details={
            "scope_label": access.scope_label,
            "unsupported_tools": list(dict.fromkeys(clashing)),
        },
    )


def _faults(access: Access, entries: tuple[Entry, ...], tools: tuple[Tool, ...]) -> tuple[str, ...]:
    """Return why something of a subject cannot run now; the whole is loaded, or nothing (S10)."""
    plugins = access.world.catalog.plugins
    found: list[str] = []
    for entry in entries:
        plugin = plugins[entry.plugin]
        fault = plugin.variant(entry.key).unavailable
        held = any(access.permits(tool) for tool in entry.tools)
        if fault and (held or (not entry.tools and access.grants_unseen(plugin))):
            found.append(f"{entry.plugin}: {fault}")
    found.extend(f"{tool.wire}: {tool.unavailable}" for tool in tools if tool.unavailable)
    return tuple(dict.fromkeys(found))


def _missing_requirements(access: Access, tools: tuple[Tool, ...]) -> tuple[str, ...]:
    catalog = access.world.catalog
    return tuple(
        f"{tool.wire} needs a tool that is not available to this agent."
        for tool in tools
        for needed in (catalog.by_id(tool_id) for tool_id in tool.requires)
        if needed is None or not access.permits(needed) or needed.unavailable
    )


def _already(access: Access, state: State, lease: Lease, tools: tuple[Tool, ...]) -> bool:
    subject = lease.subject
    held = state.lease(subject)
    if subject.kind == "toolkit":
        initial = subject.name in access.agent.initial_toolkits
        return initial or (held is not None and not held.minus)
    outs = outs_of(access, state)
    return bool(tools) and all(tool.id in outs for tool in tools)


def _stronger(access: Access, state: State, lease: Lease, tools: tuple[Tool, ...]) -> bool:
    """Return whether loading again would make some lease stand longer (S5)."""
    outs = outs_of(access, state)
    return any(tool.id not in outs or outs[tool.id].until < lease.until for tool in tools)


def _over_budget(access: Access, before: State, after: State, subject: str, terms: Terms) -> Item | None:
    budget = access.agent.budget
    if not budget:
        return None
    outs = [o for o in outs_of(access, after).values() if not unavailable(access, o)]
    tools = [*terms.meta, *(out.tool for out in outs)]
    over: list[str] = []
    if budget.tools is not None and len(tools) > budget.tools:
        over.append(f"{len(tools)} tools of {budget.tools}")
    if budget.tokens is not None and terms.price is not None:
        tokens = terms.price(tools)
        if tokens > budget.tokens:
            over.append(f"{tokens} tokens of {budget.tokens}")
    if not over:
        return None
    could_go = [bare(lease.subject) for lease in before.leases]
    advice = f" Unload first, for example: {', '.join(could_go[:5])}." if could_go else ""
    return Item(
        name="",
        status="over_budget",
        message=f"{subject} does not fit the budget: it would take {' and '.join(over)}.{advice}",
        details={"could_unload": could_go},
    )
