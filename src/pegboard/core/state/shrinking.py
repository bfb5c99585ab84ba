"""Keep what is out from the start within the budget: a smaller loadout steps in (S9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.leases import LeaseReason
from pegboard.core.model.loadouts import BUILT_IN, chain
from pegboard.core.state.active_tools import active_tools, starting_tools, unavailable
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import State
from pegboard.core.state.surfaces import LoadedTool

_LARGEST_FIRST = ("full", "developer", "research", "devops", "minimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Hold what a surface takes, meta-tools included; ``tokens`` is 0 where no budget counts them."""

    tools: int
    tokens: int = 0


def fit_to_budget(access: CompiledPermissions, state: State, terms: CommandContext) -> State:
    """Return the state with the loadout that has to step in, or none; it goes when there is room again (S9).

    What was loaded stays: only what is out from the start is narrowed. Where no loadout fits, the
    one that comes nearest steps in; one that would leave nothing never does.
    """
    plain = replace(state, shrunk=None) if state.shrunk is not None else state
    if not access.agent.budget.shrink or not excess(access, plain, terms):
        return plain
    smaller = _choice(access, plain, terms)
    return replace(plain, shrunk=smaller[0]) if smaller is not None else plain


def fitting(access: CompiledPermissions, state: State, terms: CommandContext) -> str | None:
    """Return the largest loadout for what is out from the start with which the budget is kept (S9)."""
    smaller = _choice(access, replace(state, shrunk=None), terms)
    return smaller[0] if smaller is not None and smaller[1] else None


def excess(access: CompiledPermissions, state: State, terms: CommandContext) -> str:
    """Return by how much a surface exceeds the budget, or nothing: "5 tools of 4 and 90 tokens of 80"."""
    return over(access, _size(access, active_tools(access, state), terms)) if access.agent.budget else ""


def over(access: CompiledPermissions, size: Size) -> str:
    """Return by how much a size exceeds the agent's budget, or nothing."""
    budget = access.agent.budget
    found: list[str] = []
    if budget.tools is not None and size.tools > budget.tools:
        found.append(f"{size.tools} tools of {budget.tools}")
    if budget.tokens is not None and size.tokens > budget.tokens:
        found.append(f"{size.tokens} tokens of {budget.tokens}")
    return " and ".join(found)


def _size(access: CompiledPermissions, outs: Mapping[str, LoadedTool], terms: CommandContext) -> Size:
    tools = [*terms.meta, *(out.tool for out in outs.values() if not unavailable(access, out))]
    counted = access.agent.budget.tokens is not None and terms.price is not None
    return Size(tools=len(tools), tokens=terms.price(tools) if counted and terms.price is not None else 0)


def _choice(access: CompiledPermissions, state: State, terms: CommandContext) -> tuple[str, bool] | None:
    """Return the loadout that keeps most of what fits, and whether it does; else the one that takes least."""
    before = _from_start(access, active_tools(access, state))
    best: tuple[tuple[int, int, int], str, bool] | None = None
    for name in _candidates(access, state):
        outs = active_tools(access, replace(state, shrunk=name))
        kept = _from_start(access, outs)
        if not kept or kept == before:
            continue
        size = _size(access, outs, terms)
        fits = not over(access, size)
        rank = (1, len(kept), size.tokens) if fits else (0, -size.tokens, -size.tools)
        if best is None or rank > best[0]:
            best = rank, name, fits
    return best[1:] if best is not None else None


def _from_start(access: CompiledPermissions, outs: Mapping[str, LoadedTool]) -> frozenset[str]:
    """Return what is out from the start and not essential: what a loadout can narrow."""
    start = starting_tools(access)
    return frozenset(
        key
        for key, out in outs.items()
        if LeaseReason.ESSENTIAL not in out.because and (key in start.head or key in start.tail)
    )


def _candidates(access: CompiledPermissions, state: State) -> Iterator[str]:
    """Yield the loadouts that may step in: the chain of the one in force, then the built-in ones."""
    loadouts = access.world.loadouts
    own = state.loadout or access.agent.loadout
    links = [link.name for link in reversed(chain(own, loadouts))] if own is not None else []
    seen: set[str] = set()
    for name in (*links, *(name for name in _LARGEST_FIRST if name in BUILT_IN)):
        if name.casefold() not in seen and name.casefold() in loadouts:
            seen.add(name.casefold())
            yield name
