"""One call under way: its client, its timeout, and what is passed on before its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pegboard.core.model.tools import JsonObject
from pegboard.ports import Client, Progress
from pegboard.sources.mcp.wire.timeouts import TimeLimit

log = logging.getLogger("pegboard.sources.mcp")

_ASKED_WITHIN = 1.0

Thunk = Callable[[], Awaitable[None]]


class Call:
    """A call under way: what is sent, who can be asked, and the timeout, which does not run meanwhile.

    ``meta`` is the ``_meta`` that goes along, ``progress`` takes reports. ``limit`` is set before anything
    is sent. ``before_answer`` takes what is to be passed on before the answer, in the order of arrival, where
    the call goes around the SDK; it returns False where the answer already exists. ``passes_on`` is whether
    something was passed on by :meth:`pass_on` and not before the answer. ``forgotten`` is how
    often the list of the tools was forgotten when the call was let through: it is not sent once that is more.
    """

    __slots__ = (
        "_asking", "_last", "_left", "arguments", "before_answer", "client", "forgotten", "limit", "meta", "name",
        "over", "passes_on", "progress", "tasks",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        arguments: JsonObject,
        meta: dict[str, Any] | None,
        progress: Progress | None,
        client: Client | None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.meta = meta
        self.progress = progress
        self.client = client
        self.limit: TimeLimit | None = None
        self.forgotten = 0
        self.before_answer: Callable[[Thunk], bool] | None = None
        self.over = self.passes_on = False
        self.tasks: set[asyncio.Task[JsonObject]] = set()
        self._asking = 0
        self._left: float | None = None
        self._last: asyncio.Task[None] | None = None

    @contextmanager
    def pause_timeout(self) -> Generator[None]:
        """Stop the timeout of the call: it does not run while its client answers."""
        limit = self.limit
        self._asking += 1
        if self._asking == 1 and limit is not None:
            self._left = limit.pause()
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking and self._left is not None and limit is not None:
                limit.resume(self._left)
                self._left = None

    def pass_on(self, what: Thunk) -> None:
        """Pass something on to the client after what came before, and before the answer."""
        if self.before_answer is None or not self.before_answer(what):
            self.passes_on = True
            self._last = asyncio.ensure_future(_run_after(self._last, what))

    async def finish_asking(self) -> None:
        """Wait until its client knows that nothing is asked any longer: its stream ends with the call."""
        await asyncio.wait(self.tasks, timeout=_ASKED_WITHIN)

    async def wait_until_passed_on(self) -> None:
        """Wait for what is still to be passed on."""
        while self._last is not None and not self._last.done():
            await asyncio.wait({self._last})


async def _run_after(before: asyncio.Task[None] | None, what: Thunk) -> None:
    if before is not None:
        await asyncio.wait({before})
    try:
        await what()
    except Exception:
        log.exception("passing a notification on failed")


CURRENT_CALL: Final[ContextVar[Call | None]] = ContextVar("pegboard_current_call", default=None)
"""The call that the current task sends through the SDK; what comes on its stream is read in that context."""
