"""Old rows are removed beside the calls, in pieces of some milliseconds (S2).

Old records are found by going over all of them now and then, so that no write keeps an index for it (X4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pegboard.errors import StoreError
from pegboard.ports import MOST_DETAILS
from pegboard.stores.sql.database import Database, Transaction, condition_of_values, microseconds
from pegboard.support.tasks import start_detached

CLEANED_EVERY: Final = 60.0
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
            self._task = start_detached(self._clean_until_done())

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

    async def _clean_until_done(self) -> None:
        while self._is_due():
            self._rows, self._next = 0, time.monotonic() + CLEANED_EVERY
            await asyncio.sleep(PAUSE)
            try:
                await self.clean()
            except StoreError as error:
                log.debug("Old rows are not removed yet. %s", error)


LOOKED_OVER_EVERY: Final = 3600.0
"""After how many seconds all records are looked at again, where any was written."""
LEAST_DECISIONS: Final = 400
"""How many decisions are written at least before that is done earlier: as many as there is room for, or a quarter."""
DETAILS_WRITTEN: Final = MOST_DETAILS // 16
"""After how many characters of details it is done earlier."""
LOOKED_AT_ONCE: Final = 500
CHANGED_AT_ONCE: Final = 256
"""Both take some milliseconds."""

_NEXT: Final = (
    "SELECT id, of_session, of_names, days, size, at + abs(days) * 86400000000 FROM main.request"
    " WHERE id > ? ORDER BY id LIMIT ?"
)
_IMPORTED: Final = "SELECT value FROM main.counter WHERE name = 'pins'"
"""A number that is another one after an import."""


class _DecisionCount(NamedTuple):
    """How many decisions, and how many characters of details."""

    decisions: int = 0
    details: int = 0


class _CleaningProgress(NamedTuple):
    """How far it was looked, and what was seen: what is left and what was removed."""

    last: int = 0
    left: _DecisionCount = _DecisionCount()
    gone: _DecisionCount = _DecisionCount()


class _SharedNames(NamedTuple):
    """A table of names that records share: the column that has its numbers, and those that were seen there."""

    table: str
    column: str
    used: set[int]


class OldRequests:
    """Removes calls whose days are over, details, and the oldest decisions where there are too many.

    It goes from the oldest record to the newest, some of them in each transaction. What is too much is known once all
    is counted: that is removed when it goes over the records again, which is at once. Names that no record has any
    more go at the end.
    """

    def __init__(self) -> None:
        self.decisions_kept = 100_000
        self.is_due = True
        """Whether all are to be looked at, although that was done a short time ago."""
        self.names_removed = 0
        """How often names were removed: numbers of names that were read before may be gone."""
        self._seen: _CleaningProgress | None = None
        self._shared: list[_SharedNames] = []
        self._to_check: list[_SharedNames] = []
        self._checked = self._end = self._imported = 0
        self._surplus = _DecisionCount()
        self._decisions_written = self._details_written = 0
        self._most_decisions = LEAST_DECISIONS
        self._next = 0.0

    def note_written(self, decisions: int, details: int) -> None:
        """Note that so many decisions were written, and so many characters of details; calls go by their days alone."""
        self._decisions_written += decisions
        self._details_written += details
        if not self.is_due:
            self.is_due = (
                self._decisions_written >= self._most_decisions
                or self._details_written >= DETAILS_WRITTEN
                or time.monotonic() >= self._next
            )

    async def remove_some(self, transaction: Transaction) -> bool:
        """Remove what is old among the next records; return whether there is more to do."""
        if self._to_check:
            await self._remove_names(transaction)
            return bool(self._to_check) or self.is_due
        if self._seen is None and not self.is_due:
            return False
        if self._seen is None:
            ((self._imported,),) = await transaction.rows(_IMPORTED)
            self._shared = [
                _SharedNames("request_session", "of_session", set()), _SharedNames("request_names", "of_names", set())
            ]  # fmt: skip
            self._decisions_written, self._details_written, self.is_due = 0, 0, False
            self._next = time.monotonic() + LOOKED_OVER_EVERY
        seen, is_end = await self._clean_older(transaction, self._seen or _CleaningProgress())
        if not is_end:
            self._seen = seen
            return True
        kept, self._seen = self.decisions_kept, None
        self._most_decisions = max(LEAST_DECISIONS, kept // 4, kept - seen.left.decisions)
        self._surplus = _DecisionCount(max(0, seen.left.decisions - kept), max(0, seen.left.details - MOST_DETAILS))
        self.is_due = self.is_due or any(self._surplus)
        self._to_check, self._checked, self._end = self._shared, 0, seen.last
        return True

    async def _clean_older(self, transaction: Transaction, seen: _CleaningProgress) -> tuple[_CleaningProgress, bool]:
        """Remove what is old among the records behind those that were seen; return what is seen then, and the end."""
        last, (decisions, details), (decisions_gone, details_gone) = seen
        rows = await transaction.rows(_NEXT, last, LOOKED_AT_ONCE)
        sessions, names = (one.used for one in self._shared)
        now, gone, emptied = microseconds(datetime.now(UTC)), list[int](), list[int]()
        for last, session, name, days, size, end in rows:
            if end <= now if days > 0 else decisions_gone < self._surplus.decisions:
                gone.append(last)
                decisions_gone += days <= 0
                details_gone += size or 0
            else:
                sessions.add(session)
                names.add(name)
                decisions += days <= 0
                if size and (end <= now or details_gone < self._surplus.details):
                    emptied.append(last)
                    details_gone += size
                else:
                    details += size or 0
            if len(gone) + len(emptied) == CHANGED_AT_ONCE:
                break
        for change, numbers in (
            ("DELETE FROM main.request", gone), ("UPDATE main.request SET size = NULL, details = NULL", emptied)
        ):  # fmt: skip
            if numbers:
                condition, values = condition_of_values("id", numbers)
                await transaction.run(f"{change} WHERE {condition}", *values)
        is_end = len(rows) < LOOKED_AT_ONCE and (not rows or last == rows[-1][0])
        return _CleaningProgress(
            last, _DecisionCount(decisions, details), _DecisionCount(decisions_gone, details_gone)
        ), is_end

    async def _remove_names(self, transaction: Transaction) -> None:
        """Remove some names that no record was seen to have, and that no later one has."""
        await transaction.in_order()
        if await transaction.rows(_IMPORTED) != [(self._imported,)]:
            self._to_check = []
            return
        table, column, used = self._to_check[0]
        query = f"SELECT id FROM main.{table} WHERE id > ? ORDER BY id LIMIT ?"  # noqa: S608 - constants
        numbers = [row[0] for row in await transaction.rows(query, self._checked, LOOKED_AT_ONCE)]
        unused = [number for number in numbers if number not in used][:CHANGED_AT_ONCE]
        if unused:
            self.names_removed += 1
            condition, values = condition_of_values("id", unused)
            later = f"SELECT {column} FROM main.request WHERE id > ?"  # noqa: S608 - constants
            delete = f"DELETE FROM main.{table} WHERE {condition} AND id NOT IN ({later})"  # noqa: S608 - constants
            await transaction.run(delete, *values, self._end)
        if len(unused) == CHANGED_AT_ONCE:
            self._checked = unused[-1]
        elif len(numbers) == LOOKED_AT_ONCE:
            self._checked = numbers[-1]
        else:
            self._to_check, self._checked = self._to_check[1:], 0
