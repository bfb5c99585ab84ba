"""Calls that go around the SDK: requests as bytes, answers by id.

The SDK opens the connection and does all else on it (docs/decisions/0004-calls-leave-the-sdk.md).
What is not plainly well-formed is read by the SDK's own models. Imports the SDK: import late.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry.trace import INVALID_SPAN, get_current_span
from pydantic_core import from_json, to_json

from pegboard.sources.mcp.wire.observed import ConnectionRecord, GoneError, InFlight
from pegboard.sources.mcp.wire.server_requests import MESSAGE, Call, Thunk

log = logging.getLogger("pegboard.sources.mcp")

Message = dict[str, Any]

# The SDK counts its ids from 1 and drops answers to others; every server takes integers of 31 bits.
_FIRST = 1_000_000_000


class UseSdkError(Exception):
    """Report a call of which nothing was sent, or which was surely not run: it goes by the SDK."""


class Pending:
    """Hold one call under way: what the server says meanwhile and its outcome, in the order of arrival."""

    __slots__ = ("_progress", "_reports", "_wake", "call", "flight", "number", "outcome")

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.call = call
        call.note = self.note
        self.flight = InFlight()
        self.outcome: Message | Exception | None = None
        self._progress = call.progress
        self._reports: deque[tuple[float, float | None, str | None] | Thunk] = deque()
        self._wake: asyncio.Future[None] | None = None

    def settle(self, outcome: Message | Exception) -> None:
        """Take the outcome; the first stands."""
        if self.outcome is None:
            self.outcome = outcome
            self._ring()

    def report(self, params: Message) -> None:
        """Take a report of progress, if it is one."""
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if self._progress is None or self.outcome is not None:
            return
        if isinstance(progress, bool) or not isinstance(progress, int | float):
            return
        whole = float(total) if isinstance(total, int | float) else None
        self._reports.append((float(progress), whole, message if isinstance(message, str) else None))
        self._ring()

    def note(self, what: Thunk) -> bool:
        """Take what is to be passed on before the answer; return whether there is still time."""
        if self.outcome is not None:
            return False
        self._reports.append(what)
        self._ring()
        return True

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def wait(self) -> Message:
        """Pass on what is said as it comes, then return the answer, or raise what ended the call."""
        while True:
            while self._reports:
                await self._pass_on(self._reports.popleft())
            if isinstance(self.outcome, Exception):
                raise self.outcome
            if self.outcome is not None:
                return self.outcome
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    async def _pass_on(self, report: tuple[float, float | None, str | None] | Thunk) -> None:
        try:
            if callable(report):
                await report()
            elif self._progress is not None:
                await self._progress(*report)
        except Exception:
            log.exception("passing on what a server said failed")


Send = Callable[[Pending, bytes], Awaitable[Message]]
"""Send the request of a call, and return the answer."""


class FastPath:
    """Make calls over a connection that the SDK has opened; ``send`` is the way of its transport.

    ``by_sdk`` names the tools that are left to the SDK because arguments of theirs belong in headers.
    """

    def __init__(self, link: ConnectionRecord, send: Send) -> None:
        self.link = link
        self.send = send
        self.pending: dict[int, Pending] = {}
        self.by_sdk: set[str] = set()
        self.modern = False
        self.is_open = False
        self._envelope: Message = {}
        self._numbers = itertools.count(_FIRST)

    def open(self) -> None:
        """Begin: the era is known now."""
        self.modern = self.link.version in MODERN_PROTOCOL_VERSIONS
        if self.modern:
            self._envelope = {
                **self.link.envelope, "io.modelcontextprotocol/protocolVersion": self.link.version,
            }  # fmt: skip
        self.is_open = not self.modern or len(self._envelope) > 1

    def takes(self, name: str) -> bool:
        """Return whether a call may go here; one that is being traced goes by the SDK, which passes the trace on."""
        return self.is_open and name not in self.by_sdk and get_current_span() is INVALID_SPAN

    async def call(self, call: Call) -> Message:
        """Return the raw result; raises ``DetourError``, ``GoneError``, ``InvalidAnswerError``, ``MCPError``."""
        pending = Pending(next(self._numbers), call)
        body = self._request(pending.number, call)
        self.pending[pending.number] = pending
        try:
            message = await self.send(pending, body)
        finally:
            del self.pending[pending.number]
            call.note = None
        return result_in(message)

    def _request(self, number: int, call: Call) -> bytes:
        arguments, meta = call.arguments, self.link.talk.meta(call)
        about = {**meta, **self._envelope} if meta else self._envelope
        if call.progress is not None:
            about = {**about, "progressToken": number}
        given = arguments if isinstance(arguments, dict) else dict(arguments)
        params: Message = {"name": call.name, "arguments": given}
        if about:
            params["_meta"] = about
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        try:
            return to_json(request, inf_nan_mode="null")
        except ValueError:
            raise UseSdkError from None

    def notified(self, message: Message, call: Call | None = None) -> bool:
        """Pass a notification to the call that it belongs to; return whether there is one."""
        match message["method"]:
            case "notifications/progress":
                return self.report(message.get("params"))
            case method if method == MESSAGE:
                return self.link.talk.said(MESSAGE, message.get("params"), call)
            case _:
                return False

    def report(self, params: object) -> bool:
        """Pass progress to the call that it belongs to; return whether there is one."""
        if not isinstance(params, dict):
            return False
        params = cast("Message", params)
        pending = self.find(params.get("progressToken"))
        if pending is not None:
            pending.report(params)
        return pending is not None

    def find(self, number: object) -> Pending | None:
        """Return the call of an id; a number as text counts."""
        if type(number) is str:
            number = coerce_request_id(number)
        return self.pending.get(number) if type(number) is int else None

    def close(self) -> None:
        """End every call under way: nothing can be answered any more."""
        self.is_open = False
        for pending in self.pending.values():
            pending.settle(GoneError("Connection closed", pending.flight, dead=not pending.flight.sent))


def cancellation(number: int) -> bytes:
    """Return the message that tells a server that nobody waits any more."""
    params = {"requestId": number, "reason": "caller cancelled"}
    return to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def parsed(data: bytes) -> Message | None:
    """Return a message that is an object of JSON, or None."""
    try:
        message: object = from_json(data)
    except ValueError:
        return None
    return cast("Message", message) if type(message) is dict else None


def plain(message: Message) -> bool:
    """Return whether a message is an answer exactly as the protocol has it."""
    if len(message) != 3 or message.get("jsonrpc") != "2.0" or "id" not in message:
        return False
    error: object = message.get("error")
    if type(error) is dict:
        error = cast("Message", error)
        return type(error.get("code")) is int and type(error.get("message")) is str
    return type(message.get("result")) is dict


def as_answer(message: JSONRPCMessage) -> Message | None:
    """Return what the SDK made of an answer, or None where it is none."""
    match message:
        case JSONRPCResponse():
            return {"id": message.id, "result": message.result}
        case JSONRPCError():
            return {"id": message.id, "error": message.error.model_dump()}
        case _:
            return None


def by_model(data: bytes | str) -> JSONRPCMessage:
    """Return what the SDK makes of a message; raises ``ValidationError``."""
    return jsonrpc_message_adapter.validate_json(data, by_name=False)


def result_in(message: Message) -> Message:
    """Return the result in an answer, or raise the error in it."""
    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    return message["result"]
