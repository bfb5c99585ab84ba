"""Requests of upstreams to clients: which of them a client supports, and how the handshake era asks (G7, G9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from pegboard.core.model.tools import JsonObject
from pegboard.gateway.protocol.jsonrpc import Message
from pegboard.gateway.protocol.log_levels import LogForwarder, requested_level
from pegboard.ports import AskRefusedError

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from pegboard.gateway.protocol.board_port import Caller

MOST: Final = 64
"""How many questions to one principal may be open at once."""
PATIENCE: Final = 600.0
"""How long a client may take to answer, in seconds."""

Notify = Callable[[Message], Awaitable[None]]
AskClient = Callable[[str, JsonObject], Awaitable[JsonObject]]

_CAPABILITY_OF: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def askable(capabilities: object) -> bool:
    """Return whether a client supports any request that an upstream may make."""
    if not isinstance(capabilities, Mapping):
        return False
    declared = cast("Mapping[str, Any]", capabilities)
    return any(declared.get(name) is not None for name in _CAPABILITY_OF.values())


def lacking(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> str | None:
    """Return the capability that a client lacks for this request, or None.

    >>> lacking({"elicitation": {}}, "elicitation/create", {"mode": "url"})
    'elicitation by URL'
    """
    name = _CAPABILITY_OF.get(method, method)
    declared = capabilities.get(name)
    if declared is None:
        return name
    if name == "elicitation":
        mode = str(params.get("mode", "form"))
        if mode not in declared and not (mode == "form" and not declared):  # {} is that of forms alone
            return "elicitation by URL" if mode == "url" else f"elicitation of the mode {mode!r}"
    if name == "sampling" and ("tools" in params or "toolChoice" in params) and declared.get("tools") is None:
        return "sampling with tools"
    return None


def demand(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> None:
    """Raise ``AskRefusedError`` where a client does not support a request."""
    missing = lacking(capabilities, method, params)
    if missing is not None:
        raise AskRefusedError(f"The client of this call does not take {missing}.")


class OpenQuestions:
    """The number of questions that each principal has not answered yet; at most ``MOST``."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def one_more(self, principal: str) -> Generator[None]:
        """Count a question as open while the context lasts; raises ``AskRefusedError`` where there are too many."""
        if self._counts[principal] >= MOST:
            raise AskRefusedError(f"{MOST} questions to this client's owner are open: no more are asked.")
        self._counts[principal] += 1
        try:
            yield
        finally:
            self._counts[principal] -= 1
            if not self._counts[principal]:
                del self._counts[principal]


class HandshakeClient:
    """The client of one call in the handshake era: asked by requests on the stream of the call."""

    __slots__ = ("_caller", "_connection", "_notify", "_questions", "_send", "listener")

    def __init__(
        self,
        connection: Connection,
        caller: Caller,
        questions: OpenQuestions,
        listener: LogForwarder,
        notify: Notify,
        send: AskClient,
    ) -> None:
        self.listener = listener
        self._connection = connection
        self._caller = caller
        self._questions = questions
        self._notify = notify
        self._send = send

    @property
    def level(self) -> str | None:
        """Return the level that the connection has chosen."""
        return self.listener.level

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:  # noqa: ARG002
        """Return what the client answers; raises ``AskRefusedError``."""
        declared = self._connection.client_capabilities
        demand(declared.model_dump(by_alias=True, exclude_none=True) if declared is not None else {}, method, params)
        if params.get("mode") == "url" and "elicitationId" not in params:  # demanded before 2026-07-28
            params = {**params, "elicitationId": uuid4().hex}
        with self._questions.one_more(self._caller.principal):
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._send(method, params)
            except TimeoutError:
                raise AskRefusedError(f"The client of this call did not answer within {PATIENCE:g} s.") from None

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, on the stream of the call."""
        if requested_level(method, params, self.level, default=True):
            await self._notify({"jsonrpc": "2.0", "method": method, "params": dict(params)})
