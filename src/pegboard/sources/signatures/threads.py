"""Run code that may print or block: off standard output, and off the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar

_diverted: contextvars.ContextVar[bool] = contextvars.ContextVar("pegboard_stdout_diverted", default=False)
T = TypeVar("T")


class _Router:
    """Stand in for standard output; what plugins print inside :func:`stdout_to_stderr` goes to standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write to whichever stream is meant here."""
        return (sys.stderr if _diverted.get() else self._stream).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if _diverted.get() else self._stream, name)


@contextmanager
def stdout_to_stderr() -> Generator[None]:
    """Divert what this task or thread prints from standard output to standard error.

    Other tasks and threads keep their standard output.
    """
    if not isinstance(sys.stdout, _Router):
        sys.stdout = _Router(sys.stdout)  # type: ignore[assignment]
    token = _diverted.set(True)
    try:
        yield
    finally:
        _diverted.reset(token)


class _Worker:
    """Run what it is handed, one after the other, in a daemon thread; end when nothing comes for a while."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="pegboard-tool", daemon=True).start()

    def do(self, job: Callable[[], Callable[[], None]]) -> None:
        """Run a job, then what it returned, when this worker is already free for the next."""
        self._jobs.put(job)

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_KEPT)
            except queue.Empty:
                with suppress(ValueError):  # somebody has just taken it
                    _free.remove(self)
                    return
                continue
            tell = job()
            del job
            _free.append(self)
            tell()
            del tell


_KEPT = 30.0
"""How long a thread waits for work, in seconds."""
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


async def in_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a blocking function in a thread of its own, in the caller's context.

    The thread is a daemon, used again once it is free: a tool that hangs costs its thread, and keeps
    neither other calls nor the end of the process waiting.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def work() -> Callable[[], None]:
        result, problem = None, None
        try:
            result = context.run(function, *args, **kwargs)
        except StopIteration as error:  # a future refuses it
            problem = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            problem = error

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, result, problem)

        return tell

    _free_worker().do(work)
    return await future
