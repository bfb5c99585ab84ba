"""Calls: on whose behalf they are made, what checks their arguments, and the way back to whoever makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from pegboard.core.access.instances import LoginOwner
from pegboard.core.model.tools import EMPTY, JsonObject, Tool

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages of the protocol, the lowest first."""


class AskRefusedError(Exception):
    """The refusal of a client to answer an upstream, as an error of JSON-RPC: ``message``, ``code``, ``data``."""

    def __init__(self, message: str, *, code: int = -32600, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


class Listener(Protocol):
    """A receiver of what an upstream reports outside of any call (G7): a connection that outlives its calls."""

    @property
    def level(self) -> str | None:
        """Return the lowest level of the log messages that it wants, or None where it has chosen none."""
        ...

    @property
    def open(self) -> bool:
        """Return whether anyone still listens."""
        ...

    def tell(self, method: str, params: JsonObject) -> None:
        """Take a notification as it stood on the wire; one below the level is dropped. Neither raises nor waits."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the level changes; returns what ends it."""
        ...


class Client(Protocol):
    """The client of one call: it answers what an upstream asks, and takes what it reports (G7, G9)."""

    @property
    def level(self) -> str | None:
        """Return the lowest level of the log messages that it wants, or None where it has chosen none."""
        ...

    @property
    def listener(self) -> Listener | None:
        """Return what outlives the call, where anything does."""
        ...

    @property
    def declares(self) -> JsonObject:
        """Return what its servers are told that it can do besides: ``extensions``, in the handshake era ``tasks``."""
        ...

    @property
    def wanted_task(self) -> JsonObject | None:
        """Return what makes a task of the call, as it stood on the wire; None where it is to be none."""
        ...

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        """Return the client's answer to a request of the protocol.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage``, ``roots/list``, or one about the client's tasks.
            params: Its parameters, as they stood on the wire.
            about: Under what the answer is kept in the store, where no server waits for it: another process can go on
                with it then.

        Returns:
            The result, as it stood on the wire.

        Raises:
            AskRefusedError: The client refused, or cannot be asked.
        """
        ...

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on as it stood on the wire; a log message below the level is dropped."""
        ...


Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes how far a call is: progress, total and message."""


class CallContext(NamedTuple):
    """A call's circumstances: on whose behalf it is made, and the ways back.

    ``scope`` names the pool from which a connection is taken (G9), ``owner`` is whose login to its server counts (G11).
    ``progress`` takes what the tool reports (progress, total, message). ``meta`` is the request's ``_meta`` for the
    upstream. ``client`` takes what an upstream asks and reports meanwhile; None where no one can be asked.
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
