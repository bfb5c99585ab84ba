"""What is computed beside everything else, and what those get who do not wait for it."""

from __future__ import annotations

import asyncio

import pytest

from pegboard.support.background import BackgroundComputations


class Counting:
    """A computation that ends when it may, and knows how often it was begun."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.may = asyncio.Event()
        self.begun = 0
        self.failure: Exception | None = None
        if at_once:
            self.may.set()

    async def __call__(self) -> int:
        self.begun += 1
        begun = self.begun
        await self.may.wait()
        if self.failure is not None:
            raise self.failure
        return begun


@pytest.fixture
async def counting() -> Counting:
    return Counting()


@pytest.fixture
async def background() -> BackgroundComputations[str, int]:
    return BackgroundComputations("count", "could not count")


def running() -> int:
    return sum(task.get_name() == "count" for task in asyncio.all_tasks())


async def test_a_value_that_is_ready_in_time_is_returned(background: BackgroundComputations[str, int]) -> None:
    assert await background.value_within(5, "one", Counting(at_once=True)) == 1
    assert not background.running


async def test_who_does_not_wait_long_enough_goes_without_and_it_is_computed_all_the_same(
    background: BackgroundComputations[str, int], counting: Counting
) -> None:
    assert await background.value_within(0, "one", counting) is None
    assert background.running
    counting.may.set()
    assert await background.value_within(5, "one", counting) == 1


async def test_all_who_ask_for_a_key_wait_for_one_computation(
    background: BackgroundComputations[str, int], counting: Counting
) -> None:
    asking = [asyncio.create_task(background.value_within(None, "one", counting)) for _ in range(3)]
    assert await background.value_within(0, "one", counting) is None
    counting.may.set()
    assert await asyncio.gather(*asking) == [1, 1, 1]


async def test_who_is_cancelled_does_not_end_what_others_wait_for(
    background: BackgroundComputations[str, int], counting: Counting
) -> None:
    first, second = (asyncio.create_task(background.value_within(None, "one", counting)) for _ in range(2))
    assert await background.value_within(0, "one", counting) is None
    first.cancel()
    counting.may.set()
    assert await second == 1
    assert first.cancelled()


async def test_keys_are_computed_beside_each_other(
    background: BackgroundComputations[str, int], counting: Counting
) -> None:
    assert await background.value_within(0, "one", counting) is None
    assert await background.value_within(5, "other", Counting(at_once=True)) == 1
    assert background.running
    await background.aclose()


async def test_a_failure_is_logged_once_raised_to_who_waits_and_computed_anew(
    background: BackgroundComputations[str, int], counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    counting.failure = OSError("no space left")
    asking = [asyncio.create_task(background.value_within(None, "one", counting)) for _ in range(2)]
    assert await background.value_within(0, "one", counting) is None
    counting.may.set()
    assert [str(error) for error in await asyncio.gather(*asking, return_exceptions=True)] == ["no space left"] * 2
    assert [(record.message, record.exc_info is not None) for record in caplog.records] == [("could not count", True)]
    counting.failure = None
    assert await background.value_within(5, "one", counting) == 2


async def test_a_failure_that_nobody_waits_for_is_logged_and_computed_anew(
    counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    ended = asyncio.Event()
    background = BackgroundComputations[str, int]("count", "could not count", ended.set)
    counting.failure = OSError("no space left")
    assert await background.value_within(0, "one", counting) is None
    counting.may.set()
    await ended.wait()
    assert caplog.messages == ["could not count"]
    counting.failure = None
    assert await background.value_within(5, "one", counting) == 2


async def test_a_superseded_key_ends_and_who_waits_for_it_goes_without(
    background: BackgroundComputations[str, int], counting: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.create_task(background.value_within(None, "old", counting))
    assert await background.value_within(0, "old", counting) is None
    background.supersede("old")
    assert background.running
    background.supersede("new")
    assert await background.value_within(5, "new", Counting(at_once=True)) == 1
    assert await waiting is None
    counting.may.set()
    assert await background.value_within(5, "old", counting) == 2
    assert caplog.messages == []


async def test_closing_ends_everything_and_nobody_is_told(counting: Counting) -> None:
    ended: list[bool] = []
    background = BackgroundComputations[str, int]("count", "could not count", lambda: ended.append(True))
    waiting = [asyncio.create_task(background.value_within(None, key, counting)) for key in ("one", "other")]
    assert await background.value_within(0, "one", counting) is None
    assert running() == 2
    await background.aclose()
    assert (running(), background.running, ended) == (0, False, [])
    assert await asyncio.gather(*waiting) == [None, None]


async def test_the_end_of_each_is_told_when_it_no_longer_counts_as_running() -> None:
    known: list[bool] = []
    background = BackgroundComputations[str, int]("count", "could not count", lambda: known.append(background.running))
    failing = Counting(at_once=True)
    failing.failure = OSError("no space left")
    assert await background.value_within(5, "one", Counting(at_once=True)) == 1
    with pytest.raises(OSError, match="no space left"):
        await background.value_within(5, "other", failing)
    assert known == [False, False]
