"""What takes long is computed beside everything else: whoever asks waits a moment, and goes without it else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from pegboard.support.tasks import BackgroundTasks

log = logging.getLogger("pegboard")

KeyT = TypeVar("KeyT", bound=Hashable)
Value = TypeVar("Value")


class BackgroundComputations(Generic[KeyT, Value]):
    """Computations of one kind: one at a time for each key, whoever asks for it.

    Only what runs is kept: a computation puts its value where it is found the next time. A failure is logged once,
    and raised to those who wait for it; who asks next has it computed again.
    """

    __slots__ = ("_ended", "_failed", "_name", "_running", "_tasks")

    def __init__(self, name: str, failed: str, ended: Callable[[], object] | None = None) -> None:
        """Make one that computes nothing yet.

        Args:
            name: What its tasks are called.
            failed: What is logged where one fails.
            ended: Called after each one that was not cancelled.
        """
        self._name = name
        self._failed = failed
        self._ended = ended
        self._running: dict[KeyT, asyncio.Task[Value]] = {}
        self._tasks = BackgroundTasks()

    @property
    def running(self) -> bool:
        """Return whether anything is being computed."""
        return bool(self._running)

    async def value_within(
        self, seconds: float | None, key: KeyT, compute: Callable[[], Coroutine[Any, Any, Value]]
    ) -> Value | None:
        """Return the value of a key, None where it is not ready in time.

        Args:
            seconds: So long is waited; None waits until it has ended.
            key: What is computed.
            compute: Computes it; not called where that is under way.
        """
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = self._tasks.start(compute(), name=self._name)
            task.add_done_callback(partial(self._finish_computation, key))
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return task.result() if done and not task.cancelled() else None

    def supersede(self, key: KeyT) -> None:
        """Cancel what is computed for any other key; who waits for it goes without."""
        for other in [other for other in self._running if other != key]:
            self._running.pop(other).cancel()

    async def aclose(self) -> None:
        """Cancel what is being computed, and wait until it has ended; who waits for it goes without."""
        await self._tasks.aclose()

    def _finish_computation(self, key: KeyT, task: asyncio.Task[Value]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error(self._failed, exc_info=error)
        if self._ended is not None:
            self._ended()
