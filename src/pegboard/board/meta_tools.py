"""Which meta-tools a session has, and what its host and dialect add to commands (T4, F2)."""

from __future__ import annotations

from typing import Final

from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.core.access.derived import once_per_permissions
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import Host, choose, takes_effect
from pegboard.core.model.tools import Tool
from pegboard.core.state.active_tools import loadable
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.hints import Count, hints, plugin_lines
from pegboard.dialects.call_tool import call_through_tools
from pegboard.dialects.names import Dialect, View

GATEWAY_HINT_TOKENS: Final = 100


def dialect_of(services: Services, access: CompiledPermissions) -> Dialect:
    """Return the dialect in which the agent's model manages its tools."""
    return services.dialects[access.agent.dialect]


def view(services: Services, info: SessionInfo, access: CompiledPermissions, state: State) -> View:
    """Return what the dialect sees; hints only where the host shows them in descriptions (F2)."""
    lines: tuple[str, ...] = ()
    if info.host.calls_through:
        whole = dialect_of(services, access).hints == "tools" or info.host.cache is not None
        lines = _description_hints(access, services.counter.count, whole)
    return View(access=access, state=state, stable=info.stable, hints=lines)


@once_per_permissions
def _description_hints(access: CompiledPermissions, count: Count, whole: bool) -> tuple[str, ...]:
    budget = access.agent.hint_tokens
    if whole:
        return hints(access, count, budget=budget)
    return plugin_lines(access, count, budget=min(GATEWAY_HINT_TOKENS, budget))


def meta_tools(services: Services, info: SessionInfo, shown: View) -> tuple[Tool, ...]:
    """Return the meta-tools of a session: none where there is nothing to load, or no id (T4, S4)."""
    return _tools_of(dialect_of(services, shown.access), info.host, shown) if info.stable else ()


def find_meta_tool(services: Services, info: SessionInfo, access: CompiledPermissions, name: str) -> Tool | None:
    """Return the meta-tool of this name; without a session id a call of one still answers (S4)."""
    own = _by_wire(access, dialect_of(services, access), info.stable, info.host.calls_through)
    return own.get(name)


@once_per_permissions
def _by_wire(
    access: CompiledPermissions,
    dialect: Dialect,
    stable: bool,
    calls_through: bool,
) -> dict[str, Tool]:
    shown = View(access=access, state=State(), stable=stable)
    return {tool.wire: tool for tool in _tools_of(dialect, Host(calls_through=calls_through), shown)}


def _tools_of(dialect: Dialect, host: Host, shown: View) -> tuple[Tool, ...]:
    if not loadable(shown.access):
        return ()
    through = call_through_tools() if host.calls_through else ()
    return (*dialect.tools(shown), *through)


def command_context(services: Services, info: SessionInfo, access: CompiledPermissions) -> CommandContext:
    """Return what the host and the dialect of a session add to commands."""
    agent, dialect = access.agent, dialect_of(services, access)
    budgeted = agent.budget.tokens is not None
    return CommandContext(
        until=agent.lease or dialect.lease,
        takes_effect=takes_effect(choose(info.host), activation=agent.activation, dialect=dialect.activation),
        stable=info.stable,
        meta=meta_tools(services, info, view(services, info, access, DEFAULT)) if agent.budget else (),
        price=services.prices if budgeted else None,
        masker=services.masker,
    )
