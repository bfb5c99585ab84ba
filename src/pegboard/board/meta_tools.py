"""Which meta-tools a session has, and what its host and dialect add to commands (T4, F2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.delivery import Cache, Delivery, Host, choose, list_is_cached, revealed_at_once, takes_effect
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import loadable, names_loadable
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import DEFAULT, HintForm, ShownHints, State
from pegboard.core.surface.hinted import still_stands
from pegboard.core.surface.hints import hints
from pegboard.dialects.host_tools import DELEGATE, host_tool_definitions
from pegboard.dialects.names import Dialect, SearchLoads, View, call_through_tools

LEAST_HINT_TOKENS, MOST_HINT_TOKENS, TOKENS_PER_PLUGIN = 126, 600, 10
"""What the lines on plugins may take in a description: for a dozen a few words each, for hundreds the names."""
MOST_CHARACTERS: Final = 2048
"""How long a description over MCP is at most: what is longer, some clients cut."""
_SOME_CACHE: Final = Cache()


def dialect_of(services: Services, permissions: CompiledPermissions) -> Dialect:
    """Return the dialect in which the agent's model manages its tools."""
    return services.dialects[permissions.agent.dialect]


def view(services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State) -> View:
    """Return what the dialect sees; hints only where the host shows them in descriptions (F2)."""
    shown = _shown_before(services, info, permissions, state)
    return _view(services, permissions, info.host, info.stable, state, shown)


def _view(
    services: Services,
    permissions: CompiledPermissions,
    host: Host,
    stable: bool,
    state: State,
    shown: ShownHints | None = None,
) -> View:
    bare = View(
        permissions=permissions, state=state, stable=stable, revealed=host.reveals, at_most=revealed_at_once(host)
    )
    if stable:
        bare = replace(bare, search_loads=_search_loads(services, permissions, host))
    if not host.calls_through and not _may_lack_search(services, permissions, host):
        return bare
    hinted = shown or _hints_now(services, permissions, host, state.loadout)
    return replace(bare, hints=hinted.lines if host.calls_through else (), cut=not hinted.whole)


def _may_lack_search(services: Services, permissions: CompiledPermissions, host: Host) -> bool:
    """Return whether hints may be cut in a dialect that has no search of its own."""
    bounded = permissions.agent.hint_tokens is not None or host.calls_through
    return bounded and not dialect_of(services, permissions).searches


def _search_loads(services: Services, permissions: CompiledPermissions, host: Host) -> SearchLoads:
    """Return what a search loads: nothing into a cached list, into another one what is clear, else what is likely (D1).

    What cannot be called in the next step is not loaded either.
    """
    agent, way = permissions.agent, choose(host)
    when = takes_effect(way, activation=agent.activation, dialect=dialect_of(services, permissions).activation)
    if not agent.search_loads or when == "next_request" or list_is_cached(host):
        return "nothing"
    return "clear" if way == "array" else "likely"


# -- hints -----------------------------------------------------------------------------------------


def session_hints(services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State) -> ShownHints:
    """Return the hints of a session: those that its model was shown first, as long as all of that stands (F2, P4).

    Over MCP they are fixed for an address and principal instead (G4).
    """
    if info.host.calls_through:
        return _hints_now(services, permissions, info.host)
    shown = info.conversation.hints = hints_to_show(services, info, permissions, state)
    return shown


def hints_to_show(services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State) -> ShownHints:
    """Return the hints that a session is to be shown next, without taking them for shown."""
    before = _shown_before(services, info, permissions, state)
    return before if before is not None else _hints_now(services, permissions, info.host, state.loadout)


def _shown_before(
    services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State
) -> ShownHints | None:
    """Return the hints that were stored with the session, else those that this process has shown, if they stand."""
    if info.host.calls_through:
        return None
    form = hint_form(services, permissions, info.host)
    shown = (hints for hints in (state.hints, info.conversation.hints) if hints is not None)
    return next((hints for hints in shown if still_stands(permissions, hints, state.loadout, form)), None)


def hint_form(services: Services, permissions: CompiledPermissions, host: Host) -> HintForm:
    """Return what is hinted: in descriptions plugins, elsewhere their tools, unless the dialect says otherwise."""
    form = dialect_of(services, permissions).hints
    return "rest" if form == "plugins" and not (host.calls_through and host.cache is None) else form


def _hints_now(
    services: Services, permissions: CompiledPermissions, host: Host, loadout: str | None = None
) -> ShownHints:
    form, budget = hint_form(services, permissions, host), permissions.agent.hint_tokens
    if form == "plugins" and budget is not None:
        plugins = TOKENS_PER_PLUGIN * len(permissions.world.catalog.plugins)
        budget = min(max(plugins, LEAST_HINT_TOKENS), MOST_HINT_TOKENS, budget)
    return hints(
        permissions,
        services.counter.count,
        budget=budget,
        characters=_room_for_hints(permissions, services) if host.calls_through else None,
        loadout=loadout,
        form=form,
        finds=dialect_of(services, permissions).finds,
    )


@once_per_permissions
def _room_for_hints(permissions: CompiledPermissions, services: Services) -> int:
    """Return how many characters a description has for hints: clients cut what is longer (F2)."""
    bare = View(permissions=permissions, state=DEFAULT, hints=("",))
    longest = max(len(tool.description) for tool in dialect_of(services, permissions).tools(bare))
    return MOST_CHARACTERS - longest


# -- meta-tools ------------------------------------------------------------------------------------


def meta_tools(services: Services, info: SessionInfo, shown: View) -> tuple[Tool, ...]:
    """Return the meta-tools of a session: none where there is nothing to load, or no id (T4, S4)."""
    return _tools_of(dialect_of(services, shown.permissions), _lists_call_tool(info.host), shown) if info.stable else ()


def starting_meta_tools(
    services: Services, permissions: CompiledPermissions, host: Host, *, stable: bool
) -> tuple[Tool, ...]:
    """Return the meta-tools of a session of which nothing is stored."""
    through = _lists_call_tool(host)
    return (
        _tools_of(dialect_of(services, permissions), through, _view(services, permissions, host, stable, DEFAULT))
        if stable
        else ()
    )


def runnable_host_tools(services: Services, permissions: CompiledPermissions) -> tuple[Tool, ...]:
    """Return the host's own tools that the agent lists and that can run now."""
    if not permissions.agent.host_tools:
        return ()
    return tuple(tool for tool in host_tool_definitions(permissions) if not host_tool_fault(services, tool.wire))


def host_tool_fault(services: Services, name: str) -> str:
    """Return why one of the host's own tools cannot run now, or nothing (P6)."""
    return services.delegation.fault if name == DELEGATE else ""


def meta_tools_by_name(
    services: Services, info: SessionInfo, permissions: CompiledPermissions, state: State
) -> Mapping[str, Tool]:
    """Return the meta-tools and the host's own tools by their names; without a session id a call still answers (S4)."""
    cut = _may_lack_search(services, permissions, info.host) and view(services, info, permissions, state).cut
    return _meta_tools_by_name(permissions, services, info.stable, _lists_call_tool(info.host), state.loadout, cut)


@once_per_permissions
def _meta_tools_by_name(
    permissions: CompiledPermissions, services: Services, stable: bool, through: bool, loadout: str | None, cut: bool
) -> Mapping[str, Tool]:
    shown = View(permissions=permissions, state=State(loadout=loadout), stable=stable, cut=cut)
    managed = _tools_of(dialect_of(services, permissions), through, shown)
    return {tool.wire: tool for tool in (*host_tool_definitions(permissions), *managed)}


def _lists_call_tool(host: Host) -> bool:
    """Return whether ``call_tool`` is on the list: loads may reach the model in their answer alone (D1)."""
    fixed_or_cached = "array" not in host.delivery or host.cache is not None
    return host.calls_through or ("result" in host.delivery and fixed_or_cached)


def _tools_of(dialect: Dialect, through: bool, shown: View) -> tuple[Tool, ...]:
    """Return all meta-tools where something can be loaded, else those that list what there is (T4)."""
    if not loadable(shown.permissions, shown.state.loadout):
        lists = dialect.lists if names_loadable(shown.permissions) else frozenset[str]()
        return tuple(tool for tool in dialect.tools(shown) if tool.wire in lists) if lists else ()
    call, call_read_only = call_through_tools()
    called = (call,) if shown.revealed else (call, call_read_only)  # a host that reveals has no client that approves
    return (*dialect.tools(shown), *(called if through else ()))


def command_context(services: Services, info: SessionInfo, permissions: CompiledPermissions) -> CommandContext:
    """Return what the host and the dialect of a session add to commands."""
    return _command_context(permissions, services, _representative_host(info.host), info.stable)


def _representative_host(host: Host) -> Host:
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
def _command_context(permissions: CompiledPermissions, services: Services, host: Host, stable: bool) -> CommandContext:
    agent, dialect = permissions.agent, dialect_of(services, permissions)
    budgeted, meta = agent.budget.tokens is not None, ()
    if agent.budget and stable:
        meta = starting_meta_tools(services, permissions, host, stable=stable)
    if agent.budget:
        meta = (*host_tool_definitions(permissions), *meta)
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
