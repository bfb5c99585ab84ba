"""The budget of a surface, and the smaller loadout that steps in to keep it (S9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pegboard.core.access.permissions import CompiledPermissions, tool_fault
from pegboard.core.model.leases import LeaseReason
from pegboard.core.model.loadouts import BUILT_IN, chain
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import LoadedTool, active_tools, tools_loaded_at_start
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import State

_LARGEST_FIRST = ("full", "developer", "research", "devops", "minimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a surface takes, meta-tools included; ``tokens`` is 0 where no budget counts them."""

    tools: int
    tokens: int = 0

    def with_tools(self, permissions: CompiledPermissions, tools: Iterable[Tool], terms: CommandContext) -> Size:
        """Return the size with more tools."""
        more = tuple(tools)
        counted = permissions.agent.budget.tokens is not None and terms.price is not None
        price = terms.price(more) if counted and terms.price is not None else 0
        return Size(tools=self.tools + len(more), tokens=self.tokens + price)


def size_of(permissions: CompiledPermissions, active: Mapping[str, LoadedTool], terms: CommandContext) -> Size:
    """Return what the meta-tools and all loaded tools that are available take."""
    available = (loaded.tool for loaded in active.values() if not tool_fault(permissions, loaded.tool, loaded.key))
    return Size(tools=0).with_tools(permissions, (*terms.meta, *available), terms)


def excess_over_budget(permissions: CompiledPermissions, size: Size) -> str:
    """Return by how much a size exceeds the agent's budget, or nothing."""
    budget = permissions.agent.budget
    found: list[str] = []
    if budget.tools is not None and size.tools > budget.tools:
        found.append(f"{size.tools} tools of {budget.tools}")
    if budget.tokens is not None and size.tokens > budget.tokens:
        found.append(f"{size.tokens} tokens of {budget.tokens}")
    return " and ".join(found)


def excess(permissions: CompiledPermissions, state: State, terms: CommandContext) -> str:
    """Return by how much a surface exceeds the budget, or nothing: "5 tools of 4 and 90 tokens of 80"."""
    return (
        excess_over_budget(permissions, size_of(permissions, active_tools(permissions, state), terms))
        if permissions.agent.budget
        else ""
    )


def fit_to_budget(permissions: CompiledPermissions, state: State, terms: CommandContext) -> State:
    """Return the state with the loadout that has to step in, or none; it goes when there is room again (S9).

    What was loaded ahead of being asked for gives way first. What was loaded stays: only what is loaded
    from the start is narrowed. Where no loadout fits, the one that comes nearest steps in; one that would leave
    nothing never does.
    """
    plain = _given_way(permissions, replace(state, shrunk=None) if state.shrunk is not None else state, terms)
    if not _may_shrink(permissions, plain, terms) or not excess(permissions, plain, terms):
        return plain
    smaller = _choice(permissions, plain, terms)
    return replace(plain, shrunk=smaller[0]) if smaller is not None else plain


def _may_shrink(permissions: CompiledPermissions, state: State, terms: CommandContext) -> bool:
    """Return whether a loadout may step in: where the agent says so, or the session's own loads too much (L7)."""
    if permissions.agent.budget.shrink or state.loadout is None:
        return permissions.agent.budget.shrink
    return bool(excess(permissions, replace(state, leases=()), terms))


def _given_way(permissions: CompiledPermissions, state: State, terms: CommandContext) -> State:
    """Return the state without as many anticipated leases as exceed the budget (S9).

    What was used longest ago goes first, and nothing goes where that would not be enough.
    """
    anticipated = state.anticipated
    if not anticipated or not excess(permissions, state, terms):
        return state
    left = state
    for lease in sorted(anticipated, key=lambda one: one.used_turn):
        left = left.without((lease,))
        if not excess(permissions, left, terms):
            return left
    return left if permissions.agent.budget.shrink else state


def largest_fitting_loadout(permissions: CompiledPermissions, state: State, terms: CommandContext) -> str | None:
    """Return the largest loadout for what is loaded from the start with which the budget is kept (S9)."""
    smaller = _choice(permissions, replace(state, shrunk=None), terms)
    return smaller[0] if smaller is not None and smaller[1] else None


def _choice(permissions: CompiledPermissions, state: State, terms: CommandContext) -> tuple[str, bool] | None:
    """Return the loadout that keeps most of what fits, and whether it does; else the one that takes least."""
    before = _narrowable_from_start(permissions, state, active_tools(permissions, state))
    best: tuple[tuple[int, int, int], str, bool] | None = None
    for name in _candidates(permissions, state):
        active = active_tools(permissions, replace(state, shrunk=name))
        kept = _narrowable_from_start(permissions, state, active)
        if not kept or kept == before:
            continue
        size = size_of(permissions, active, terms)
        fits = not excess_over_budget(permissions, size)
        rank = (1, len(kept), size.tokens) if fits else (0, -size.tokens, -size.tools)
        if best is None or rank > best[0]:
            best = rank, name, fits
    return best[1:] if best is not None else None


def _narrowable_from_start(
    permissions: CompiledPermissions, state: State, active: Mapping[str, LoadedTool]
) -> frozenset[str]:
    """Return what is loaded from the start and not essential: what a loadout can narrow."""
    start = tools_loaded_at_start(permissions, state)
    return frozenset(key for key, one in active.items() if LeaseReason.ESSENTIAL not in one.because and key in start)


def _candidates(permissions: CompiledPermissions, state: State) -> Iterator[str]:
    """Yield the loadouts that may step in: the chain of the one in force, then the built-in ones."""
    loadouts = permissions.world.loadouts
    own = state.loadout or permissions.agent.loadout
    links = [link.name for link in reversed(chain(own, loadouts))] if own is not None else []
    seen: set[str] = set()
    for name in (*links, *(name for name in _LARGEST_FIRST if name in BUILT_IN)):
        if name.casefold() not in seen and name.casefold() in loadouts:
            seen.add(name.casefold())
            yield name
