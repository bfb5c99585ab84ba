"""Blocking functions run beside the loop."""

import asyncio
import contextvars
import threading
import time

import pytest

from pegboard.support.threads import run_in_thread

word: contextvars.ContextVar[str] = contextvars.ContextVar("word")


async def test_a_thread_that_is_free_is_used_again() -> None:
    """X2: sequential calls do not start threads."""
    used = {await run_in_thread(threading.get_ident) for _ in range(20)}
    assert len(used) == 1


async def test_a_call_that_hangs_delays_no_other() -> None:
    """G8: each call that is under way has a thread to itself."""
    go = threading.Event()
    hanging = [asyncio.create_task(run_in_thread(go.wait, 20)) for _ in range(40)]
    await asyncio.sleep(0)
    started = time.monotonic()
    assert await run_in_thread(lambda: "answered") == "answered"
    assert time.monotonic() - started < 5
    go.set()
    assert await asyncio.gather(*hanging) == [True] * 40


async def test_each_call_has_the_context_of_its_caller() -> None:
    """S1: nothing of an earlier call is left in the thread."""
    word.set("first")
    assert await run_in_thread(word.get) == "first"

    def change() -> None:
        word.set("changed in the thread")

    await run_in_thread(change)
    assert await run_in_thread(word.get) == "first"


async def test_what_a_function_raises_reaches_the_caller() -> None:
    """X2: and the thread goes on."""

    def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(KeyError):
        await run_in_thread(fail, KeyError("x"))
    with pytest.raises(RuntimeError):
        await run_in_thread(fail, StopIteration())
    with pytest.raises(SystemExit):
        await run_in_thread(fail, SystemExit(3))
    assert await run_in_thread(int, "3") == 3
