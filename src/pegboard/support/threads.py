"""Threads for code that blocks: beside the event loop, used again, ended where they have no work."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")


class _Worker:
    """A daemon thread that runs one job after the other, and ends when none comes for a while.

    One that is ``kept`` belongs to someone: it is given no other work, and ends when it is told to.
    """

    def __init__(self) -> None:
        self.kept = False
        self._jobs: queue.SimpleQueue[Callable[[], Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work_on_jobs, name="pegboard-tool", daemon=True)
        self._thread.start()

    def run_job(self, job: Callable[[], Callable[[], None]]) -> None:
        """Run a job, then what it returned, when this worker is already free for the next."""
        self._jobs.put(job)

    def end(self) -> None:
        """End the thread of a worker that is free."""
        self.end_thread()
        self._thread.join(_ENDING)

    def end_thread(self) -> None:
        """Let the thread end once its jobs are done."""
        self._jobs.put(None)

    def _work_on_jobs(self) -> None:
        _this_thread.worker = self
        while True:
            try:
                job = self._jobs.get(timeout=_KEPT)
            except queue.Empty:
                with suppress(ValueError):  # someone has just taken it
                    _free.remove(self)
                    return
                continue
            if job is None:
                return
            report = job()
            del job
            if not self.kept:
                _free.append(self)
            report()
            del report


_KEPT: Final = 30.0
"""How long a thread waits for work, in seconds."""
_ENDING: Final = 1.0
"""How long the end of a thread without work is waited for, in seconds."""
_free: deque[_Worker] = deque()
_this_thread = threading.local()


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


_LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar("pegboard_loop", default=None)
"""The loop that waits in another thread, where what blocks is run in this one."""


def run_here(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Return what a coroutine returns that runs blocking functions, and let them run in this thread.

    For a thread that may block, beside a ``loop`` in another one, where what a function returns to be awaited is.
    """
    token = _LOOP.set(loop)
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    finally:
        _LOOP.reset(token)
        work.close()
    raise RuntimeError("It waits for something other than its functions.")


def _call_in_thread(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    _LOOP.set(None)  # what the function itself starts is not meant
    try:
        return function(*args, **kwargs)
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def settle_awaitable(value: Awaitable[T]) -> T:
    """Return what something comes to that a function returned to be awaited."""
    loop = _LOOP.get()
    return await value if loop is None else asyncio.run_coroutine_threadsafe(_await_value(value), loop).result()


async def _await_value(value: Awaitable[T]) -> T:
    return await value


async def run_in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a blocking function in a thread of its own, in the caller's context.

    The thread is a daemon, used again once it is free: a tool that hangs costs its thread, and keeps
    neither other calls nor the end of the process waiting.
    """
    if _LOOP.get() is not None:
        return contextvars.copy_context().run(_call_in_thread, function, args, kwargs)
    return await _run_by_worker(_free_worker(), function, args, kwargs)


class KeptThread:
    """One thread for whatever only that thread may use; its jobs wait for each other."""

    def __init__(self, worker: _Worker) -> None:
        self._worker = worker

    async def run(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run a blocking function in this thread, in the caller's context."""
        return await _run_by_worker(self._worker, function, args, {})

    def end(self) -> None:
        """End the thread once its jobs are done; it is not waited for."""
        self._worker.end_thread()


def keep_this_thread() -> KeptThread | None:
    """Return the thread that this runs in, which is given no other work from now on.

    None where :func:`in_thread` did not start it, or it is kept already.
    """
    worker: _Worker | None = getattr(_this_thread, "worker", None)
    if worker is None or worker.kept:
        return None
    worker.kept = True
    return KeptThread(worker)


def run_in_waiting_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine comes to in the loop that waits for this thread, or in one of its own."""
    loop: asyncio.AbstractEventLoop | None = getattr(_this_thread, "loop", None)
    return asyncio.run(work) if loop is None else asyncio.run_coroutine_threadsafe(work, loop).result()


async def _run_by_worker(
    worker: _Worker, function: Callable[..., T], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> Callable[[], None]:
        _this_thread.loop = loop
        result, problem = None, None
        try:
            result = context.run(function, *args, **kwargs)
        except (StopIteration, GeneratorExit) as error:  # a future refuses the one, the other closes who awaits it
            problem = RuntimeError(f"{type(error).__name__}: {error}")
        except BaseException as error:
            problem = error

        def report() -> None:
            with suppress(RuntimeError):  # the loop is closed: no one waits any longer
                loop.call_soon_threadsafe(_settle, future, result, problem)

        return report

    worker.run_job(work)
    return await future


def _settle(future: asyncio.Future[T], result: T | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)  # type: ignore[arg-type]
    else:
        future.set_exception(error)
