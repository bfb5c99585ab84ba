"""Servers and other plugins, their logins (G11), and the newest edit of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pegboard.console.api.endpoint import Endpoint
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.logins_page import forget_login, start_login
from pegboard.operators.configuration import ConfigurationState
from pegboard.operators.logins import WantedLogin
from pegboard.operators.masked import Name
from pegboard.operators.servers import ServerState, printed_lines, restart_plugin, server_state, server_states
from pegboard.ports import PrintedLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLog:
    """What a server printed, the newest line last."""

    name: Name
    lines: tuple[PrintedLine, ...]


async def servers(context: Context, visit: OperatorRequest) -> tuple[ServerState, ...]:
    """Return the state of every server and other plugin."""
    context.require_every_agent(visit)
    return await server_states(context.services, context.subjects.counting)


async def server(context: Context, visit: OperatorRequest, *, name: str) -> ServerState:
    """Return the state of one server or other plugin."""
    context.require_every_agent(visit)
    return await server_state(context.services, name)


async def server_log(context: Context, visit: OperatorRequest, *, name: str) -> ServerLog:
    """Return what a server printed, also its processes that have ended."""
    context.require_every_agent(visit)
    lines = await printed_lines(context.services, name)
    return ServerLog(name=visit.names.shown(name), lines=lines)


async def restart_server(context: Context, visit: OperatorRequest, *, name: str) -> ServerState:
    """Start a server again and ask for its tools again; calls under way fail as where it dies."""
    context.require_every_agent(visit)
    return await restart_plugin(context.services, name, by=visit.operator.name)


async def configuration(context: Context, visit: OperatorRequest) -> ConfigurationState:
    """Return since when the configuration is in force, what is wrong with its newest edit, and what with plugins."""
    context.require_every_agent(visit)
    return await context.subjects.problems.added_to(context.board.configuration_state)


_EVERY: Final = ("every_agent_required",)
_ONE: Final = (*_EVERY, "unknown_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunLogin:
    """A login that is pending; a person opens its address, and completes it where they are signed in to the console.

    Attributes:
        server: the server.
        url: where they log in.
        expires_at: until when, in seconds since the epoch.
    """

    server: Name
    url: str
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedLogin:
    """Whether there was a login to end."""

    ended: bool


async def logins(context: Context, visit: OperatorRequest) -> tuple[WantedLogin, ...]:
    """Return the servers that want a login, of those that the operator's agents may use."""
    return tuple(await context.subjects.logins.logins_wanted(visit.operator.name, agents=visit.operator.agents))


async def begin_login(context: Context, visit: OperatorRequest, *, server: str) -> BegunLogin:
    """Begin a login of the operator's own, or return the one that is pending."""
    pending = await start_login(context, visit, server)
    return BegunLogin(server=visit.names.shown(server), url=pending.url, expires_at=pending.expires_at)


async def end_login(context: Context, visit: OperatorRequest, *, server: str) -> EndedLogin:
    """Forget the operator's own login, and tell whoever issued it."""
    return EndedLogin(ended=await forget_login(context, visit, server))


_ONE_LOGIN: Final = ("unknown_name", "usage")


ENDPOINTS: Final = (
    Endpoint("GET", "/api/servers", servers, _EVERY),
    Endpoint("GET", "/api/servers/{name}", server, _ONE),
    Endpoint("GET", "/api/servers/{name}/log", server_log, _ONE),
    Endpoint("POST", "/api/servers/{name}/restart", restart_server, (*_ONE, "tool_unavailable", "usage"), "switch"),
    Endpoint("GET", "/api/configuration", configuration, _EVERY),
    Endpoint("GET", "/api/logins", logins),
    Endpoint("POST", "/api/logins/{server}", begin_login, (*_ONE_LOGIN, "tool_unavailable")),
    Endpoint("DELETE", "/api/logins/{server}", end_login, _ONE_LOGIN),
)
