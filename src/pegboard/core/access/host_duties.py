"""Which of the host's own tools an agent has, and for whom it may delegate to whom (P8)."""

from __future__ import annotations

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.catalog import split_kind


def host_duties(access: CompiledPermissions) -> tuple[str, ...]:
    """Return the host's own tools that the agent lists, in its order, without those that are switched off.

    A child that is cut to its parent has those of its parent only (P8).
    """
    off = {split_kind(name)[1] for name, on in access.switches.effective.items() if not on}
    parent = access.constraints.parent
    above = access.agent.duties if parent is None else host_duties(parent)
    return tuple(name for name in access.agent.duties if name not in off and name in above)


def delegates(access: CompiledPermissions) -> tuple[str, ...]:
    """Return the agents that may work for this one under their own profiles (P8)."""
    parent = access.constraints.parent
    known = access.world.agents if parent is None else delegates(parent)
    return tuple(name for name in access.agent.may_delegate if name in known)
