"""When loading pays, and when a tool leaves the list."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.delivery import Cache, Delivery, Host
from pegboard.core.model.tools import Tool
from pegboard.core.surface.cache_cost import ExpectedUse, Sizes, plan, tokens_worth_carrying, wire_list

WAYS: tuple[Delivery, ...] = ("native", "result", "array")
META = 230


def sizes(tools: int, *, each: int = 100, hints: int | None = None) -> Sizes:
    """Return a catalog's sizes; hints take what names take, a tenth, and 1500 at most."""
    told = min(tools * each // 10, 1500) if hints is None else hints
    return Sizes(everything=tools * each, units=tools, meta=META, hints=told)


def host(*ways: Delivery, tokens: int = 0, context: int | None = None) -> Host:
    return Host(delivery=ways, cache=Cache(tokens=tokens), context=context)


def tool(name: str, text: str = "") -> Tool:
    return Tool(plugin="p", name=name, wire=name, description=text)


def tools(names: str) -> tuple[Tool, ...]:
    return tuple(tool(name) for name in names)


def wire(tools_: tuple[Tool, ...]) -> str:
    return "".join(held.wire for held in tools_)


def listed(
    previous: str, surface: str, *, behind: int = 1000, turns: float = 1, stay: str = "abcdefgh", each: int = 100
) -> str:
    """Return the next list as one letter a tool; every tool takes ``each`` tokens."""
    return wire(
        wire_list(
            tools(previous),
            tools(surface),
            lambda _: each,
            cache=Cache(tokens=behind),
            turns_left=turns,
            may_stay=lambda held: held.wire in stay,
        )
    )


# -- everything, or on demand ------------------------------------------------------------------


def test_in_between_everything_pays_where_each_load_rewrites_what_is_behind_the_list() -> None:
    """D1, F4: array delivery breaks the cache at each load, native and result do not."""
    assert [plan(sizes(120), host(way)).everything for way in WAYS] == [False, False, True]


def test_without_a_cache_tools_come_on_demand() -> None:
    """D1: a host that declares no cache is not second-guessed."""
    assert not plan(sizes(2), Host(delivery=("array",), cache=None)).everything


def test_a_long_system_text_behind_the_list_speaks_for_everything() -> None:
    """D3: what is cached behind the list is what each change of it costs."""
    assert not plan(sizes(400), host("array")).everything
    assert plan(sizes(400), host("array", tokens=50_000)).everything


def test_a_host_that_knows_its_conversations_says_so() -> None:
    """F4: a conversation in which hardly anything is loaded does not pay for everything."""
    assert plan(sizes(120), host("array")).everything
    assert not plan(sizes(120), host("array"), ExpectedUse(tools=0.05)).everything


@given(
    count=st.integers(1, 2000), each=st.integers(10, 2000), tokens=st.integers(0, 100_000), way=st.sampled_from(WAYS)
)
def test_a_host_with_more_ways_never_pays_more(count: int, each: int, tokens: int, way: Delivery) -> None:
    """D1: the cheapest way that the host has is the one that is estimated."""
    every = plan(sizes(count, each=each), host(*WAYS, tokens=tokens))
    alone = plan(sizes(count, each=each), host(way, tokens=tokens))
    assert every.cost_on_demand <= alone.cost_on_demand
    assert every.cost_everything == alone.cost_everything
    assert alone.everything == (alone.cost_everything <= alone.cost_on_demand)


@given(count=st.integers(1, 1000), each=st.integers(50, 1000), more=st.integers(1, 1000), way=st.sampled_from(WAYS))
def test_more_tools_never_speak_for_everything(count: int, each: int, more: int, way: Delivery) -> None:
    """F4: once on demand is cheaper, it stays so as a catalog grows and its hints do not."""
    small = plan(sizes(count, each=each, hints=500), host(way))
    large = plan(sizes(count + more, each=each, hints=500), host(way))
    assert small.everything or not large.everything


# -- what leaves the list, and when --------------------------------------------------------------


def test_what_lapsed_stays_on_the_wire_while_its_removal_costs_more_than_it_saves() -> None:
    """D3: removing 100 tokens before 1,000 costs 1,150 and saves 10 a turn."""
    assert listed("abc", "ac", turns=114) == "abc"
    assert listed("abc", "ab", turns=114) == "abc"
    assert listed("abc", "ab", turns=116) == "ab"


def test_only_the_tail_leaves_where_only_that_pays() -> None:
    """D3: removing the last tool rewrites 500 tokens, removing the first also those of six tools."""
    assert listed("abcdefgh", "bcdefg", behind=500, turns=60) == "abcdefg"


@pytest.mark.parametrize("cache", [None, Cache(tokens=0)])
def test_at_a_boundary_the_list_is_the_surface(cache: Cache | None) -> None:
    """D3: where nothing is cached a removal is free."""
    after = wire_list(tools("abc"), tools("ca"), lambda _: 100, cache=cache, turns_left=0, may_stay=lambda _: True)
    assert wire(after) == "ca"


def test_what_was_unloaded_or_revoked_leaves_at_once_and_takes_what_lapsed_behind_it_along() -> None:
    """D3, P4: a removal that must be makes those behind it free, not those before it."""
    assert listed("abcdef", "bdf", turns=0, stay="ae") == "abdf"


def test_additions_join_at_the_end_and_nothing_before_them_moves() -> None:
    """F1, D3: a tool that comes back while its schema is on the wire keeps its place."""
    assert listed("abc", "acdb") == "abcd"


def test_a_changed_definition_replaces_the_old_one_in_its_place() -> None:
    """D3: what is behind a change is written again, so what lapsed there leaves."""
    fresh = (tool("a"), tool("c", "new"))
    after = wire_list(
        tools("abcd"), fresh, lambda _: 100, cache=Cache(tokens=1000), turns_left=0, may_stay=lambda _: True
    )
    assert after == (tool("a"), tool("b"), tool("c", "new"))


LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True).map("".join)
AMOUNTS = {"behind": st.integers(1, 50_000), "turns": st.floats(0, 1000), "each": st.integers(1, 500)}


@given(previous=LISTS, surface=LISTS, stay=LISTS, **AMOUNTS)
def test_every_tool_of_the_surface_is_listed_once_and_others_only_where_they_may_stay(
    previous: str, surface: str, stay: str, behind: int, turns: float, each: int
) -> None:
    """D3, F1: survivors keep their order, additions follow in theirs."""
    after = listed(previous, surface, behind=behind, turns=turns, each=each, stay=stay)
    assert len(set(after)) == len(after)
    assert set(surface) <= set(after)
    assert set(after) - set(surface) <= set(previous) & set(stay)
    if previous:
        survivors = "".join(name for name in previous if name in after)
        assert after == survivors + "".join(name for name in surface if name not in previous)


@given(previous=LISTS, surface=LISTS, behind=st.integers(1, 50_000), each=st.integers(1, 500))
def test_nothing_leaves_or_moves_where_no_turn_is_left(previous: str, surface: str, behind: int, each: int) -> None:
    """D3, F1: the list before is the beginning of the list after."""
    assert listed(previous, surface, behind=behind, turns=0, each=each).startswith(previous)


@given(previous=LISTS.filter(bool), surface=LISTS, **AMOUNTS)
def test_no_other_removal_would_have_saved_more(
    previous: str, surface: str, behind: int, turns: float, each: int
) -> None:
    """D3: of all places from which to remove, the one taken costs least."""

    def cost(after: str) -> float:
        same = next((i for i, (a, b) in enumerate(zip(previous, after, strict=False)) if a != b), len(after))
        rewritten = 0 if after == previous else (len(after) - same) * each + behind
        return 1.15 * rewritten + 0.1 * each * len(after) * turns

    def cut(place: int) -> str:
        return "".join(name for i, name in enumerate(previous) if i < place or name in surface)

    held = "".join(name for name in surface if name in previous)
    after = listed(previous, held, behind=behind, turns=turns, each=each)
    cheapest = min(cost(cut(place)) for place in range(len(previous) + 1))
    assert cost(after) <= cheapest + 1e-6 * max(cheapest, 1)


# -- what is carried ahead of being asked for ----------------------------------------------------


def ahead_sizes(tools: int, *, plugins: int) -> Sizes:
    """Return a catalog's sizes where tools are loaded ahead of being asked for."""
    return replace(sizes(tools), plugins=plugins)


@given(context=st.integers(0, 500_000), more=st.integers(0, 500_000), way=st.sampled_from(WAYS))
def test_the_longer_the_conversation_the_more_it_is_cheaper_to_carry(context: int, more: int, way: Delivery) -> None:
    """S5, D1: a model call more reads the whole conversation again."""
    assert tokens_worth_carrying(host(way, context=context)) <= tokens_worth_carrying(host(way, context=context + more))


def test_without_a_cache_an_array_carries_less() -> None:
    """S5: what is paid in full with every request costs more than it saves; what is in the history is cached."""
    array, result = (Host(delivery=(way,), context=1_000) for way in ("array", "result"))
    assert (
        tokens_worth_carrying(array)
        < tokens_worth_carrying(result)
        == tokens_worth_carrying(host("result", context=1_000))
    )


@pytest.mark.parametrize("way", ["native", "result"])
@pytest.mark.parametrize("context", [1_000, 10_000, 50_000])
def test_a_small_catalog_is_loaded_whole_and_a_large_one_as_it_is_needed(way: Delivery, context: int) -> None:
    """F4, S5: twenty tools cost less than the first load; of five hundred a few plugins are used."""
    assert plan(ahead_sizes(20, plugins=8), host(way, context=context)).everything
    assert not plan(ahead_sizes(500, plugins=30), host(way, context=context)).everything


def test_anticipated_leases_save_the_calls_that_would_speak_for_everything() -> None:
    """F4, S5: with them tools on demand stay the cheaper way in a long conversation."""
    assert not plan(ahead_sizes(160, plugins=10), host("native", context=100_000)).everything
