"""Calls over stdio that go around the SDK. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from pegboard.sources.mcp.fast.fast_path import (
    FastPath,
    Message,
    Pending,
    as_answer,
    by_model,
    cancellation,
    parsed,
    plain,
)
from pegboard.sources.mcp.wire.malformed import answered
from pegboard.sources.mcp.wire.observed import NO_MESSAGE, ConnectionRecord, GoneError, InvalidAnswerError

if TYPE_CHECKING:
    from pegboard.sources.mcp.transports.process import ServerProcess


class StdioFastPath(FastPath):
    """Write calls to a process, and take their answers before the session sees them."""

    def __init__(self, link: ConnectionRecord, child: ServerProcess) -> None:
        super().__init__(link, self._send)
        self._child = child
        self._unsent: dict[Pending, bytes] = {}

    def route(self, line: bytes) -> bool:
        """Take a line if it belongs to a call of this lane; return whether it does."""
        if not self.pending:
            return False
        if (message := parsed(line)) is None:
            return self._blame(line)
        if "method" in message:
            return self.notified(message)
        pending = self.find(message.get("id"))
        if pending is None:
            return False
        answer: Message | None = message
        if not plain(message):
            try:
                answer = as_answer(by_model(line))
            except ValueError:
                return self._blame(line)
        if answer is None:
            return False
        pending.settle(answer)
        return True

    def _blame(self, line: bytes) -> bool:
        """End the calls that a line answers which is no message; return whether there are any."""
        found = [pending for number in answered(line) if (pending := self.find(number)) is not None]
        for pending in found:
            pending.settle(InvalidAnswerError(NO_MESSAGE))
        return bool(found)

    async def _send(self, pending: Pending, body: bytes) -> Message:
        """Write a request and return the answer; the server is told when nobody waits any more."""
        child = self._child
        self._unsent[pending] = body + b"\n"
        if len(self.pending) == 1:
            self._flush()
        elif len(self._unsent) == 1:  # with others under way, what comes in this turn of the loop goes out at once
            asyncio.get_running_loop().call_soon(self._flush)
        try:
            if not child.writable.is_set():
                await child.writable.wait()
            return await pending.wait()
        except asyncio.CancelledError:
            if self._unsent.pop(pending, None) is None and pending.outcome is None:
                with suppress(anyio.ClosedResourceError):
                    child.write(cancellation(pending.number) + b"\n", None)
            raise

    def _flush(self) -> None:
        """Write the requests that wait."""
        if not self._unsent:
            return
        waiting, self._unsent = self._unsent, {}
        *_, last = waiting
        try:
            self._child.write(b"".join(waiting.values()), last.flight)
        except anyio.ClosedResourceError:
            for pending in waiting:
                pending.settle(GoneError("Connection closed", pending.flight, dead=True))
        else:
            for pending in waiting:
                pending.flight.sent = True
