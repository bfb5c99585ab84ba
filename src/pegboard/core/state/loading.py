"""Load what a name means, all of it or nothing (S5, S9, S10, T5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pegboard.core.access.names import display_name, lookup, title
from pegboard.core.access.permissions import CompiledPermissions, own_fault
from pegboard.core.model.leases import STICKY, Lease, LeaseReason
from pegboard.core.model.masking import Masker, mask_overrides
from pegboard.core.model.selectors import Entry
from pegboard.core.model.tools import EMPTY, JsonObject, Plugin, Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools, is_toolkit_from_start
from pegboard.core.state.commands import NO_SESSION, SUCCEEDED, CommandContext, Item, Load, not_found_item
from pegboard.core.state.requirements import all_required, missing_requirements
from pegboard.core.state.sessions import State
from pegboard.core.state.shrinking import excess, fit_to_budget, largest_fitting_loadout
from pegboard.core.state.subjects import excluded_by_loadout, lease_entries, leased_tools


def load(
    permissions: CompiledPermissions, state: State, name: str, command: Load, terms: CommandContext
) -> tuple[State, Item]:
    """Return the state with what a name means loaded, or why not; all of it or nothing (S10)."""
    ref = lookup(permissions, name, active_tools(permissions, state))
    if ref is None:
        return state, not_found_item(permissions, state, name)
    until = command.until or terms.until
    lease = Lease(
        subject=ref,
        until=until,
        loaded_turn=state.turn,
        used_turn=state.turn,
        from_turn=0 if command.renews else first_turn(state, terms),
        by=command.by,
    )
    after, item = _load(permissions, state, lease, terms)
    if item.status == "conflict":
        after, item = _load_instead(permissions, state, lease, terms) or (after, item)
    if item.status == "not_found" and item.subject is None:
        return state, not_found_item(permissions, state, name)
    if item.status in SUCCEEDED:
        after = replace(after, unloaded=tuple(subject for subject in after.unloaded if subject != ref))
    return after, replace(item, name=name, subject=ref)


def first_turn(state: State, terms: CommandContext) -> int:
    """Return the first turn in which what is loaded now is seen and can be called; 0 is at once (D2)."""
    return state.turn + 1 if terms.from_next_turn else 0


def _load_instead(
    permissions: CompiledPermissions, state: State, lease: Lease, terms: CommandContext
) -> tuple[State, Item] | None:
    """Return a load to which what no one asked for gives way, or None where that does not help (S9)."""
    plugins = {entry.plugin for entry in lease_entries(permissions, lease)}
    anticipated = state.anticipated
    concerned = [
        one for one in anticipated if any(entry.plugin in plugins for entry in lease_entries(permissions, one))
    ]
    for ending in (concerned, anticipated):
        after, item = _load(permissions, state.without(ending), lease, terms)
        if item.status != "conflict":
            return (after if item.status == "loaded" else state), item
    return None


_UNASKED: Final = frozenset({LeaseReason.ANTICIPATED, LeaseReason.REQUIRED})
"""Reasons of a tool that was not loaded by its name, or with what has it: that adds a reason of its own."""
_NOTHING = Item(name="", status="not_found", message="")


def _load(permissions: CompiledPermissions, state: State, lease: Lease, terms: CommandContext) -> tuple[State, Item]:
    """Return the state with the lease, or why it cannot stand, in the order of their precedence."""
    entries = lease_entries(permissions, lease)
    if (clash := _scope_clash(permissions, entries)) is not None:
        return state, clash
    subject = title(permissions, lease.subject)
    permitted = tuple(tool for tool, _ in leased_tools(permissions, lease))
    tools = tuple(tool for tool in permitted if not excluded_by_loadout(permissions, state, tool))
    if permitted and not tools:
        return state, _NOTHING
    faults = _faults(permissions, entries, tools)
    if not tools and not faults:
        return state, _NOTHING
    if _is_already_loaded(permissions, state, lease, tools):
        item = Item(name="", status="already_loaded", message=f"{subject} is already loaded.")
        return _use_again(permissions, state, lease, tools), item
    if not terms.stable:
        return state, Item(name="", status="error", message=NO_SESSION)
    refusal = _refusal_of_load(permissions, state, lease, entries, tools, faults, terms)
    if refusal is not None:
        return state, refusal
    return state.with_lease(lease), Item(name="", status="loaded", message=_loaded_message(subject, terms))


def _refusal_of_load(
    permissions: CompiledPermissions,
    state: State,
    lease: Lease,
    entries: tuple[Entry, ...],
    tools: tuple[Tool, ...],
    faults: tuple[str, ...],
    terms: CommandContext,
) -> Item | None:
    """Return why a load that may be is not done now: conflict, unavailable, budget, in this order."""
    subject = title(permissions, lease.subject)
    active, requires = active_tools(permissions, state), any(tool.requires for tool in tools)
    coming = (*tools, *all_required(permissions, tools)) if requires else tools
    conflict = conflict_of(permissions, active, entries, terms.masker) or name_conflict(active, coming)
    if conflict is not None:
        details = {
            "conflicting_tool": conflict.tool,
            "existing_overrides": conflict.existing,
            "candidate_overrides": conflict.candidate,
        }
        return Item(name="", status="conflict", message=f"{subject} {conflict.message}", details=details)
    rest = _why_partly_loaded(entries, tools, faults) if faults else ""
    if not faults and requires:
        faults = missing_requirements(permissions, tools)
    if faults:
        return Item(
            name="",
            status="tool_unavailable",
            message=f"{subject} is not available now: {' '.join(map(_end_sentence, faults))}{rest}",
            details={"unavailable_messages": list(faults)},
        )
    return _over_budget_refusal(permissions, state, state.with_lease(lease), subject, terms)


def _why_partly_loaded(entries: tuple[Entry, ...], tools: tuple[Tool, ...], faults: tuple[str, ...]) -> str:
    """Return what of a subject is not loaded only because all of it is, or nothing (S10)."""
    broken = {fault.partition(":")[0] for fault in faults}
    broken |= {tool.plugin for tool in tools if tool.wire in broken}
    whole = [entry.plugin for entry in entries if entry.plugin not in broken]
    if not whole:
        return ""
    names = ", ".join(dict.fromkeys(whole))
    return f" Nothing of it is loaded; the rest of it works and can be loaded by name: {names}."


def _end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _loaded_message(subject: str, terms: CommandContext) -> str:
    """Return the sentence of seed 000, or one that says when the tools can be called."""
    if terms.takes_effect == "next_request":
        return f"{subject} will be available on the next request in this session."
    return f"{subject} is loaded; call it from the next step on, not in the same batch."


def _scope_clash(permissions: CompiledPermissions, entries: tuple[Entry, ...]) -> Item | None:
    clashing = permissions.out_of_scope(entries)
    if not clashing:
        return None
    names = ", ".join(clashing)
    return Item(
        name="",
        status="scope_incompatible",
        message=f"{names} cannot be used with {permissions.scope.label}: it works only where it is shared.",
        details={
            "scope_label": permissions.scope.label,
            "unsupported_tools": list(clashing),
        },
    )


def _faults(permissions: CompiledPermissions, entries: tuple[Entry, ...], tools: tuple[Tool, ...]) -> tuple[str, ...]:
    """Return why something of a subject cannot run now; the whole is loaded, or nothing (S10)."""
    plugins = permissions.world.catalog.plugins
    found: list[str] = []
    for entry in entries:
        plugin = plugins[entry.plugin]
        variant = plugin.variants.get(entry.key)
        fault = variant.unavailable if variant is not None else ""
        if fault and _has_something(permissions, entry, plugin):
            found.append(f"{entry.plugin}: {fault}")
    found.extend(f"{tool.wire}: {fault}" for tool in tools if (fault := own_fault(permissions, tool)))
    return tuple(dict.fromkeys(found))


def _has_something(permissions: CompiledPermissions, entry: Entry, plugin: Plugin) -> bool:
    """Return whether something of an entry is permitted, or would be if it were known."""
    if entry.tools:
        return any(permissions.permits(tool) for tool in entry.tools)
    return permissions.grants_unseen(plugin)


def _is_already_loaded(permissions: CompiledPermissions, state: State, lease: Lease, tools: tuple[Tool, ...]) -> bool:
    """Return whether a load changes nothing: a toolkit has its own lease or none is needed (P2)."""
    subject = lease.subject
    if subject.kind == "toolkit":
        standing = state.leases_on(subject)
        lacking = frozenset[str].intersection(*(one.excluded for one in standing)) if standing else None
        start = is_toolkit_from_start(permissions, subject.name) and all(
            tool.id in active_tools(permissions, state) for tool in tools
        )
        return start or (lacking is not None and not lacking)
    active = active_tools(permissions, state)
    return bool(tools) and all(tool.id in active for tool in tools)


def _use_again(permissions: CompiledPermissions, state: State, lease: Lease, tools: tuple[Tool, ...]) -> State:
    """Return the state after loading what is loaded: what stands is used, and upgraded, never weakened (S5, S7)."""
    ids = {tool.id for tool in tools}
    state = state.used(one for one in state.leases if any(tool.id in ids for tool, _ in leased_tools(permissions, one)))
    active = active_tools(permissions, state)
    at_once = not lease.pending(state.turn)
    stronger = any(
        tool.id not in active
        or (active[tool.id].pending and at_once)
        or active[tool.id].until < lease.until
        or _UNASKED.issuperset(active[tool.id].because)
        for tool in tools
    )
    return state.with_lease(lease) if stronger else state


def _over_budget_refusal(
    permissions: CompiledPermissions, before: State, after: State, subject: str, terms: CommandContext
) -> Item | None:
    """Return the refusal of what does not fit, with what could go or step in; nothing where it fits (S9)."""
    over = excess(permissions, fit_to_budget(permissions, after, terms), terms) if permissions.budgeted else ""
    if not over:
        return None
    asked_for = before.without(before.anticipated).leases
    could_go = list(dict.fromkeys(display_name(permissions, lease.subject) for lease in asked_for))
    advice = f" Unload first, for example: {', '.join(could_go[:5])}." if could_go else ""
    details: dict[str, object] = {"could_unload": could_go}
    smaller = largest_fitting_loadout(permissions, after, terms)
    if smaller is not None and not permissions.agent.budget.shrink:
        advice += f" It would fit with loadout '{smaller}' for what is loaded from the start (budget: shrink)."
        details["loadout"] = smaller
    return Item(
        name="",
        status="over_budget",
        message=f"{subject} does not fit the budget: it would take {over}.{advice}",
        details=details,
    )


# -- the same tool from two places (T5) ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A tool that two places want with different overrides, or a name that two tools want."""

    tool: str
    existing: JsonObject = field(default=EMPTY)
    candidate: JsonObject = field(default=EMPTY)
    message: str = ""


def conflict_of(
    permissions: CompiledPermissions, active: Mapping[str, LoadedTool], entries: tuple[Entry, ...], masker: Masker
) -> Conflict | None:
    """Return the first conflict between what is loaded and what would be loaded, or within the latter."""
    by_plugin: dict[str, list[LoadedTool]] = {}
    for loaded in active.values():
        by_plugin.setdefault(loaded.tool.plugin, []).append(loaded)
    for position, entry in enumerate(entries):
        plugin = permissions.world.catalog.plugins[entry.plugin]
        for other in entries[:position]:
            if other.ids & entry.ids and not equal(plugin, other.overrides, entry.overrides):
                return _overrides_differ(plugin, other.overrides, entry.overrides, masker, _WITHIN)
        for loaded in by_plugin.get(entry.plugin, ()):
            if loaded.tool.id in entry.ids and not equal(plugin, loaded.overrides, entry.overrides):
                how = _WITH_WHAT_IS_LOADED if STICKY.isdisjoint(loaded.because) else _WITH_WHAT_IS_STICKY
                return _overrides_differ(plugin, loaded.overrides, entry.overrides, masker, how)
    return None


def name_conflict(active: Mapping[str, LoadedTool], tools: Iterable[Tool]) -> Conflict | None:
    """Return the first wire name that a loaded tool and one to be loaded share, or two to be loaded (G10)."""
    holders = {one.tool.wire: one.tool for one in active.values()}
    for tool in tools:
        holder = holders.setdefault(tool.wire, tool)
        if holder.id == tool.id:
            continue
        if holder.id not in active:
            how = "which would be loaded with it"
        elif STICKY.isdisjoint(active[holder.id].because):
            how = "which is loaded: unload that first"
        else:
            how = "which is loaded from the start"
        return Conflict(
            tool=tool.wire,
            message=f"conflicts: '{tool.id}' has the same name, '{tool.wire}', as '{holder.id}', {how}."
            f" A prefix for plugin '{tool.plugin}' gives it another name.",
        )
    return None


_WITH_WHAT_IS_LOADED = (
    "is loaded already with other settings. Unload it first, or write the same settings in both places."
)
_WITH_WHAT_IS_STICKY = (
    "is loaded from the start with other settings, and cannot be unloaded. Write the same settings in both places."
)
_WITHIN = "is in it twice, with different settings. Write the same settings in both places."


def _overrides_differ(
    plugin: Plugin, existing: JsonObject, candidate: JsonObject, masker: Masker, how: str
) -> Conflict:
    return Conflict(
        tool=plugin.name,
        existing=mask_overrides(existing, masker, plugin.secrets),
        candidate=mask_overrides(candidate, masker, plugin.secrets),
        message=f"conflicts: '{plugin.name}' {how}",
    )


def equal(plugin: Plugin, left: JsonObject, right: JsonObject) -> bool:
    """Return whether two overrides mean the same, ``5`` and ``"5"`` for an integer included."""
    return convert_overrides(plugin, left) == convert_overrides(plugin, right)


def convert_overrides(plugin: Plugin, overrides: JsonObject) -> dict[str, Any]:
    """Return overrides with every value in the type that the plugin's parameter has."""
    return {name: _convert_value(value, plugin.parameters.get(name, "")) for name, value in overrides.items()}


def _convert_value(value: Any, kind: str) -> Any:
    try:
        match kind, value:
            case ("boolean", str()) if value.casefold() in ("true", "false"):
                return value.casefold() == "true"
            case ("integer", str()):
                return int(value)
            case ("number", str() | int()) if not isinstance(value, bool):
                return float(value)
            case ("string", int() | float()) if not isinstance(value, bool):
                return str(value)
            case _:
                return value
    except ValueError:
        return value
