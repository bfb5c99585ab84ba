"""When and how a change reaches the model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.agents import Activation
from pegboard.core.model.delivery import (
    GATEWAY,
    GATEWAY_HANDSHAKE,
    LIBRARY,
    Cache,
    Delivery,
    Host,
    TakesEffect,
    choose,
    takes_effect,
)

WARM, COLD = Cache(tokens=10_000), Cache(tokens=0)


@pytest.mark.parametrize(
    ("host", "chosen"),
    [
        (LIBRARY, "array"),
        (GATEWAY, "result"),
        (GATEWAY_HANDSHAKE, "array"),
        (Host(delivery=("array",), cache=WARM), "array"),
        (Host(delivery=("array", "result"), cache=WARM), "result"),
        (Host(delivery=("result", "array"), cache=WARM), "result"),
        (Host(delivery=("array", "result"), cache=COLD), "array"),
        (Host(delivery=("result", "array"), cache=COLD), "array"),
        (Host(delivery=("array", "native"), cache=WARM), "native"),
        (Host(delivery=("native", "result", "array"), cache=WARM), "native"),
    ],
)
def test_each_load_comes_the_cheapest_way_that_the_host_has(host: Host, chosen: Delivery) -> None:
    """D1: array only before the first cached request, or where the host has nothing else."""
    assert choose(host, schema_tokens=500) == chosen


WAYS = st.permutations(["native", "result", "array"]).flatmap(
    lambda ways: st.integers(1, 3).map(lambda count: tuple(ways[:count]))
)


@given(ways=WAYS, cached=st.integers(1, 10**6), schema=st.integers(0, 10**5))
def test_a_cached_prefix_is_broken_only_where_there_is_no_other_way(
    ways: tuple[Delivery, ...], cached: int, schema: int
) -> None:
    """D1: whatever the size of the schema."""
    chosen = choose(Host(delivery=ways, cache=Cache(tokens=cached)), schema)
    assert chosen in ways
    assert chosen != "array" or ways == ("array",)


def test_a_change_of_the_list_costs_what_the_cache_behind_it_costs_to_write_again() -> None:
    """D3: removing before N cached tokens costs about 1.15 N now."""
    assert WARM.break_cost() == pytest.approx(1.15 * 10_000)


@pytest.mark.parametrize(
    ("delivery", "activation", "dialect", "said"),
    [
        ("array", None, None, "next_step"),
        ("result", None, None, "next_step"),
        ("native", None, None, "native"),
        ("array", None, "next_request", "next_request"),
        ("native", None, "next_request", "next_request"),
        ("array", "next_step", "next_request", "next_step"),
        ("native", "next_request", None, "next_request"),
    ],
)
def test_every_change_says_when_it_can_be_used(
    delivery: Delivery, activation: Activation | None, dialect: Activation | None, said: TakesEffect
) -> None:
    """D2: the agent's activation overrides, then the dialect's, then the way of delivery."""
    assert takes_effect(delivery, activation=activation, dialect=dialect) == said
