"""Load what a user's message makes probable, before the model asks for it (S5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.anticipation.anticipated_leases import (
    Anticipation,
    candidate,
    fits_budget,
    unused_leases,
    used_plugins,
    with_siblings,
)
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import Lease
from pegboard.core.model.tools import Tool
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import leased_tools

RANKED: Final = 20
"""How many ranked tools speak for their plugins."""
_SPEAKING: Final = 3
"""How many of a plugin's best tools speak for it."""
CLEAR: Final = 1.5
"""How many times the evidence of another plugin a plugin needs to be the one that is meant."""
_ENDS: Final = re.compile(r"(?<=[.!?…;])\s+|(?<=[。！？；])|\n")
_LEAST_LETTERS: Final = 10
"""How many letters a sentence has that may need something."""
_MOST_SENTENCES: Final = 8
"""How many sentences of a message are looked at: of a longer one as many from its beginning as from its end."""
_READ: Final = 8_000
"""How many characters of a message are looked at from either end."""

Hit = tuple[Tool, float]


def sentences(message: str) -> tuple[str, ...]:
    """Return the sentences of a message that may each need something (S5); none where it is one sentence."""
    text = message if len(message) <= 2 * _READ else f"{message[:_READ]}\n{message[-_READ:]}"
    found = [one for part in _ENDS.split(text) if sum(map(str.isalpha, one := part.strip())) >= _LEAST_LETTERS]
    if len(found) > _MOST_SENTENCES:
        found = [*found[: _MOST_SENTENCES // 2], *found[-_MOST_SENTENCES // 2 :]]
    return tuple(found) if len(found) > 1 else ()


def _plugin_evidence(hits: Sequence[Hit]) -> Mapping[str, float]:
    """Return how much speaks for each plugin, the best first: the scores of its best tools together."""
    scores: dict[str, list[float]] = {}
    for tool, score in hits:
        found = scores.setdefault(tool.plugin, [])
        if len(found) < _SPEAKING:
            found.append(score)
    return dict(sorted(((name, sum(found)) for name, found in scores.items()), key=lambda pair: -pair[1]))


def with_anticipated(
    permissions: CompiledPermissions,
    state: State,
    hits: Sequence[Hit],
    anticipation: Anticipation,
    terms: CommandContext,
) -> tuple[State, tuple[Lease, ...]]:
    """Return the state with what a message needs most probably, and the leases that it gained (S5).

    Without ``hits`` there is no new message. What else the plugins in use have joins where it is cheap.
    """
    state, probable = _load_probable(permissions, state, hits, anticipation, terms)
    state, siblings = with_siblings(permissions, state, used_plugins(permissions, state), anticipation, terms)
    return state, (*probable, *siblings)


def _load_probable(
    permissions: CompiledPermissions,
    state: State,
    hits: Sequence[Hit],
    anticipation: Anticipation,
    terms: CommandContext,
) -> tuple[State, tuple[Lease, ...]]:
    """Return the state with what a message needs most probably.

    ``hits`` are the best tools for the message, best first, loaded or not. The plugin that clearly is
    meant comes whole where that is cheap, else its best few tools. Without one the best few tools come, of plugins
    than which none in use is clearly meant: a message that goes on with the work in hand brings nothing. The same
    hits bring the same in a turn, however often they are given.
    """
    evidence = _plugin_evidence(hits)
    if not evidence:
        return state, ()
    first, *others = evidence
    best = [tool for tool, _ in hits[: anticipation.limits.tools]]
    if evidence[first] >= CLEAR * max((evidence[name] for name in others), default=0.0):
        after, brought = with_siblings(permissions, state, (first,), anticipation, terms)
        if brought:
            return after, brought
        return _best_few(permissions, state, [tool for tool in best if tool.plugin == first], anticipation, terms)
    in_use = max((evidence.get(name, 0.0) for name in used_plugins(permissions, state)), default=0.0)
    probable = [tool for tool in best if CLEAR * evidence[tool.plugin] > in_use]
    return _best_few(permissions, state, probable, anticipation, terms)


def _best_few(
    permissions: CompiledPermissions,
    state: State,
    tools: Sequence[Tool],
    anticipation: Anticipation,
    terms: CommandContext,
) -> tuple[State, tuple[Lease, ...]]:
    """Return the state with as many of the tools, best first, as the bounds of a turn allow.

    What was loaded ahead and never used takes from what carrying more is worth.
    """
    before = [one for one in state.anticipated if one.loaded_turn == state.turn and one.subject.kind == "tool"]
    tokens = anticipation.limits.tokens - anticipation.price(_tools(permissions, before))
    room = min(tokens, anticipation.carried - anticipation.price(_tools(permissions, unused_leases(state))))
    brought: list[Lease] = []
    for tool in tools:
        if len(before) + len(brought) >= anticipation.limits.tools:
            break
        found = candidate(permissions, state, Ref("tool", tool.id), anticipation)
        if (
            found is None
            or (cost := anticipation.price(found.adds)) > room
            or not fits_budget(permissions, state, found, terms)
        ):
            continue
        room -= cost
        state = state.with_lease(found.lease)
        brought.append(found.lease)
    return state, tuple(brought)


def _tools(permissions: CompiledPermissions, leases: Iterable[Lease]) -> Iterator[Tool]:
    return (tool for lease in leases for tool, _ in leased_tools(permissions, lease))
