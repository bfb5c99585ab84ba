"""What waits to be written in batches: records of calls, remembered use, counts (S2, X4, F4)."""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from pegboard.errors import StoreError
from pegboard.stores.sql.database import Database, Transaction, insert

T = TypeVar("T")

DELAY: Final = 0.03  # leaves 20 ms of the 50 for the loop and for other writers
MOST_AT_ONCE: Final = 1_000
"""How many rows of a kind one batch has."""
_STORED: Final = "SELECT number FROM main.batch WHERE writer = ?"
_NUMBER: Final = insert("batch", ("writer", "number", "at"), key=("writer",))
_DAY: Final = 24 * 3600.0

log = logging.getLogger(__name__)


class WaitingRows(Protocol):
    """Rows of one kind that wait to be written."""

    def __len__(self) -> int:
        """Return how many wait."""
        ...

    def take(self, most: int) -> Any:
        """Return what is to be written, which waits no longer."""
        ...

    async def put(self, transaction: Transaction, taken: Any) -> None:
        """Write what was taken."""
        ...

    def written(self, taken: Any) -> None:
        """Note that what was taken is stored."""
        ...

    def drop_surplus(self) -> int:
        """Let the oldest go where too many wait; return how many."""
        ...


class _Batch(NamedTuple):
    """What is written at once, under a number that tells afterwards whether it was."""

    number: int
    parts: Sequence[tuple[WaitingRows, Any]]


class Batches:
    """Writes what waits, in order and once, also where a connection was lost before the database had answered."""

    def __init__(self, database: Database) -> None:
        self._db: Final = database
        self.kinds: Final[list[WaitingRows]] = []
        self.before_batch: Final[list[Callable[[], object]]] = []
        """Called before a batch is made, so that what they bring is in it."""
        self._writer = os.urandom(8).hex()
        self._batch: _Batch | None = None
        self._taken = 0
        self.has_rows = False
        """Whether rows may wait."""
        self._stored = 0
        self._flushing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_scheduled(self) -> bool:
        """Return whether a running loop is about to write what waits."""
        return self._timer is not None and self._loop is not None and self._loop.is_running()

    def schedule(self) -> None:
        """See to it that what waits is written soon; where no loop runs, with the next that is written."""
        self.has_rows = True
        if self.is_scheduled:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._loop, self._timer = loop, loop.call_later(DELAY, self._start)

    async def write_before(self, work: Callable[[Transaction], Awaitable[T]], *locks: str) -> T:
        """Write what waits, then what the work writes: in one transaction, where an error says that nothing is stored.

        Returns what the work returns.
        """
        waiting = max(map(len, self.kinds), default=0)
        if self._db.answers_get_lost or waiting > MOST_AT_ONCE or not (self._batch or waiting):
            await self.flush()
            return await self._db.write(work, *locks)
        async with self._flushing:
            batch = self._batch = self._batch or self._next()

            async def with_batch(transaction: Transaction) -> T:
                if batch is not None:
                    await self._put(batch, transaction)
                return await work(transaction)

            result = await self._db.write(with_batch, *locks)
            if batch is not None:
                self._is_stored(batch)
            return result

    async def flush(self) -> None:
        """Write what waits now, one batch after the other; what comes meanwhile waits for the next."""
        waiting = max(map(len, self.kinds), default=0)
        if self._batch is None and not waiting:
            self.has_rows = False
            return
        last = self._taken + math.ceil(waiting / MOST_AT_ONCE)
        async with self._flushing:
            if self._batch is not None and self._db.answers_get_lost:
                rows = await self._db.rows(_STORED, self._writer)
                if rows and rows[0][0] >= self._batch.number:
                    self._is_stored(self._batch)
            while self._stored < last and (batch := self._batch or self._next()) is not None:
                self._batch = batch
                await self._db.write(partial(self._put, batch))
                self._is_stored(batch)

    def _is_stored(self, batch: _Batch) -> None:
        self._stored, self._batch = batch.number, None
        for kind, taken in batch.parts:
            kind.written(taken)

    def _next(self) -> _Batch | None:
        kinds = [kind for kind in self.kinds if len(kind)]
        if kinds and self.before_batch:
            for call in self.before_batch:
                call()
            kinds = [kind for kind in self.kinds if len(kind)]
        if not kinds:
            return None
        self._taken += 1
        return _Batch(self._taken, [(kind, kind.take(MOST_AT_ONCE)) for kind in kinds])

    async def _put(self, batch: _Batch, transaction: Transaction) -> None:
        if self._db.answers_get_lost:
            now = self._db.clock()
            await transaction.run(_NUMBER, self._writer, batch.number, now)
            await transaction.run("DELETE FROM main.batch WHERE at < ?", now - _DAY)
        transaction.announce(others=True)
        for kind, taken in batch.parts:
            await kind.put(transaction, taken)

    def stop(self) -> None:
        """Start no more flushes and end the one that runs; what waits stays."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(self) -> None:
        self._timer = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        else:  # it may have taken what it writes before this came
            self.schedule()

    async def _run(self) -> None:
        """Flush; what cannot be written waits for the next flush, the oldest give way in the end."""
        try:
            await self.flush()
        except StoreError as error:
            surplus = sum(kind.drop_surplus() for kind in self.kinds)
            lost = f"; {surplus:,} of the oldest records are lost" if surplus else ""
            log.error("What was recorded and counted is not written yet%s. %s", lost, error)
