"""What a command does, with the tools and the policy that come with it: the one way to change a session (S5, T6)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.anticipation.anticipated_leases import Anticipation, beside_load
from pegboard.core.state.commands import Command, CommandContext, Load, Outcome
from pegboard.core.state.sessions import State
from pegboard.core.state.transitions import transition
from pegboard.core.surface.policy import later, without_secrets


def apply(
    permissions: CompiledPermissions,
    state: State,
    command: Command,
    terms: CommandContext,
    anticipation: Anticipation | None = None,
) -> tuple[State, Outcome]:
    """Return the state after a command, and its outcome with the policy of the tools that it added, but for hooks'.

    With ``anticipation`` a load that may bring the siblings of the tools that it names brings them, as far as they
    are cheap (S5).
    """
    after, outcome = transition(permissions, state, command, terms)
    if anticipation is not None and isinstance(command, Load) and command.siblings:
        after, outcome = beside_load(permissions, after, outcome, anticipation, terms)
    if outcome.added:
        outcome = replace(
            outcome, policy=without_secrets(terms.masker, permissions, later(permissions, after, outcome.added))
        )
    return after, outcome
