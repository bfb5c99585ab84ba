"""Which meta-tools a session has, and what its host and dialect add to commands (T4, F2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import Cache, Delivery, Host, choose, list_is_cached, takes_effect
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import loadable, names_loadable
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.hints import Count, hints, plugin_lines
from pegboard.dialects.call_tool import call_through_tools
from pegboard.dialects.delegate import DELEGATE
from pegboard.dialects.duty_definitions import duty_tools
from pegboard.dialects.names import Dialect, SearchLoads, View

LEAST_HINT_TOKENS, MOST_HINT_TOKENS, TOKENS_PER_PLUGIN = 126, 600, 10
"""What the lines on plugins may take in a description: for a dozen a few words each, for hundreds the names."""
_SOME_CACHE: Final = Cache()


def dialect_of(services: Services, access: CompiledPermissions) -> Dialect:
    """Return the dialect in which the agent's model manages its tools."""
    return services.dialects[access.agent.dialect]


def view(services: Services, info: SessionInfo, access: CompiledPermissions, state: State) -> View:
    """Return what the dialect sees; hints only where the host shows them in descriptions (F2)."""
    return _view(services, access, info.host, info.stable, state)


def _view(services: Services, access: CompiledPermissions, host: Host, stable: bool, state: State) -> View:
    lines: tuple[str, ...] = ()
    if host.calls_through:
        whole = dialect_of(services, access).hints == "tools" or host.cache is not None
        lines = _description_hints(access, services.counter.count, whole)
    loads = _search_loads(services, access, host) if stable else "nothing"
    return View(access=access, state=state, stable=stable, hints=lines, search_loads=loads)


def _search_loads(services: Services, access: CompiledPermissions, host: Host) -> SearchLoads:
    """Return what a search loads: nothing into a cached list, into another one what is clear, else what is likely (D1).

    What cannot be called in the next step is not loaded either.
    """
    agent, way = access.agent, choose(host)
    when = takes_effect(way, activation=agent.activation, dialect=dialect_of(services, access).activation)
    if not agent.search_loads or when == "next_request" or list_is_cached(host):
        return "nothing"
    return "clear" if way == "array" else "likely"


@once_per_permissions
def _description_hints(access: CompiledPermissions, count: Count, whole: bool) -> tuple[str, ...]:
    budget = access.agent.hint_tokens
    if whole:
        return hints(access, count, budget=budget)
    plugins = TOKENS_PER_PLUGIN * len(access.world.catalog.plugins)
    fitting = min(max(plugins, LEAST_HINT_TOKENS), MOST_HINT_TOKENS)
    return plugin_lines(access, count, budget=min(fitting, budget))


def meta_tools(services: Services, info: SessionInfo, shown: View) -> tuple[Tool, ...]:
    """Return the meta-tools of a session: none where there is nothing to load, or no id (T4, S4)."""
    return _tools_of(dialect_of(services, shown.access), _lists_call_tool(info.host), shown) if info.stable else ()


def duties(services: Services, access: CompiledPermissions) -> tuple[Tool, ...]:
    """Return the host's own tools that the agent lists and that can run now."""
    if not access.agent.duties:
        return ()
    return tuple(tool for tool in duty_tools(access) if not duty_fault(services, tool.wire))


def duty_fault(services: Services, name: str) -> str:
    """Return why one of the host's own tools cannot run now, or nothing (P6)."""
    return services.delegation.fault if name == DELEGATE else ""


def meta_tools_by_name(
    services: Services, info: SessionInfo, access: CompiledPermissions, loadout: str | None
) -> Mapping[str, Tool]:
    """Return the meta-tools and the host's own tools by their names; without a session id a call still answers (S4)."""
    return _by_name(access, services, info.stable, _lists_call_tool(info.host), loadout)


@once_per_permissions
def _by_name(
    access: CompiledPermissions, services: Services, stable: bool, through: bool, loadout: str | None
) -> Mapping[str, Tool]:
    shown = View(access=access, state=State(loadout=loadout), stable=stable)
    managed = _tools_of(dialect_of(services, access), through, shown)
    return {tool.wire: tool for tool in (*duty_tools(access), *managed)}


def _lists_call_tool(host: Host) -> bool:
    """Return whether ``call_tool`` is on the list: loads may reach the model in their answer alone (D1)."""
    fixed_or_cached = "array" not in host.delivery or host.cache is not None
    return host.calls_through or ("result" in host.delivery and fixed_or_cached)


def _tools_of(dialect: Dialect, through: bool, shown: View) -> tuple[Tool, ...]:
    if not loadable(shown.access, shown.state.loadout):
        lists = dialect.lists if names_loadable(shown.access) else frozenset[str]()
        return tuple(tool for tool in dialect.tools(shown) if tool.wire in lists) if lists else ()
    return (*dialect.tools(shown), *(call_through_tools() if through else ()))


def command_context(services: Services, info: SessionInfo, access: CompiledPermissions) -> CommandContext:
    """Return what the host and the dialect of a session add to commands."""
    return _command_context(access, services, _in_kind(info.host), info.stable)


def _in_kind(host: Host) -> Host:
    """Return the one host that stands for all that are alike in what they add to commands; a cache grows and grows."""
    if host.cache is None:
        return host
    ways: tuple[Delivery, ...] = (choose(host), *(("result",) if "result" in host.delivery else ()))
    return Host(
        delivery=tuple(dict.fromkeys(ways)),
        cache=_SOME_CACHE,
        calls_through=host.calls_through,
        request=host.request,
    )


@once_per_permissions
def _command_context(access: CompiledPermissions, services: Services, host: Host, stable: bool) -> CommandContext:
    agent, dialect = access.agent, dialect_of(services, access)
    budgeted, meta = agent.budget.tokens is not None, ()
    if agent.budget and stable:
        meta = _tools_of(dialect, _lists_call_tool(host), _view(services, access, host, stable, DEFAULT))
    if agent.budget:
        meta = (*duty_tools(access), *meta)
    when = takes_effect(choose(host), activation=agent.activation, dialect=dialect.activation)
    return CommandContext(
        until=agent.lease or dialect.lease,
        takes_effect=when,
        from_next_turn=when == "next_request" and host.request == "turn",
        stable=stable,
        meta=meta,
        price=services.prices if budgeted else None,
        masker=services.masker,
    )
