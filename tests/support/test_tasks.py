"""Background tasks that someone owns."""

import asyncio

from pegboard.support.tasks import BackgroundTasks


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
