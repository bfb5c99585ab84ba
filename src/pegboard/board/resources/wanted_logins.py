"""Whoever asks for what a server keeps for those who have logged in is told where they log in (G11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pegboard.board.calls.login_gate import NotLoggedIn
from pegboard.board.resources.reach import ReachedServer
from pegboard.board.services import Services
from pegboard.core.access.listed_items import unalias
from pegboard.core.access.logins import LoginNeed, login_command
from pegboard.core.model.naming import may_be_of
from pegboard.core.model.tools import JsonObject
from pegboard.errors import NeedsLoginError
from pegboard.ports.logins import HasLogins

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def saying_where(services: Services, servers: Mapping[str, ReachedServer]) -> AsyncGenerator[None]:
    """Raise a ``NeedsLoginError`` of these servers as one that says where their user logs in.

    Raises ``ToolUnavailableError`` where no login can be begun.
    """
    try:
        yield
    except NeedsLoginError as error:
        server = servers[error.plugin]
        source = services.loader.source_of(server.spec)
        if not isinstance(source, HasLogins):
            raise
        need = LoginNeed(plugin=error.plugin, owner=server.owner, scopes=error.scopes)
        pending = None
        if not services.awaiting_login.by_command:
            addresses = services.login_addresses
            begun = await source.logins.begin(server.spec, need, redirect=addresses.redirect(need.owner.principal))
            pending = addresses.shown(begun)
        raise NeedsLoginError(NotLoggedIn(need, pending).text, plugin=error.plugin, scopes=error.scopes) from None


async def require_logins(services: Services, servers: Iterable[ReachedServer]) -> None:
    """Raise ``NeedsLoginError`` for the first of these servers to which a login is missing: what it has is unknown."""
    for server in servers:
        source = services.loader.source_of(server.spec)
        if not server.source.by_login(server.spec) or not isinstance(source, HasLogins):
            continue
        need = await source.logins.needed(server.spec, server.owner)
        if need is not None:
            command = login_command(need.plugin, need.owner)
            raise NeedsLoginError(
                f"'{need.plugin}' wants a login.", plugin=need.plugin, scopes=need.scopes, hint=f"Log in: `{command}`."
            )


def with_resource(uri: str, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have a resource that none is known to have."""
    aliased = unalias(uri)
    if aliased is not None:
        return (servers[name] for name in (aliased[0],) if name in servers)
    return (server for server in servers.values() if server.may_have("resources"))


def with_prompt(name: str, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have a prompt that none is known to have."""
    known = (server for server in servers.values() if server.may_have("prompts"))
    return (server for server in known if may_be_of(name, server.plugin.name, prefix=server.plugin.prefix))


def with_reference(reference: JsonObject, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have what a completion is for, where none is known to have it."""
    match reference:
        case {"type": "ref/prompt", "name": str(name)}:
            return with_prompt(name, servers)
        case {"type": "ref/resource", "uri": str(uri)}:
            return with_resource(uri, servers)
        case _:
            return ()
