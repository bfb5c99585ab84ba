"""The line that follows the history and says what has changed; it never stands in the prefix (F2)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.commands import display_name
from pegboard.core.state.sessions import State, heal


def suffix(access: CompiledPermissions, state: State) -> str:
    """Return what is loaded now, what went at the end of the last turn, and what narrows the rest."""
    names = dict.fromkeys(display_name(access, lease.subject) for lease in heal(access, state).leases)
    said = [f"Loaded now: {', '.join(names)}."] if names else []
    gone = [name for name in state.evicted if name not in names]
    if gone:
        said.append(f"Hung back at the end of the last turn: {', '.join(gone)}.")
    if state.loadout is not None:
        said.append(f"Active loadout: {state.loadout}; what it leaves out is out of reach.")
    if state.shrunk is not None:
        said.append(f"To fit the budget only loadout '{state.shrunk}' is out from the start; the rest may be loaded.")
    return " ".join(said)
