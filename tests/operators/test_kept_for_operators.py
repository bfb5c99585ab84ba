"""What operators are in the middle of is kept for a time, for each of them, and only so much."""

import asyncio

import pytest

from pegboard.operators.kept_for_operators import KeptForOperators


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def kept_by(clock: Clock, *, most: int = 6, most_of_one: int = 4) -> KeptForOperators[str]:
    return KeptForOperators(seconds=60, most=most, most_of_one=most_of_one, now=clock)


async def test_what_is_kept_is_found_by_who_keeps_it_alone(clock: Clock) -> None:
    kept = kept_by(clock)
    one = kept.keep("ada", "one")
    assert kept.find_kept("ada", one) == "one"
    assert kept.find_kept("eve", one) is None
    assert kept.find_kept("ada", "another") is None
    assert list(kept.kept_by("ada")) == ["one"]
    assert list(kept.kept_by("eve")) == []


async def test_what_is_over_time_goes(clock: Clock) -> None:
    kept = kept_by(clock)
    old = kept.keep("ada", "old")
    clock.time = 30.0
    new = kept.keep("ada", "new")
    kept.change(old, "old still")
    clock.time = 60.0
    assert (kept.find_kept("ada", old), kept.find_kept("ada", new)) == (None, "new")
    clock.time = 90.0
    assert len(kept) == 0


async def test_it_goes_where_nobody_asks_too() -> None:
    """X5: a pasted secret does not stay in memory until the next operator comes."""
    gone = asyncio.Event()

    class Secret:
        def __del__(self) -> None:
            gone.set()

    kept = KeptForOperators[Secret](seconds=0.01, most=6, most_of_one=4)
    kept.keep("ada", Secret())
    assert not gone.is_set()
    await asyncio.wait_for(gone.wait(), 10)


async def test_of_who_keeps_too_much_the_oldest_gives_way(clock: Clock) -> None:
    kept = kept_by(clock)
    other = kept.keep("eve", "other")
    kept_ids = [kept.keep("ada", str(number)) for number in range(10)]
    assert [kept.find_kept("ada", one) for one in kept_ids] == [None] * 6 + ["6", "7", "8", "9"]
    assert kept.find_kept("eve", other) == "other"


async def test_over_all_operators_it_is_that_of_who_has_the_most(clock: Clock) -> None:
    kept = kept_by(clock)
    for number in range(4):
        kept.keep("ada", str(number))
    for by in ("eve", "bob", "carl"):
        kept.keep(by, by)
    left = {by: list(kept.kept_by(by)) for by in ("ada", "eve", "bob", "carl")}
    assert left == {"ada": ["1", "2", "3"], "eve": ["eve"], "bob": ["bob"], "carl": ["carl"]}


async def test_what_is_gone_meanwhile_is_forgotten_twice_and_changed_into_nothing(clock: Clock) -> None:
    kept = kept_by(clock)
    one = kept.keep("ada", "one")
    kept.forget(one)
    kept.forget(one)
    kept.change(one, "again")
    assert kept.find_kept("ada", one) is None


async def test_a_value_under_an_id_of_its_own_is_kept_anew(clock: Clock) -> None:
    kept = kept_by(clock)
    kept.keep("", "text", identity="digest")
    clock.time = 30.0
    kept.keep("", "text", identity="digest")
    clock.time = 80.0
    assert kept.find_kept("", "digest") == "text"
    assert len(kept) == 1
