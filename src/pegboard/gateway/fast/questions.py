"""Requests to clients of the handshake era on the stream of a call that went around the SDK (G7)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from pegboard.core.model.tools import JsonObject
from pegboard.gateway.clients.handshake import Notify
from pegboard.gateway.protocol.jsonrpc import Message
from pegboard.ports import AskRefusedError

if TYPE_CHECKING:
    from pegboard.gateway.protocol.board_port import Caller

PREFIX: Final = "pegboard-ask-"
"""How the ids of these requests begin: the SDK counts its own from 1."""

OnGone = Callable[[Callable[[], None]], None]
"""Call back when the client of a call goes away."""
_Recipient = tuple[str, str, str | None]


class FastQuestions:
    """The requests that are sent around the SDK and not answered yet, by their id."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._open: dict[str, tuple[_Recipient, asyncio.Future[Message]]] = {}

    @property
    def open(self) -> bool:
        """Return whether an answer is awaited that the SDK does not await."""
        return bool(self._open)

    async def ask(
        self, caller: Caller, notify: Notify, on_gone: OnGone | None, method: str, params: JsonObject
    ) -> JsonObject:
        """Send a request on the stream of a call and return the answer; raises ``AskRefusedError``."""
        number = f"{PREFIX}{next(self._numbers)}"
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[number] = _recipient(caller), answer
        if on_gone is not None:
            on_gone(lambda: _fail(answer, "The client of this call went away."))
        request: Message = {"jsonrpc": "2.0", "id": number, "method": method}
        try:
            await notify({**request, "params": dict(params)} if params else request)
            return _result(await answer)
        except asyncio.CancelledError:
            cancelled = {"requestId": number, "reason": "no one waits for the answer any longer"}
            with suppress(Exception):  # the client may be gone
                await notify({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            raise
        finally:
            del self._open[number]

    def resolve(self, message: Message | None, caller: Caller) -> bool:
        """Return whether a message is an answer that is awaited here, of whoever was asked; it then has it."""
        number = message.get("id") if message is not None and "method" not in message else None
        if message is None or not isinstance(number, str) or number not in self._open:
            return False
        recipient, answer = self._open[number]
        if recipient != _recipient(caller):
            return False
        if not answer.done():
            answer.set_result(message)
        return True


def _recipient(caller: Caller) -> _Recipient:
    return caller.principal, caller.agent, caller.transport_session


def _fail(answer: asyncio.Future[Message], why: str) -> None:
    if not answer.done():
        answer.set_exception(AskRefusedError(why))


def _result(message: Message) -> JsonObject:
    match message:
        case {"result": dict()}:
            return cast("JsonObject", message["result"])
        case {"error": {"code": int() as code, "message": str() as text}}:
            raise AskRefusedError(text, code=code, data=cast("Message", message["error"]).get("data"))
        case _:
            raise AskRefusedError("The client of this call sent an invalid answer.")
