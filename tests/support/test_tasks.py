"""Background tasks that somebody owns."""

import asyncio

import pytest

from pegboard.support.tasks import BackgroundTasks, end


async def test_a_task_runs_beside_its_owner() -> None:
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    await BackgroundTasks().start(work())
    assert done.is_set()


async def test_cancelling_ends_what_still_runs_and_nothing_else() -> None:
    tasks, other = BackgroundTasks(), asyncio.get_running_loop().create_future()
    ended = tasks.start(asyncio.sleep(0))
    await ended
    running = [tasks.start(asyncio.Event().wait()) for _ in range(3)]
    tasks.cancel()
    await asyncio.wait(running)
    assert [task.cancelled() for task in running] == [True, True, True]
    assert not ended.cancelled()
    assert not other.cancelled()


async def test_a_task_that_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that a pool hands a connection at that moment."""
    monkeypatch.setattr("pegboard.support.tasks._AGAIN", 0.01)
    lost = 0

    async def work() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost += 1
                if lost > 1:
                    raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await asyncio.wait_for(end(task), 10)
    assert task.cancelled()
    assert lost == 2
