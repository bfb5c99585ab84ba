"""Logins to servers: which want one, and the operator's own (G11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pegboard.console.api.endpoint import Endpoint
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.logins_page import begun, ended
from pegboard.operators.logins import WantedLogin
from pegboard.operators.masked import Name


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
    return tuple(await context.subjects.logins.wanted(visit.operator.name, agents=visit.operator.agents))


async def begin_login(context: Context, visit: OperatorRequest, *, server: str) -> BegunLogin:
    """Begin a login of the operator's own, or return the one that is pending."""
    pending = await begun(context, visit, server)
    return BegunLogin(server=visit.names.shown(server), url=pending.url, expires_at=pending.expires_at)


async def end_login(context: Context, visit: OperatorRequest, *, server: str) -> EndedLogin:
    """Forget the operator's own login, and tell whoever issued it."""
    return EndedLogin(ended=await ended(context, visit, server))


_ONE: Final = ("unknown_name", "usage")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/logins", logins),
    Endpoint("POST", "/api/logins/{server}", begin_login, (*_ONE, "tool_unavailable")),
    Endpoint("DELETE", "/api/logins/{server}", end_login, _ONE),
)
