"""Threads for code that blocks: beside the event loop, used again, ended with the last source."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")


class _Worker:
    """A daemon thread that runs one job after the other, and ends when none comes for a while."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pegboard-tool", daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], Callable[[], None]]) -> None:
        """Run a job, then what it returned, when this worker is already free for the next."""
        self._jobs.put(job)

    def end(self) -> None:
        """End the thread of a worker that is free."""
        self._jobs.put(None)
        self._thread.join(_ENDING)

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_KEPT)
            except queue.Empty:
                with suppress(ValueError):  # somebody has just taken it
                    _free.remove(self)
                    return
                continue
            if job is None:
                return
            report = job()
            del job
            _free.append(self)
            report()
            del report


_KEPT: Final = 30.0
"""How long a thread waits for work, in seconds."""
_ENDING: Final = 1.0
"""How long the end of a thread without work is waited for, in seconds."""
_free: deque[_Worker] = deque()


def _forget_workers() -> None:
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)  # threads do not survive a fork


def _free_worker() -> _Worker:
    try:
        return _free.pop()
    except IndexError:
        return _Worker()


def end_free_threads() -> None:
    """End the threads that have no work; whoever needs one afterwards starts it."""
    with suppress(IndexError):
        while True:
            _free.pop().end()


async def in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a blocking function in a thread of its own, in the caller's context.

    The thread is a daemon, used again once it is free: a tool that hangs costs its thread, and keeps
    neither other calls nor the end of the process waiting.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> Callable[[], None]:
        result, problem = None, None
        try:
            result = context.run(function, *args, **kwargs)
        except StopIteration as error:  # a future refuses it
            problem = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            problem = error

        def report() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_settle, future, result, problem)

        return report

    _free_worker().do(work)
    return await future


def _settle(future: asyncio.Future[T], result: T | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)  # type: ignore[arg-type]
    else:
        future.set_exception(error)
