"""What a command does, with what the model is shown of it: the one way to change a session (T6)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.state.commands import Command, CommandContext, Outcome
from pegboard.core.state.sessions import State
from pegboard.core.state.transitions import transition
from pegboard.core.surface.policy import later


def apply(access: CompiledPermissions, state: State, command: Command, terms: CommandContext) -> tuple[State, Outcome]:
    """Return the state after a command, and its outcome with the policy of the tools that it added."""
    after, outcome = transition(access, state, command, terms)
    if outcome.added:
        outcome = replace(outcome, policy=terms.masker.text(later(access, after, outcome.added)))
    return after, outcome
