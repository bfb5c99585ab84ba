"""Calls that go around the SDK: requests as bytes, answers by id; see README.md here.

The SDK opens the connection and does all else on it. What is not plainly well-formed is read by the
SDK's own models. Imports the SDK: import late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from opentelemetry.context import get_current
from opentelemetry.trace import INVALID_SPAN, get_current_span
from pydantic_core import to_json

from pegboard.sources.mcp.wire.messages import Message
from pegboard.sources.mcp.wire.open_connection import OpenConnection, introduced_capabilities
from pegboard.sources.mcp.wire.request_outcomes import ConnectionEndedError, InFlight, RequestNumbers, UseSdkError
from pegboard.sources.mcp.wire.server_requests import MESSAGE
from pegboard.sources.mcp.wire.upstream_call import Call, Thunk
from pegboard.support.mcp_constants import CAPABILITIES_KEY, VERSION_KEY

log = logging.getLogger("pegboard.sources.mcp")

Report = tuple[float, float | None, str | None]
Send = Callable[["CallAroundSdk", bytes], Awaitable[Message]]
"""Send the request of a call, and return the answer."""


class CallAroundSdk:
    """A call under way: what the server reports meanwhile and its outcome, in the order of arrival."""

    __slots__ = ("_loop", "_progress", "_reports", "_wake", "call", "given_up", "in_flight", "number", "outcome")

    def __init__(self, number: int, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        self.call = call
        call.before_answer = self.run_before_answer
        self.in_flight = InFlight()
        self.outcome: Message | Exception | None = None
        self.given_up: Callable[[CallAroundSdk], None] | None = None
        """Called where whoever waits is cancelled."""
        self._progress = call.progress
        self._reports: list[Report | Thunk] = []
        self._loop = loop
        self._wake: asyncio.Future[None] | None = None

    def finish(self, outcome: Message | Exception) -> None:
        """Take the outcome; the first stands."""
        if self.outcome is None:
            self.outcome = outcome
            self._wake_waiting()

    def report(self, params: Message) -> None:
        """Take a report of progress, if it is one."""
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if self._progress is None or self.outcome is not None:
            return
        if isinstance(progress, bool) or not isinstance(progress, int | float):
            return
        whole = float(total) if isinstance(total, int | float) else None
        self._reports.append((float(progress), whole, message if isinstance(message, str) else None))
        self._wake_waiting()

    def run_before_answer(self, what: Thunk) -> bool:
        """Take what is to be passed on before the answer; return whether there is still time."""
        if self.outcome is not None:
            return False
        self._reports.append(what)
        self._wake_waiting()
        return True

    def _wake_waiting(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def wait(self) -> Message:
        """Pass reports on as they come, then return the answer, or raise what ended the call."""
        try:
            while True:
                while self._reports:
                    reports, self._reports = self._reports, []
                    for report in reports:
                        await self._pass_report_on(report)
                outcome = self.outcome
                if outcome is None:
                    self._wake = self._loop.create_future()
                    await self._wake
                elif isinstance(outcome, Exception):
                    raise outcome
                else:
                    return outcome
        except asyncio.CancelledError:
            if self.given_up is not None:
                self.given_up(self)
            raise

    async def _pass_report_on(self, report: Report | Thunk) -> None:
        try:
            if callable(report):
                await report()
            elif self._progress is not None:
                await self._progress(*report)
        except Exception:
            log.exception("passing a report of a server on failed")


class FastPath:
    """The way around the SDK for the calls over one connection that the SDK has opened.

    ``send`` is the way of its transport, ``numbers`` gives its requests their ids.
    """

    def __init__(self, live: OpenConnection, send: Send, numbers: RequestNumbers | None = None) -> None:
        self.live = live
        self.send = send
        self.pending: dict[int, CallAroundSdk] = {}
        self.modern = False
        self.is_open = False
        self._loop = asyncio.get_running_loop()
        self._envelope: Message = {}
        self._numbers = numbers or RequestNumbers()

    def open(self) -> None:
        """Begin: the era is known now."""
        live = self.live
        self.modern = live.modern
        live.on_progress = self.report
        if self.modern:
            self._envelope = {**live.envelope, VERSION_KEY: live.version}
        self.is_open = not self.modern or len(self._envelope) > 1
        live.fast_call = self.call

    def takes(self, name: str) -> bool:
        """Return whether a call may go here; one that is being traced goes by the SDK, which passes the trace on."""
        return self.is_open and name not in self.live.header_tools and not _is_traced()

    async def call(self, call: Call) -> Message:
        """Return the raw result; raises ``UseSdkError``, ``MCPError`` and those of :mod:`..wire.request_outcomes`."""
        if not self.takes(call.name):
            raise UseSdkError
        number = self._numbers.begin_request()
        try:
            pending = CallAroundSdk(number, call, self._loop)
            body = self._request(number, call)
            self.pending[number] = pending
            message = await self.send(pending, body)
        finally:
            self.pending.pop(number, None)
            self._numbers.end_request(number)
            call.before_answer = None
        return result_in(message)

    def _request(self, number: int, call: Call) -> bytes:
        arguments, meta = call.arguments, self.live.server_requests.logs.meta(call)
        about: Message = {**meta, **self._envelope} if meta else self._envelope
        if call.progress is not None:
            about = {**about, "progressToken": number}
        given = arguments if isinstance(arguments, dict) else dict(arguments)
        params: Message = {"name": call.name, "arguments": given}
        client = call.client
        if client is not None and (client.declares or client.wanted_task):
            if self.modern:
                own = introduced_capabilities(self._envelope[CAPABILITIES_KEY], client.declares, modern=True)
                about = {**about, CAPABILITIES_KEY: own}
            elif client.wanted_task is not None:
                params["task"] = dict(client.wanted_task)
        if about:
            params["_meta"] = about
        try:
            text = to_json(params, inf_nan_mode="null")
        except ValueError:
            raise UseSdkError from None
        return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (number, text)

    def pass_notification(self, message: Message, call: Call | None = None) -> bool:
        """Pass a notification to the call that it belongs to; return whether there is one."""
        match message["method"]:
            case "notifications/progress":
                return self.report(message.get("params"))
            case method if method == MESSAGE:
                return self.live.server_requests.logs.pass_on(MESSAGE, message.get("params"), call)
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

    def find(self, number: object) -> CallAroundSdk | None:
        """Return the call of an id; a number as text counts."""
        if type(number) is str:
            number = coerce_request_id(number)
        return self.pending.get(number) if type(number) is int else None

    def close(self) -> None:
        """End every call under way: nothing can be answered any longer."""
        self.is_open = False
        for pending in self.pending.values():
            in_flight = pending.in_flight
            pending.finish(ConnectionEndedError("Connection closed", in_flight, dead=not in_flight.sent))


def _is_traced() -> bool:
    """Return whether a span is open; most processes have nothing at all in their context."""
    context = get_current()
    return bool(context) and get_current_span(context) is not INVALID_SPAN


def cancellation(number: int) -> bytes:
    """Return the message that tells a server that no one waits any longer."""
    params = {"requestId": number, "reason": "caller cancelled"}
    return to_json({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def result_in(message: Message) -> Message:
    """Return the result in an answer, or raise the error in it."""
    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    return message["result"]
