"""What a search finds by meaning and past use, beside words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import PastUse, RankContext, Ranking
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker
from search.making import among, name, names, office, tool

HOME = among(
    tool("weather", "get_forecast", "Returns the weather of the coming days at a place."),
    tool("post", "send_mail", "Sends an e-mail to somebody."),
    tool("bank", "transfer", "Moves money from one account to another."),
    tool("disk", "remove_file", "Removes a file from the disk."),
    tool("music", "play", "Plays a song."),
    tool("calendar", "add_event", "Adds an event to the calendar."),
)
EVERYTHING = office(4)
MEANING = Embedding()


def found(need: str, within: Searchable, ranker: ToolRanker | None = None, **context: tuple[object, ...]) -> Ranking:
    ranker = ranker or ToolRanker(MEANING)
    return ranker.rank([need], within, RankContext(**context), limit=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        ("will it rain tomorrow", "weather/get_forecast"),
        ("deposit cash", "bank/transfer"),
        ("erase this document", "disk/remove_file"),
        ("i want to listen to some jazz", "music/play"),
        ("schedule a meeting", "calendar/add_event"),
    ],
)
def test_a_tool_is_found_that_shares_no_word_with_the_need(need: str, expected: str) -> None:
    assert names(found(need, HOME))[0] == expected


def test_an_exact_name_still_comes_first() -> None:
    assert names(found("remove_file", HOME))[0] == "disk/remove_file"


def test_a_toolkit_is_found_by_what_it_is_for() -> None:
    within = among(*HOME.tools, groups=[Group(kind="toolkit", name="trips", description="Hotels, flights and trains.")])
    assert names(found("book a vacation abroad", within))[0] == "trips"


def test_what_was_called_after_a_like_need_comes_first() -> None:
    """P3: what was used is part of the context."""
    need = "the usual for Maria, please"
    assert names(found(need, HOME))[:1] != ["bank/transfer"]
    used = (PastUse(need="the usual for Maria", tool="bank/transfer"),)
    assert names(found(need, HOME, used=used))[0] == "bank/transfer"


def test_use_after_other_needs_changes_nothing_and_tools_that_are_gone_count_nothing() -> None:
    used = (
        PastUse(need="what is the square root of two", tool="bank/transfer"),
        PastUse(need="will it rain tomorrow", tool="gone/tool"),
    )
    assert names(found("will it rain tomorrow", HOME, used=used))[0] == "weather/get_forecast"


def test_a_short_answer_is_read_with_what_was_said_before() -> None:
    messages = ("I would like to hear a record by Miles Davis.",)
    assert names(found("yes, the second one", HOME, messages=messages))[0] == "music/play"


@pytest.mark.parametrize("need", ["", " ", "?!", "...", "\x00\x01", "(" * 50])
def test_a_need_that_says_nothing_has_no_answer(need: str) -> None:
    answer = found(need, HOME)
    assert answer.hits == ()
    assert [one.fits for one in answer.needs] == [0.0]


@pytest.mark.parametrize(
    "need", ["weather " * 12_000, "天気予報を見せて", "wie wird das Wetter", "\u0300\u0301 weather", "🌦 weather"]
)
def test_odd_texts_have_an_answer(need: str) -> None:
    assert all(0 <= hit.score <= 1 for hit in found(need, HOME).hits)


def test_tools_without_any_text_do_not_hide_others() -> None:
    silent = tuple(tool("silent", "_" * (n + 1)) for n in range(20))
    assert names(found("will it rain tomorrow", among(*silent, *HOME.tools)))[0] == "weather/get_forecast"


def answers(within: Searchable, ranker: ToolRanker) -> list[object]:
    needs = (
        "throw the picture of office 2 away",
        "costs and travel",
        "whom do we sell to",
        "list. And then remove it.",
    )
    got = [found(need, within, ranker) for need in needs]
    return [([name(hit) for hit in one.hits], [hit.score.hex() for hit in one.hits], one.needs) for one in got]


@settings(max_examples=15, deadline=None)
@given(st.sets(st.integers(0, len(EVERYTHING) - 1), min_size=1, max_size=200))
def test_meaning_is_the_same_as_if_denied_tools_did_not_exist(chosen: set[int]) -> None:
    """P3: order, scores to the last bit and evidence, beside an index over everything and without one."""
    permitted = among(*(EVERYTHING[n] for n in sorted(chosen)))
    beside = ToolRanker(Embedding())
    found("anything", among(*EVERYTHING), beside)
    assert answers(permitted, beside) == answers(permitted, ToolRanker(Embedding()))


def test_meaning_follows_a_changed_catalog() -> None:
    tools: list[Tool] = list(EVERYTHING)
    following = ToolRanker(Embedding())
    found("anything", among(*tools), following)
    del tools[100:110]
    tools.insert(7, tool("zoo", "feed", "Gives food to the animals."))
    changed = among(*tools)
    assert names(found("the lions are hungry", changed, following))[0] == "zoo/feed"
    assert answers(changed, following) == answers(changed, ToolRanker(Embedding()))


def test_equal_vectors_whatever_is_read_together() -> None:
    from pegboard.search.meaning.word_vectors import shipped_vectors

    texts: Sequence[tuple[str, str]] = [(f"{one.name}. {one.description}", "") for one in EVERYTHING]
    together = shipped_vectors().steps(texts)
    assert np.array_equal(together, np.concatenate([shipped_vectors().steps([text]) for text in texts]))


def test_words_alone_count_where_the_table_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "table.npz").write_bytes(b"torn")
    ranker = ToolRanker(Embedding(tmp_path / "table.npz"))
    assert names(found("the weather", HOME, ranker)) == ["weather/get_forecast"]
    assert names(found("will it rain", HOME, ranker)) == []
    assert [record.message for record in caplog.records if "words alone" in record.message] == [caplog.messages[0]]
