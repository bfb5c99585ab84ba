"""Time limits of requests: as ``asyncio.timeout``, with one timer for all of a connection."""

import asyncio

import pytest

from pegboard.sources.mcp.wire.timeouts import TimeLimit, TimeLimits


async def late(limits: TimeLimits, seconds: float, work: float) -> str:
    """Return how work of so many seconds ends under a limit."""
    limit = TimeLimit(limits, seconds)
    try:
        with limit:
            await asyncio.sleep(work)
    except TimeoutError:
        return "timeout" if limit.ran_out else "other"
    return "done"


async def test_each_request_has_its_own_time() -> None:
    limits = TimeLimits()
    waiting = (late(limits, 5, 0.01), late(limits, 0.02, 5), late(limits, 0.05, 5), late(limits, 5, 0.08))
    async with asyncio.timeout(3):
        assert await asyncio.gather(*waiting) == ["done", "timeout", "timeout", "done"]


async def test_a_later_shorter_limit_comes_first() -> None:
    limits = TimeLimits()
    long = asyncio.create_task(late(limits, 1, 5))
    await asyncio.sleep(0)
    assert await late(limits, 0.01, 5) == "timeout"
    assert not long.done()
    assert await long == "timeout"


async def test_the_clock_stands_while_it_is_held() -> None:
    limits = TimeLimits()

    async def asked() -> str:
        limit = TimeLimit(limits, 0.05)
        with limit:
            left = limit.pause()
            assert left is not None
            assert 0 < left <= 0.05
            assert limit.pause() is None
            await asyncio.sleep(0.1)
            limit.resume(left)
            await asyncio.sleep(0)
        return "done"

    assert await asked() == "done"


async def test_a_task_that_is_cancelled_as_well_stays_cancelled() -> None:
    async def work() -> None:
        limit = TimeLimit(TimeLimits(), 5)
        with limit:
            limit.run_out_of_time()
            task.cancel()
            await asyncio.sleep(5)

    task = asyncio.create_task(work())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_of_the_work_itself_is_not_the_limit() -> None:
    async def work() -> str:
        limit = TimeLimit(TimeLimits(), 5)
        try:
            with limit:
                raise TimeoutError
        except TimeoutError:
            return "limit" if limit.ran_out else "own"

    assert await work() == "own"


async def test_what_ended_in_time_is_left_alone() -> None:
    limits = TimeLimits()
    assert await late(limits, 0.01, 0) == "done"
    await asyncio.sleep(0.03)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_limit_that_is_over_never_begins_again() -> None:
    limits = TimeLimits()
    limit = TimeLimit(limits, 5)
    with limit:
        left = limit.pause()
    assert left is not None
    limit.resume(0.01)
    await asyncio.sleep(0.03)
