"""What was constructed, once per plugin and overrides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Instances(Generic[T]):
    """One instance per key; who asks while it is being made waits for the same one.

    A failure is raised to all who wait and then forgotten, so that the next request tries again.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Return the instance for a key, made with ``make`` where there is none."""
        task = self._tasks.get(key)
        if task is None or _failed(task):
            task = self._tasks[key] = asyncio.ensure_future(_awaited(make))
        return await asyncio.shield(task)

    def drain(self) -> list[T]:
        """Forget every instance and return those that were made."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            if not task.done():
                task.cancel()
        return [task.result() for task in tasks if task.done() and not _failed(task)]


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


def _failed(task: asyncio.Task[T]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
