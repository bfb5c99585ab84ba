"""The line that follows the history and reports what has changed; it never stands in the prefix (F2)."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.leases import Lease
from pegboard.core.state.commands import display_name
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import heal


def suffix(permissions: CompiledPermissions, state: State) -> str:
    """Return what is loaded now and from the next request on, what went with the last turn, what narrows the rest."""
    leases = heal(permissions, state).leases
    now = _names(permissions, (lease for lease in leases if lease.from_turn <= state.turn))
    later = [name for name in _names(permissions, leases) if name not in now]
    names = (*now, *later)
    parts = [f"Loaded now: {', '.join(now)}."] if now else []
    if later:
        parts.append(f"Loaded from the next request on: {', '.join(later)}.")
    gone = [name for name in state.evicted if name not in names]
    if gone:
        parts.append(f"Unloaded at the end of the last turn: {', '.join(gone)}.")
    if state.loadout is not None:
        parts.append(f"Active loadout: {state.loadout}; what it excludes is out of reach.")
    if state.shrunk is not None:
        parts.append(
            f"To fit the budget only loadout '{state.shrunk}' is loaded from the start; the rest may be loaded."
        )
    return " ".join(parts)


def _names(permissions: CompiledPermissions, leases: Iterable[Lease]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(display_name(permissions, lease.subject) for lease in leases))
