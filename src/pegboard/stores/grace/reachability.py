"""Whether a store can be reached that may be lost for a while: it is asked all the time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

from pegboard.errors import StoreError, StoreUnavailableError, store_unavailable
from pegboard.ports.store_health import REACHABLE, PendingCount, StoreHealth
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import BackgroundTasks

T = TypeVar("T")

LOOK_SECONDS: Final = 1.0
"""How often the store is asked: so old may be what an idle process knows."""
FIRST_LOOK: Final = 0.05
"""After how many seconds a store that was just lost is asked again; the pauses double up to ``LOOK_SECONDS``."""

PATIENCE: Final = 2.0
"""How long an answer is waited for at most, in seconds: a connection that is cut may be silent for long."""

log = logging.getLogger("pegboard")


class Reachability:
    """Whether a store answers a request, ``ask``, within ``patience`` seconds.

    ``seconds_left`` is for how long calls go on without it; ``pending`` is what is written when it is back.
    """

    def __init__(
        self,
        ask: Callable[[], Coroutine[Any, Any, object]],
        patience: float,
        seconds_left: Callable[[], float],
        pending: Callable[[], PendingCount],
    ) -> None:
        self._ask = ask
        self._patience = min(PATIENCE, patience)
        self._seconds_left = seconds_left
        self._pending = pending
        self.lost: StoreUnavailableError | None = None
        """Why the store cannot be reached, None while it can."""
        self._health = REACHABLE
        self._listeners: Final[list[Callable[[StoreHealth], None]]] = []
        self._turned = asyncio.Event()
        self._tasks = BackgroundTasks()
        self._asking: asyncio.Task[object] | None = None

    @property
    def health(self) -> StoreHealth:
        """Return whether the store can be reached now."""
        return REACHABLE if self.lost is None else self._health._replace(**self._pending()._asdict())

    def on_health(self, call: Callable[[StoreHealth], None]) -> None:
        """Have a function called whenever the store is lost, and whenever it is back."""
        self._listeners.append(call)

    def start(self) -> None:
        """Begin to ask, on the running loop."""
        self._tasks.start(self._watch())

    async def aclose(self) -> None:
        """Ask no more."""
        await self._tasks.aclose()

    def require(self) -> None:
        """Raise ``StoreUnavailableError`` while the store is lost."""
        if self.lost is not None:
            raise StoreUnavailableError(self.lost.message, hint=self.lost.hint)

    async def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise that the store is lost, in place of a request."""
        assert self.lost is not None
        raise StoreUnavailableError(self.lost.message, hint=self.lost.hint)

    def note_lost(self, error: StoreUnavailableError) -> None:
        """Note that the store did not answer."""
        before, self.lost = self.lost, error
        if before is None:
            now, left = time.time(), max(0.0, self._seconds_left())
            self._health = StoreHealth(lost_at=now, until=now + left, why=error.message)
            text = (
                "%s Calls of loaded tools go on for %.0f s; loads, switches and approvals are refused until it is back."
            )
            log.warning(text, error.message, left)
            self._notify_health()

    def _note_store_back(self) -> None:
        seconds, (pending, dropped) = time.time() - (self._health.lost_at or 0.0), self._pending()
        text = "The store is back after %.0f s: %d records of calls are pending, %d older ones were dropped."
        log.warning(text, seconds, pending, dropped)
        self.lost = None
        self._notify_health()

    async def wait_for_turn(self, seconds: float) -> None:
        """Return when the store is lost or back, at the latest after so many seconds."""
        turned = self._turned
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await turned.wait()

    async def await_in_time(self, request: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
        """Return what a request returns; one that takes too long goes on to its end, and is not waited for.

        Raises ``StoreUnavailableError``.
        """
        task = request if isinstance(request, asyncio.Task) else self._tasks.start(request)
        task.add_done_callback(lambda late: late.cancelled() or late.exception())  # also where nothing waits for it
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            raise store_unavailable("The store", f"it did not answer within {self._patience:g} s")
        return task.result()

    async def _watch(self) -> None:
        backoff = Backoff(first=FIRST_LOOK, longest=LOOK_SECONDS)
        while True:
            await self._check_store()
            if self.lost is None:
                backoff.reset()
            await self.wait_for_turn(LOOK_SECONDS if self.lost is None else backoff.next())

    async def _check_store(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = self._tasks.start(self._ask())
        try:
            await self.await_in_time(self._asking)
        except StoreUnavailableError as error:
            self.note_lost(error)
        except StoreError as error:  # it answers
            log.debug("the token of the store cannot be read: %s", error)
        else:
            if self.lost is not None:
                self._note_store_back()

    def _notify_health(self) -> None:
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()
        for call in self._listeners:
            call(self.health)
