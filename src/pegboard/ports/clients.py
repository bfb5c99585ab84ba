"""The way back to whoever calls a tool: progress, questions, and what is said meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pegboard.core.model.tools import EMPTY, JsonObject

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of log messages of the protocol, the lowest first."""

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class AskRefusedError(Exception):
    """Report that a client did not answer what an upstream asked of it, as an error of JSON-RPC."""

    def __init__(self, message: str, *, code: int = -32600, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


class Listener(Protocol):
    """Take what an upstream says outside of any call (G7): a connection that outlives its calls."""

    @property
    def level(self) -> str | None:
        """Return the lowest level of the log messages that it wants, or None where it has chosen none."""
        ...

    @property
    def open(self) -> bool:
        """Return whether anybody still listens."""
        ...

    def tell(self, method: str, params: JsonObject) -> None:
        """Take a notification; one below the level is dropped. Must not raise and must not wait."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call back when the level changes; returns what ends that."""
        ...


class Client(Protocol):
    """Take what an upstream asks and says during one call (G7, G9)."""

    @property
    def level(self) -> str | None:
        """Return the lowest level of the log messages that it wants, or None where it has chosen none."""
        ...

    @property
    def listener(self) -> Listener | None:
        """Return what outlives the call, where anything does."""
        ...

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return the client's answer to a request of the protocol; raises ``AskRefusedError``."""
        ...

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on; a log message below the level is dropped."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Say on whose behalf a tool is called.

    ``scope`` names the pool from which a connection is taken (G9). ``progress`` takes what the tool
    reports (progress, total, message). ``meta`` is the request's ``_meta`` for the upstream.
    ``client`` takes what an upstream asks and says meanwhile; None where nobody can be asked.
    """

    principal: str = "local"
    agent: str = ""
    session: str = ""
    scope: str = "shared"
    progress: Progress | None = None
    client: Client | None = None
    meta: JsonObject = field(default=EMPTY)
    extra: Mapping[str, Any] = field(default=EMPTY)
