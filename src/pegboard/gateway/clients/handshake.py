"""What upstreams ask of clients: which of it a client takes, and how those of the handshake era get it (G7, G9)."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
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
PREFIX: Final = "pegboard-ask-"
"""How the ids of requests begin that are sent around the SDK, which counts its own from 1."""

Notify = Callable[[Message], Awaitable[None]]
WhenGone = Callable[[Callable[[], None]], None]
"""Call back when the client of a call goes away."""
Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]

_CALLED: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def askable(capabilities: object) -> bool:
    """Return whether a client takes anything at all that an upstream may ask."""
    if not isinstance(capabilities, Mapping):
        return False
    declared = cast("Mapping[str, Any]", capabilities)
    return any(declared.get(name) is not None for name in _CALLED.values())


def lacking(capabilities: Mapping[str, Any], method: str, params: JsonObject) -> str | None:
    """Return what a client would have to take for this request and does not, or None.

    >>> lacking({"elicitation": {}}, "elicitation/create", {"mode": "url"})
    'elicitation by URL'
    """
    name = _CALLED.get(method, method)
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
    """Raise ``AskRefusedError`` where a client does not take a request."""
    missing = lacking(capabilities, method, params)
    if missing is not None:
        raise AskRefusedError(f"The client of this call does not take {missing}.")


class OpenQuestions:
    """Hold the questions that are open, so many for each principal, and those that go around the SDK by their id."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._counts: Counter[str] = Counter()
        self._open: dict[str, tuple[_Who, asyncio.Future[Message]]] = {}

    @contextmanager
    def one_more(self, principal: str) -> Generator[None]:
        """Count a question as open; raises ``AskRefusedError`` where there are too many."""
        if self._counts[principal] >= MOST:
            raise AskRefusedError(f"{MOST} questions to this client's owner are open: no more are asked.")
        self._counts[principal] += 1
        try:
            yield
        finally:
            self._counts[principal] -= 1
            if not self._counts[principal]:
                del self._counts[principal]

    @property
    def open(self) -> bool:
        """Return whether an answer is awaited that the SDK knows nothing of."""
        return bool(self._open)

    async def ask(
        self, caller: Caller, notify: Notify, when_gone: WhenGone | None, method: str, params: JsonObject
    ) -> JsonObject:
        """Send a request on the stream of a call and return the answer; raises ``AskRefusedError``."""
        number = f"{PREFIX}{next(self._numbers)}"
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[number] = _who(caller), answer
        if when_gone is not None:
            when_gone(lambda: _fail(answer, "The client of this call went away."))
        request: Message = {"jsonrpc": "2.0", "id": number, "method": method}
        try:
            await notify({**request, "params": dict(params)} if params else request)
            return _result(await answer)
        except asyncio.CancelledError:
            cancelled = {"requestId": number, "reason": "nobody waits for the answer any more"}
            with suppress(Exception):  # the client may be gone
                await notify({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            raise
        finally:
            del self._open[number]

    def answered(self, message: Message | None, caller: Caller) -> bool:
        """Take a message if it is an answer that is awaited here, of whoever was asked; return whether it is."""
        number = message.get("id") if message is not None and "method" not in message else None
        if message is None or not isinstance(number, str) or number not in self._open:
            return False
        owner, answer = self._open[number]
        if owner != _who(caller):
            return False
        if not answer.done():
            answer.set_result(message)
        return True


_Who = tuple[str, str, str | None]


def _who(caller: Caller) -> _Who:
    return caller.principal, caller.agent, caller.transport_session


def _fail(answer: asyncio.Future[Message], why: str) -> None:
    if not answer.done():
        answer.set_exception(AskRefusedError(why))


def _result(message: Message) -> JsonObject:
    match message:
        case {"result": dict()}:
            return cast("JsonObject", message["result"])
        case {"error": {"code": int() as code, "message": str() as said}}:
            raise AskRefusedError(said, code=code, data=cast("Message", message["error"]).get("data"))
        case _:
            raise AskRefusedError("The client of this call gave an answer that is none.")


class HandshakeClient:
    """Be the client of one call in the handshake era: asked by requests on the stream of the call."""

    __slots__ = ("_asks", "_caller", "_connection", "_notify", "_send", "listener")

    def __init__(
        self,
        connection: Connection,
        caller: Caller,
        asks: OpenQuestions,
        listener: LogForwarder,
        notify: Notify,
        send: Ask,
    ) -> None:
        self.listener = listener
        self._connection = connection
        self._caller = caller
        self._asks = asks
        self._notify = notify
        self._send = send

    @property
    def level(self) -> str | None:
        """Return the level that the connection has chosen."""
        return self.listener.level

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return what the client answers; raises ``AskRefusedError``."""
        declared = self._connection.client_capabilities
        demand(declared.model_dump(by_alias=True, exclude_none=True) if declared is not None else {}, method, params)
        if params.get("mode") == "url" and "elicitationId" not in params:  # demanded before 2026-07-28
            params = {**params, "elicitationId": uuid4().hex}
        with self._asks.one_more(self._caller.principal):
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._send(method, params)
            except TimeoutError:
                raise AskRefusedError(f"The client of this call did not answer within {PATIENCE:g} s.") from None

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on, on the stream of the call."""
        if requested_level(method, params, self.level, default=True):
            await self._notify({"jsonrpc": "2.0", "method": method, "params": dict(params)})
