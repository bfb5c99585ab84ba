"""Work beside everything else: tasks that somebody owns, and tasks and timers that outlive whoever starts them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def start_detached(
    work: Coroutine[Any, Any, T],
    *,
    name: str | None = None,
    context: Context | None = None,
    done: Callable[[asyncio.Task[T]], object] | None = None,
) -> asyncio.Task[T]:
    """Return a task that may outlive whoever starts it, and keeps nothing of their context variables.

    A task keeps its context as long as it is kept, also when it is done; the context variables of a run of an agent
    have all that the run has.

    Args:
        work: what the task does.
        name: what it is called.
        context: what its context variables are; none of them are set without it.
        done: called with the task once it has ended.
    """
    task = asyncio.get_running_loop().create_task(work, name=name, context=context or Context())
    if done is not None:
        task.add_done_callback(done, context=Context())
    return task


def call_later_detached(seconds: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
    """Return a timer that keeps nothing of the context variables of whoever starts it, as `start_detached` does."""
    return asyncio.get_running_loop().call_later(seconds, call, *args, context=Context())


class BackgroundTasks:
    """The tasks that one owner has started: referenced until they end, cancelled together."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Return a task that does the work beside everything else."""
        task = start_detached(work, name=name, done=self._tasks.discard)
        self._tasks.add(task)
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
