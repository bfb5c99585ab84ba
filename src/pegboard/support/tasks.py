"""Work beside everything else: tasks that someone owns, and tasks and timers that outlive whoever starts them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")

WORKS_FOR: Final[ContextVar[object]] = ContextVar("pegboard_works_for")
"""The board that work is for, in a process with several boards: all that detached work keeps of who starts it."""


def detached_context() -> Context:
    """Return a context without the variables of this one, but for the board that the work is for."""
    detached = Context()
    if (board := WORKS_FOR.get(None)) is not None:
        detached.run(WORKS_FOR.set, board)
    return detached


def start_detached(
    work: Coroutine[Any, Any, T],
    *,
    name: str | None = None,
    context: Context | None = None,
    done: Callable[[asyncio.Task[T]], object] | None = None,
) -> asyncio.Task[T]:
    """Return a task that may outlive whoever starts it, and keeps of their context variables only ``WORKS_FOR``.

    A task keeps its context as long as it is kept, also when it is done; the context variables of a run of an agent
    have all that the run has.

    Args:
        work: what the task does.
        name: what it is called.
        context: what its context variables are; those of `detached_context` without it.
        done: called with the task once it has ended.
    """
    task = asyncio.get_running_loop().create_task(work, name=name, context=context or detached_context())
    if done is not None:
        task.add_done_callback(done, context=detached_context())
    return task


def call_later_detached(seconds: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
    """Return a timer that has the context variables of `detached_context`."""
    return asyncio.get_running_loop().call_later(seconds, call, *args, context=detached_context())


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
