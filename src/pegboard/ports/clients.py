"""The way back to whoever calls a tool: requests and notifications of an upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from pegboard.core.model.tools import JsonObject

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
        """Return whether anybody still listens."""
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

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        """Return the client's answer to a request of the protocol.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
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
