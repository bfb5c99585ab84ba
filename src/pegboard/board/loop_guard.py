"""The event loop that a board works in: while it runs, no other one uses the board's sessions and approvals."""

from __future__ import annotations

import asyncio
from threading import get_ident

from pegboard.errors import UsageError


class LoopGuard:
    """Keeps the event loops of other threads away from the sessions and approvals of a board.

    They share the store's connection, whose transactions two loops would break. A loop that does not run at the moment
    gives way to the one that does.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def check(self) -> None:
        """Take the running event loop for the board's, unless that runs in another thread.

        Raises:
            UsageError: it does.
        """
        loop = self._loop
        if loop is not None and self._thread == get_ident() and loop.is_running():
            return  # a thread runs one loop at a time: asking which takes longer
        here = asyncio.get_running_loop()
        if loop is not None and loop.is_running():
            raise UsageError(
                "The board works in an event loop that runs in another thread.",
                hint="Open a board in each loop, with the same store, or one for all with `Pegboard.open_sync`.",
            )
        self._loop, self._thread = here, get_ident()
