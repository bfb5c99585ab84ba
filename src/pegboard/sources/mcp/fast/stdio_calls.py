"""Calls over stdio that go around the SDK. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import anyio

from pegboard.sources.mcp.fast.fast_path import CallAroundSdk, FastPath, cancellation
from pegboard.sources.mcp.wire.messages import (
    Message,
    as_answer,
    is_plain_answer,
    parse_by_model,
    parse_message,
    requests_answered,
    unread_because,
)
from pegboard.sources.mcp.wire.open_connection import OpenConnection
from pegboard.sources.mcp.wire.request_outcomes import (
    NO_MESSAGE,
    ConnectionEndedError,
    InFlight,
    InvalidAnswerError,
    RequestNumbers,
    TooLargeError,
)

WriteRequests = Callable[[bytes, Sequence[tuple[int, InFlight]]], None]
"""Write requests, each with where it ends; raises ``ClosedResourceError`` only where nothing of them can be read."""


def _why_unreadable(line: bytes) -> str:
    try:
        parse_by_model(line)
    except ValueError as error:
        return unread_because(error)
    return NO_MESSAGE


class StdioFastPath(FastPath):
    """The calls over a process whose answers are taken before the session sees them.

    ``write`` leads to its standard input, which is not ``writable`` while the server reads nothing.
    """

    def __init__(
        self, live: OpenConnection, write: WriteRequests, writable: asyncio.Event, numbers: RequestNumbers | None
    ) -> None:
        super().__init__(live, self._send, numbers)
        self._write = write
        self._writable = writable
        self._unsent: dict[CallAroundSdk, bytes] = {}

    def route(self, line: bytes) -> bool:
        """Take a line if it belongs to a call made here; return whether it does."""
        if not self.pending:
            return False
        if (message := parse_message(line)) is None:
            return self._fail_named(line)
        if "method" in message:
            return self.pass_notification(message)
        number: object = message.get("id")
        pending = self.pending.get(number) if type(number) is int else self.find(number)
        if pending is None:
            return False
        answer: Message | None = message
        if not is_plain_answer(message):
            try:
                answer = as_answer(parse_by_model(line))
            except ValueError:
                return self._fail_named(line)
        if answer is None:
            return False
        pending.finish(answer)
        return True

    def _fail_named(self, line: bytes) -> bool:
        """End the calls that a line answers which is no message; return whether there are any."""
        found = [pending for number in requests_answered(line) if (pending := self.find(number)) is not None]
        for pending in found:
            pending.finish(InvalidAnswerError(_why_unreadable(line)))
        return bool(found)

    def fail_oversized(self, number: int | str) -> bool:
        """End the call whose answer is over the limit; return whether it was made here."""
        pending = self.find(number)
        if pending is not None:
            pending.finish(TooLargeError())
        return pending is not None

    def _send(self, pending: CallAroundSdk, body: bytes) -> Coroutine[Any, Any, Message]:
        """Write a request and wait for the answer; the server is notified when no one waits any longer."""
        pending.given_up = self._cancel_request
        self._unsent[pending] = body + b"\n"
        if len(self.pending) == 1:
            self._flush()
        elif len(self._unsent) == 1:  # with others under way, what comes in this turn of the loop goes out at once
            self._loop.call_soon(self._flush)
        return pending.wait() if self._writable.is_set() else self._wait_until_writable(pending)

    async def _wait_until_writable(self, pending: CallAroundSdk) -> Message:
        try:
            await self._writable.wait()
        except asyncio.CancelledError:
            self._cancel_request(pending)
            raise
        return await pending.wait()

    def _cancel_request(self, pending: CallAroundSdk) -> None:
        """Notify the server that no one waits for an answer that it may still give."""
        if self._unsent.pop(pending, None) is None and pending.outcome is None:
            with suppress(anyio.ClosedResourceError):
                self._write(cancellation(pending.number) + b"\n", ())

    def _flush(self) -> None:
        """Write the requests that wait."""
        if not self._unsent:
            return
        waiting, self._unsent = self._unsent, {}
        requests: list[tuple[int, InFlight]] = []
        end = 0
        for pending, body in waiting.items():
            end += len(body)
            requests.append((end, pending.in_flight))
        try:
            self._write(b"".join(waiting.values()), requests)
        except anyio.ClosedResourceError:
            for pending in waiting:
                pending.finish(ConnectionEndedError("Connection closed", pending.in_flight, dead=True))
        else:
            for pending in waiting:
                pending.in_flight.sent = True
