"""Old rows are removed beside the calls, in pieces of some milliseconds (S2)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from pegboard.errors import StoreError
from pegboard.stores.sql.database import Database, Transaction

EVERY: Final = 60.0
"""After how many seconds it is looked for old rows, where anything is written."""
EVERY_ROWS: Final = 400
"""After how many written rows it is looked earlier."""
PAUSE: Final = 0.01
"""How many seconds others have between two pieces."""

log = logging.getLogger(__name__)
Removal = Callable[[Transaction], Awaitable[bool]]


class Cleaning:
    """Removes what is over, each piece in a transaction of its own; a piece returns whether there may be more of it."""

    def __init__(self, database: Database) -> None:
        self._db: Final = database
        self.pieces: Final[list[Removal]] = []
        self._task: asyncio.Task[None] | None = None
        self._running: Final = asyncio.Lock()
        self._rows = 0
        self._next = 0.0

    def schedule(self, rows: int) -> None:
        """Clean in the background where it is time to, now that so many rows were written."""
        self._rows += rows
        if (self._task is None or self._task.done()) and self._is_due():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def clean(self) -> None:
        """Remove all that is over now; raises ``StoreError`` where nothing can be written."""
        async with self._running:  # some of them know where they were
            for piece in self.pieces:
                more = True
                while more:
                    more = await self._db.write(piece, "cleaning")
                    await asyncio.sleep(PAUSE if more else 0)

    async def stop(self) -> None:
        """End what goes on in the background."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _is_due(self) -> bool:
        return self._rows >= EVERY_ROWS or time.monotonic() >= self._next

    async def _run(self) -> None:
        while self._is_due():
            self._rows, self._next = 0, time.monotonic() + EVERY
            await asyncio.sleep(PAUSE)
            try:
                await self.clean()
            except StoreError as error:
                log.debug("Old rows are not removed yet. %s", error)
