"""Pauses between attempts, and waiting for a condition."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from pegboard.support.backoff import Backoff, wait_until


def test_pauses_grow_up_to_the_longest_and_begin_anew_after_a_reset() -> None:
    backoff = Backoff(first=0.1, longest=30.0, factor=3.0)
    assert [round(backoff.next(), 1) for _ in range(8)] == [0.1, 0.3, 0.9, 2.7, 8.1, 24.3, 30.0, 30.0]
    backoff.reset()
    assert backoff.next() == 0.1


@given(st.floats(0.001, 10.0), st.floats(10.0, 60.0))
def test_a_jittered_pause_stays_around_the_plain_one(first: float, longest: float) -> None:
    plain, jittered = (Backoff(first=first, longest=longest, jitter=jitter) for jitter in (0.0, 0.5))
    for _ in range(10):
        pause = plain.next()
        assert 0.5 * pause <= jittered.next() <= 1.5 * pause


async def test_waiting_ends_when_the_condition_holds_or_the_time_is_over() -> None:
    tries: list[int] = []

    def third() -> bool:
        tries.append(1)
        return len(tries) == 3

    assert await wait_until(third, 10.0)
    assert len(tries) == 3
    assert not await wait_until(lambda: False, 0.0)


async def test_waiting_leaves_the_loop_free() -> None:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(0.005, happened.set)
    assert await wait_until(happened.is_set, 10.0)
