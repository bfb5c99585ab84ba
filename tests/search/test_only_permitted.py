"""What an agent may not use has no part in what it finds, nor in how well."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.core.surface.searchable import Searchable
from pegboard.search.ranker import ToolRanker
from search.making import NOUNS, VERBS, among, names, office, ranked

EVERYTHING = office(4)
QUERIES = ("archive the photo of office 2", "delete_invoice", "prices and flights", "reed a mesage", "list", "offices")


def answers(within: Searchable, ranker: ToolRanker) -> list[object]:
    found = [ranked(query, within, limit=20, ranker=ranker) for query in QUERIES]
    return [(names(one), [hit.score.hex() for hit in one.hits], one.needs) for one in found]


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, len(EVERYTHING) - 1), min_size=1, max_size=40))
def test_scores_are_the_same_as_if_denied_tools_did_not_exist(chosen: set[int]) -> None:
    """P3: order, scores to the last bit and evidence, beside an index over everything and without one."""
    permitted = among(*(EVERYTHING[n] for n in sorted(chosen)))
    beside = ToolRanker()
    ranked("anything", among(*EVERYTHING), ranker=beside)
    assert answers(permitted, beside) == answers(permitted, ToolRanker())


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 319), st.sampled_from(VERBS), st.sampled_from(NOUNS)), max_size=6))
def test_an_index_that_followed_changes_is_as_one_made_anew(changes: list[tuple[int, str, str]]) -> None:
    """P3: tools changed, one after the other, with their order and one that is gone."""
    tools = list(EVERYTHING)
    following = ToolRanker()
    ranked("anything", among(*tools), ranker=following)
    for place, verb, noun in changes:
        at = place % len(tools)
        tools[at] = replace(tools[at], description=f"{verb} the {noun} of everybody")
        del tools[(at + 7) % len(tools)]
        now = among(*tools)
        assert answers(now, following) == answers(now, ToolRanker())


def test_another_description_of_a_plugin_is_seen() -> None:
    """P3: the tools are the same objects, what is said of their plugin is not."""
    ranker = ToolRanker()
    tools = office(3)
    assert names(ranked("zebras", among(*tools, office1="Horses."), ranker=ranker)) == []
    found = names(ranked("zebras", among(*tools, office1="Zebras."), ranker=ranker))
    assert {name.partition("/")[0] for name in found} == {"office1"}
