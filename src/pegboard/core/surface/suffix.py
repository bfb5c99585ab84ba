"""The line that follows the history and reports what has changed; it never stands in the prefix (F2)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.commands import display_name
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import heal


def suffix(access: CompiledPermissions, state: State) -> str:
    """Return what is loaded now, what went at the end of the last turn, and what narrows the rest."""
    names = dict.fromkeys(display_name(access, lease.subject) for lease in heal(access, state).leases)
    parts = [f"Loaded now: {', '.join(names)}."] if names else []
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
