"""Which of the host's own tools an agent has, and for whom it may delegate to whom (P8)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import split_kind


def host_duties(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the host's own tools that the agent lists, in its order, without those that are switched off.

    A child that is cut to its parent has those of its parent only (P8).
    """
    off = {split_kind(name)[1] for name, on in permissions.switches.effective.items() if not on}
    parent = permissions.constraints.parent
    above = permissions.agent.duties if parent is None else host_duties(parent)
    return tuple(name for name in permissions.agent.duties if name not in off and name in above)


def delegates(permissions: CompiledPermissions) -> tuple[str, ...]:
    """Return the agents that may work for this one under their own profiles (P8)."""
    parent = permissions.constraints.parent
    known = permissions.world.agents if parent is None else delegates(parent)
    return tuple(name for name in permissions.agent.may_delegate if name in known)
