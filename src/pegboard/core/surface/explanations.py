"""The four predicates for one tool, and the chain of reasons behind them (F5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pegboard.core.access.decisions import Reason
from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.model.agents import UnloadedCall
from pegboard.core.model.leases import Lease, LeaseReason
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import exclusion_reason, leased_tools, unloaded_in_turn
from pegboard.core.surface.surfaces import seen_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The four predicates for one tool, with the chain of reasons (F5).

    Attributes:
        tool: the wire name, or the name of a plugin that has not been seen yet.
        id: the id of the tool; nothing where none is known.
        permitted: whether the agent may use it.
        loaded: whether a lease stands on it.
        visible: whether the model sees it now.
        callable: whether a call would run now.
        reasons: why, first of what is permitted, then of what is loaded; each has a code, a text and, where there is
            one, a place.
    """

    tool: str
    permitted: bool
    loaded: bool
    visible: bool
    callable: bool
    reasons: tuple[Reason, ...]
    id: str = ""

    @property
    def key(self) -> str:
        """Return what leads to the tool and to no other."""
        return self.id or self.tool


def explain(permissions: CompiledPermissions, state: State, tool: Tool, *, known_conflict: str = "") -> Explanation:
    """Return the four predicates for a tool and the chain of reasons (F5)."""
    permitted = permissions.permits(tool)
    seen = seen_tools(permissions, state).get(tool.id)
    loaded = None if seen is None or seen.leaving else seen
    plugin = permissions.world.catalog.plugins[tool.plugin]
    key = loaded.key if loaded is not None else permissions.entries.of_tool(tool).key
    fault = tool_fault(permissions, tool, key)
    now = loaded is not None and not loaded.pending and not fault
    reasons = [*permissions.decide(tool).reasons, *_state_reasons(permissions, state, tool, loaded)]
    if known_conflict:
        reasons.append(Reason(code="conflict", text=known_conflict))
    if fault and permitted:
        reasons.append(Reason(code="unavailable", text=fault, where=plugin.place))
    if plugin.variant(key).stale and permitted:
        reasons.append(Reason(code="stale", text=STALE, where=plugin.place))
    return Explanation(
        tool=tool.wire,
        permitted=permitted,
        loaded=loaded is not None,
        visible=now or (seen is not None and seen.leaving and not fault),
        callable=permitted and now,
        reasons=tuple(reasons),
        id=tool.id,
    )


def _state_reasons(
    permissions: CompiledPermissions, state: State, tool: Tool, loaded: LoadedTool | None
) -> Iterator[Reason]:
    """Yield why a tool is loaded, or why it is not although it is permitted."""
    if loaded is not None:
        yield from loaded_because(permissions, state, loaded)
        if loaded.pending:
            yield Reason(code="next_request", text=_NEXT_REQUEST)
    elif permissions.permits(tool):
        why = exclusion_reason(permissions, state, tool)
        if why is None and unloaded_in_turn(permissions, state, tool):
            why = Reason(code="unloaded_in_turn", text=_UNLOADED)
        yield why or Reason(code="not_loaded", text=_NOT_LOADED[permissions.agent.unloaded_call])


def loaded_because(permissions: CompiledPermissions, state: State, loaded: LoadedTool) -> tuple[Reason, ...]:
    """Return why a tool is loaded, the reason that put it into its place first (F5)."""
    return tuple(_lease_reason(permissions, state, loaded, because) for because in loaded.because)


STALE: Final = "Its plugin's code changed; this is the old description until the plugin has started."
_NEXT_REQUEST = "It joins the surface with the next turn, and cannot be called before (activation: next_request)."
_UNLOADED = "It was unloaded by name in this turn: it may be loaded by name, but not by a call before the turn ends."

_NOT_LOADED: Mapping[UnloadedCall, str] = {
    "safe": "It is not loaded; a call loads it, and runs where it comes through call_tool and is safe.",
    "schema": "It is not loaded; it may be.",
    "run": "It is not loaded; a call loads it first, where that is possible, and runs (unloaded_call: run).",
    "reject": "It is not loaded; it may be, but not by a call (unloaded_call: reject).",
}

_LEASE_TEXT: Mapping[LeaseReason, str] = {
    LeaseReason.ESSENTIAL: "It is loaded because it is essential; it cannot be unloaded.",
    LeaseReason.STATIC: "It is loaded because it is a static tool; it cannot be unloaded.",
    LeaseReason.META: "It is loaded because tools can be loaded.",
    LeaseReason.INITIAL: "It is loaded because its toolkit is initial; it is sticky.",
    LeaseReason.SWITCH: "It is loaded because only a switch grants it; it is sticky.",
    LeaseReason.LOADOUT: "It is loaded because a loadout makes it active; it is sticky.",
    LeaseReason.LOADED: "It is loaded because a person or the model loaded it.",
    LeaseReason.FALLBACK: "It is loaded for this turn, by fallback.",
    LeaseReason.ANTICIPATED: "It was loaded in advance.",
}


def _lease_reason(permissions: CompiledPermissions, state: State, loaded: LoadedTool, because: LeaseReason) -> Reason:
    if because is LeaseReason.REQUIRED:
        return Reason(
            code="loaded_required", text=f"It is loaded because {_names_of_dependents(permissions, loaded)} it."
        )
    text = _LEASE_TEXT[because]
    if because in (LeaseReason.LOADED, LeaseReason.FALLBACK, LeaseReason.ANTICIPATED):
        found = lease_of(permissions, state, loaded, because)
        if found is not None:
            name = f"{found.subject.kind} '{found.subject.name}'"
            when = f"in turn {found.loaded_turn}, {found.until.in_words}."
            if because is LeaseReason.ANTICIPATED:
                text = f"It is loaded because {name} was loaded ahead of being asked for {when}"
            else:
                by = f"by agent '{found.by}', which shares it, " if found.by else ""
                text = f"It is loaded because {name} was loaded {by}{when}"
    return Reason(code=f"loaded_{because.value}", text=text)


def _names_of_dependents(permissions: CompiledPermissions, loaded: LoadedTool) -> str:
    tools = (permissions.world.catalog.by_id(tool_id) for tool_id in loaded.needed_by)
    names = [tool.wire for tool in tools if tool is not None]
    return f"{', '.join(names)} {'requires' if len(names) == 1 else 'require'}"


def lease_of(permissions: CompiledPermissions, state: State, loaded: LoadedTool, because: LeaseReason) -> Lease | None:
    """Return the lease of the session that stands on a loaded tool for a reason, or None."""
    for lease in state.leases:
        if lease.because is because and any(tool.id == loaded.tool.id for tool, _ in leased_tools(permissions, lease)):
            return lease
    return None
