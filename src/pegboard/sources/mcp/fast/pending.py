"""One call under way around the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from pegboard.sources.mcp.wire.messages import Message
from pegboard.sources.mcp.wire.request_outcomes import InFlight
from pegboard.sources.mcp.wire.upstream_call import Call, Thunk

log = logging.getLogger("pegboard.sources.mcp")

Report = tuple[float, float | None, str | None]


class PendingCall:
    """A call under way: what the server reports meanwhile and its outcome, in the order of arrival."""

    __slots__ = ("_progress", "_reports", "_wake", "call", "in_flight", "number", "outcome")

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        self.call = call
        call.before_answer = self.before_answer
        self.in_flight = InFlight()
        self.outcome: Message | Exception | None = None
        self._progress = call.progress
        self._reports: deque[Report | Thunk] = deque()
        self._wake: asyncio.Future[None] | None = None

    def finish(self, outcome: Message | Exception) -> None:
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

    def before_answer(self, what: Thunk) -> bool:
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
        """Pass reports on as they come, then return the answer, or raise what ended the call."""
        while True:
            while self._reports:
                await self._pass_on(self._reports.popleft())
            if isinstance(self.outcome, Exception):
                raise self.outcome
            if self.outcome is not None:
                return self.outcome
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    async def _pass_on(self, report: Report | Thunk) -> None:
        try:
            if callable(report):
                await report()
            elif self._progress is not None:
                await self._progress(*report)
        except Exception:
            log.exception("passing a report of a server on failed")
