"""Background tasks that somebody owns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """The tasks that one owner has started: referenced until they end, cancelled together."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Return a task that does the work beside everything else."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """Cancel every task that still runs."""
        for task in tuple(self._tasks):
            task.cancel()

    async def finish(self, seconds: float) -> None:
        """Wait until all of them have ended, at most so long; cancel the others."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel every task that still runs, and wait until all of them have ended."""
        self.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
