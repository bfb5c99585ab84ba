"""What a command does, with the tools and the policy text that come with it: the one way to change a session (S5, T6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.anticipation.anticipated_leases import Anticipation, candidate, fits
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import Command, CommandContext, Load, Outcome
from pegboard.core.state.sessions import State
from pegboard.core.state.transitions import transition
from pegboard.core.surface.policy import later, without_secrets


def with_siblings(
    permissions: CompiledPermissions,
    state: State,
    plugins: Iterable[str],
    anticipation: Anticipation,
    terms: CommandContext,
) -> tuple[State, tuple[Lease, ...]]:
    """Return the state with what else these plugins have, as far as it is cheaper carried than asked for."""
    brought: list[Lease] = []
    for plugin in dict.fromkeys(plugins):
        found = candidate(permissions, state, Ref("plugin", plugin), anticipation)
        if (
            found is not None
            and anticipation.price(found.adds) <= anticipation.whole
            and fits(permissions, state, found, terms)
        ):
            state = state.with_lease(found.lease)
            brought.append(found.lease)
    return state, tuple(brought)


def beside_load(
    permissions: CompiledPermissions, state: State, outcome: Outcome, anticipation: Anticipation, terms: CommandContext
) -> tuple[State, Outcome]:
    """Return what a load did once the siblings of the tools that it names have joined behind them."""
    named = (item.subject for item in outcome.items if item.status in ("loaded", "already_loaded"))
    plugins = [ref.name.partition("/")[0] for ref in named if ref is not None and ref.kind == "tool"]
    after, brought = with_siblings(permissions, state, plugins, anticipation, terms)
    if not brought:
        return state, outcome
    before, active = active_tools(permissions, state), active_tools(permissions, after)
    fresh = tuple(loaded.tool for key, loaded in active.items() if key not in before)
    loaded = tuple(one.tool.wire for one in active.values())
    subjects = tuple(lease.subject for lease in brought)
    return after, replace(outcome, added=(*outcome.added, *fresh), loaded=loaded, anticipated=subjects)


def used_plugins(permissions: CompiledPermissions, state: State) -> tuple[str, ...]:
    """Return the plugins of which a tool was used that is still loaded, the last used first."""
    active = active_tools(permissions, state)
    return tuple(dict.fromkeys(tool_id.partition("/")[0] for tool_id in state.recent if tool_id in active))


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
