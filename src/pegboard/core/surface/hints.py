"""The lines that inform a model of tools that it does not have yet (F2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice

from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import first_sentence, one_line
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.narrowing import may_bring, reachable
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.purposes import purposes

Count = Callable[[str], int]
_PURPOSE_CHARACTERS = (160, 80, 60, 45, 36, 30, 24, 18)
"""How long the texts of plugins are at most: the longest at which all of them fit."""


def hints(access: CompiledPermissions, count: Count, *, budget: int, state: State = DEFAULT) -> tuple[str, ...]:
    """Return the hints for everything permitted that is not loaded from the start.

    The richest tier that fits ``budget`` tokens: full descriptions, first sentences, names by
    plugin, plugin names. They depend on the agent and the active loadout alone and so stay the same
    while a session loads and unloads.
    """
    return _hints(access, count, budget, state.loadout) if budget > 0 else ()


@once_per_permissions
def _hints(access: CompiledPermissions, count: Count, budget: int, loadout: str | None) -> tuple[str, ...]:
    start, state = starting_tools(access), State(loadout=loadout)
    found = (
        tool
        for tool in reachable(access, state)
        if tool.id not in start and not (tool.unavailable or tool.id in access.faults)
    )
    tools = list(islice(found, budget // min(_LEAST.values()) + 1))  # more than that fits in no tier
    later = tuple(_unseen_lines(access, state))
    if not tools and not later:
        return ()
    for tier in (_full, _brief, _names):
        if len(tools) * _LEAST[tier] > budget:
            continue
        lines = _fitting((*tier(tools), *later), count, budget)
        if lines is not None:
            return lines
    return plugin_lines(access, count, budget=budget, state=state)


def _full(tools: Iterable[Tool]) -> Iterator[str]:
    return (_line(tool.wire, tool.description) for tool in tools)


def _brief(tools: Iterable[Tool]) -> Iterator[str]:
    return (_line(tool.wire, first_sentence(tool.description)) for tool in tools)


def _names(tools: Iterable[Tool]) -> Iterator[str]:
    """Yield the names by plugin; a tool's own name where no other tool here has it, for it is shorter."""
    listed = tuple(tools)
    times = Counter(tool.name for tool in listed)
    for plugin, group in groupby(listed, key=lambda tool: tool.plugin):
        yield _line(plugin, ", ".join(t.name if times[t.name] == 1 else t.wire for t in group))


_LEAST_LINE = 2
_LEAST = {_full: 4, _brief: 4, _names: 2}
"""Tokens that a tool takes at the very least in a tier: what cannot fit is not even tried."""


def plugin_lines(access: CompiledPermissions, count: Count, *, budget: int, state: State = DEFAULT) -> tuple[str, ...]:
    """Return the plugins with what they are for, in fewer words where they are many.

    Where that does not fit, it is as many names as fit, and how many more there are.
    """
    plugins = [
        plugin
        for plugin in access.world.catalog.plugins.values()
        if access.may_have_tools_of(plugin)
        and may_bring(access, state, plugin)
        and not _from_start(access, plugin.tools)
    ]
    names, known = tuple(plugin.name for plugin in plugins), purposes(access, state.loadout)
    if len(names) * _LEAST_LINE <= budget:
        for limit in _PURPOSE_CHARACTERS:
            lines = (_line(name, _clipped(known[name], limit)) for name in names)
            if (fitting := _fitting(lines, count, budget)) is not None:
                return fitting
    return _as_many(tuple(one_line(name) for name in names), count, budget)


def _as_many(names: tuple[str, ...], count: Count, budget: int) -> tuple[str, ...]:
    """Return as many names as fit beside the line that says how many more there are."""
    best: tuple[str, ...] = ()
    spent = 0
    for position in range(len(names) + 1):
        more = (f"and {len(names) - position} more: search",) if position < len(names) else ()
        if spent + sum(count(line) + 1 for line in more) <= budget:
            best = (*names[:position], *more)
        spent += count(names[position]) + 1 if more else 0
        if spent > budget:
            break
    return best


def unseen(access: CompiledPermissions) -> tuple[str, ...]:
    """Return the plugins that are granted and have not been asked for their tools yet."""
    plugins = access.world.catalog.plugins.values()
    return tuple(
        p.name
        for p in plugins
        if not p.tools and p.name not in access.entries.plugins_from_start and access.grants_unseen(p)
    )


def _unseen_lines(access: CompiledPermissions, state: State) -> Iterator[str]:
    plugins = access.world.catalog.plugins
    names = (name for name in unseen(access) if may_bring(access, state, plugins[name]))
    return (_line(name, first_sentence(plugins[name].description)) for name in names)


def _from_start(access: CompiledPermissions, tools: tuple[Tool, ...]) -> bool:
    """Return whether all that is permitted of a plugin is loaded from the start."""
    start = starting_tools(access)
    return bool(tools) and all(tool.id in start or not access.permits(tool) for tool in tools)


def _fitting(lines: Iterable[str], count: Count, budget: int) -> tuple[str, ...] | None:
    kept: list[str] = []
    spent = 0
    for line in lines:
        spent += count(line) + 1
        if spent > budget:
            return None
        kept.append(line)
    return tuple(kept)


def _clipped(text: str, limit: int) -> str:
    """Return a text of at most so many characters, cut between words where there are any."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0]
    return f"{(whole or text[: limit - 1]).rstrip(' ,;:…')}…"


def _line(name: str, text: str) -> str:
    flat = one_line(text)
    return f"{name}: {flat}" if flat else name
