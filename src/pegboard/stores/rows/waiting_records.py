"""Audit entries that wait to be written in a batch (S2, X4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pegboard.errors import StoreError
from pegboard.ports import MOST_UNWRITTEN, AuditRecord, CallDetails

DELAY = 0.03  # leaves 20 ms of the 50 for the loop and for other writers
MOST_WAITING = 100_000

log = logging.getLogger(__name__)


class WaitingRecords:
    """The audit entries that are not written yet; ``flush`` writes them."""

    __slots__ = (
        "_details",
        "_entries",
        "_flush",
        "_loop",
        "_size",
        "_task",
        "_timer",
    )

    def __init__(self, flush: Callable[[], Awaitable[None]]) -> None:
        self._flush = flush
        self._entries: list[AuditRecord] = []
        self._details: dict[int, CallDetails] = {}  # by the place of the entry
        self._size = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return how many entries wait."""
        return len(self._entries)

    def add(self, *entries: AuditRecord, details: CallDetails | None = None) -> None:
        """Take entries, with the details of the last; the caller flushes."""
        self._entries.extend(entries)
        if details is not None and self._size + len(details.text) <= MOST_UNWRITTEN:
            self._details[len(self._entries) - 1] = details
            self._size += len(details.text)

    def add_later(self, entry: AuditRecord, details: CallDetails | None = None) -> None:
        """Take an entry and see to it that a running loop flushes it soon."""
        if details is None:
            self._entries.append(entry)
        else:
            self.add(entry, details=details)
        if self._timer is None or self._loop is None or not self._loop.is_running():
            self.schedule()

    def schedule(self) -> None:
        """See to it that a running loop flushes soon."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._timer is None or self._loop is not loop:
            self._loop = loop
            self._timer = loop.call_later(DELAY, self._start)

    def take(self, most: int) -> tuple[list[AuditRecord], dict[int, CallDetails]]:
        """Return the oldest entries, with details by place, which wait here no more."""
        entries, details = self._entries[:most], {at: one for at, one in self._details.items() if at < most}
        self.drop(len(entries))
        return entries, details

    def drop(self, taken: int) -> None:
        """Forget the oldest entries: they are committed."""
        del self._entries[:taken]
        if self._details:
            self._details = {at - taken: one for at, one in self._details.items() if at >= taken}
            self._size = sum(len(one.text) for one in self._details.values())

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
        """Flush; entries that cannot be written wait for the next flush, the oldest give way in the end."""
        try:
            await self._flush()
        except StoreError as error:
            surplus = max(0, len(self._entries) - MOST_WAITING)
            self.drop(surplus)
            lost = f"; {surplus:,} of the oldest records are lost" if surplus else ""
            log.error("What was recorded and counted is not written yet%s. %s", lost, error)
