"""Calls: on whose behalf they are made, where their progress goes, and what checks their arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from pegboard.core.access.instances import LoginOwner
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.ports.clients import Client

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes how far a call is: progress, total and message."""


class CallContext(NamedTuple):
    """A call's circumstances: on whose behalf it is made, and the ways back.

    ``scope`` names the pool from which a connection is taken (G9), ``owner`` is whose login to its server counts (G11).
    ``progress`` takes what the tool reports (progress, total, message). ``meta`` is the request's ``_meta`` for the
    upstream. ``client`` takes what an upstream asks and reports meanwhile; None where nobody can be asked.
    """

    principal: str = "local"
    agent: str = ""
    session: str = ""
    scope: str = "shared"
    owner: LoginOwner = LoginOwner("local")
    progress: Progress | None = None
    client: Client | None = None
    meta: JsonObject = EMPTY


class ArgumentValidator(Protocol):
    """A check of a call's arguments against the tool's schema (X2)."""

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Return whether the arguments are valid; False too where that takes long to see."""
        ...

    async def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return what is wrong with the arguments, as the model gave them.

        One sentence per problem names the argument and what was expected.

        Raises:
            ToolUnavailableError: The schema takes too long to check these arguments against.
        """
        ...
