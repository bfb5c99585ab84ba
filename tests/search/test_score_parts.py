"""What the score of an answer is made of: the parts add up to it, and name the words that count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import PastUse, RankContext, ScorePart
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker
from search.making import NOUNS, VERBS, among, office, tool

MAIL = (
    tool("mail", "send_email", "Sends a message to a person. Attachments are files.", recipient="Whom it is for."),
    tool("mail", "list_folders", "Lists the folders of a mailbox."),
    tool("weather", "forecast", "Says how the weather will be.", city="Which city."),
)
TRAVEL = Group(kind="toolkit", name="travel", description="Book flights and hotels.", members=("flights", "weather"))
EVERYTHING = among(*office(3), *MAIL, groups=[TRAVEL], mail="Letters of a mailbox.", weather="Sun and rain.")
WORDS = st.sampled_from(
    [
        *VERBS,
        *NOUNS,
        "mail",
        "sends",
        "letter",
        "city",
        "of",
        "ofice",
        "Ada",
        "rain.",
        "trips",
        "forcast",
        "4711",
        "天气",
    ]
)
CONTEXTS = (
    RankContext(),
    RankContext(messages=("How is the weather in Rome?", "And send it to Ada.")),
    RankContext(used=(PastUse(need="write to somebody", tool="mail/send_email"),)),
)


@cache
def ranker(*, by_meaning: bool) -> ToolRanker:
    return ToolRanker(Embedding() if by_meaning else None)


def assert_parts_add_up(query: str, context: RankContext, *, by_meaning: bool) -> None:
    with_parts = ranker(by_meaning=by_meaning)
    hits = with_parts.rank([query], EVERYTHING, context, limit=30).hits
    parts = with_parts.parts(query, EVERYTHING, context, [hit.found for hit in hits])
    for hit, of_score in zip(hits, parts, strict=True):
        assert sum(part.value for part in of_score) == pytest.approx(hit.score, abs=6e-5), (query, hit.found.name)
        assert all(part.value > 0 for part in of_score if part.kind not in ("writes", "limit"))
        for part in of_score:
            assert_words_add_up(part)


def assert_words_add_up(part: ScorePart) -> None:
    if part.kind == "words":
        assert sum(word.value for word in part.words) == pytest.approx(part.value)
        for word in part.words:
            assert sum(share.value for share in word.fields) == pytest.approx(word.value)
            assert word.word
            assert word.asked
    else:
        assert not part.words


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("send_email", id="the name of a tool"),
        pytest.param("wether forcast in Oslo", id="misspelt"),
        pytest.param("delete the photo of office 2. Then list folders.", id="two sentences"),
        pytest.param("invoice 4711 for ada@example.org", id="values"),
        pytest.param("天气 zzzz the", id="no word that counts"),
    ],
)
def test_the_parts_of_a_score_add_up_to_it(query: str) -> None:
    for context in CONTEXTS:
        assert_parts_add_up(query, context, by_meaning=True)


@given(st.lists(WORDS, max_size=9), st.sampled_from(CONTEXTS), st.booleans())
def test_they_do_for_any_words(asked: list[str], context: RankContext, by_meaning: bool) -> None:
    assert_parts_add_up(" ".join(asked), context, by_meaning=by_meaning)


def parts(
    query: str, name: str, context: RankContext | None = None, *, by_meaning: bool = True
) -> dict[str, ScorePart]:
    found = next(each for each in (*EVERYTHING.tools, *EVERYTHING.groups) if each.name == name)
    known = ranker(by_meaning=by_meaning).parts(query, EVERYTHING, context or RankContext(), [found])
    return {part.kind: part for part in known[0]}


def test_an_exact_name_is_all_that_counts() -> None:
    assert parts("send_email", "send_email") == {"name": ScorePart(kind="name", value=1.0)}
    assert parts("Mail SendEmail", "send_email").keys() == {"name"}


def test_each_word_is_there_as_the_tool_has_it_and_as_it_was_asked_for() -> None:
    """A correction, another form, a synonym; and where it stands."""
    found = parts("mails to recipent", "send_email")["words"].words
    words = {(word.asked, word.word): {share.field for share in word.fields} for word in found}
    assert words["recipent", "recipient"] == {"parameters"}
    assert words["mails", "mail"] == {"plugin", "examples"}
    assert words["mails", "email"] == {"name", "examples"}
    synonym = parts("contact a person", "send_email")["words"].words
    assert [(word.asked, word.word) for word in synonym] == [("person", "person")]
    deliver = {word.asked: word.word for word in parts("deliver letters", "send_email")["words"].words}
    assert deliver["deliver"] == "send"


def test_the_members_of_a_toolkit_are_a_field() -> None:
    (word,) = parts("flights", "travel")["words"].words
    assert {share.field for share in word.fields} == {"description", "members"}


def test_what_was_said_before_and_what_was_called_before_have_parts_of_their_own() -> None:
    before = parts("and there?", "forecast", CONTEXTS[1])["words"].words
    assert {(word.asked, word.before) for word in before} == {("weather", True)}
    used = parts("write to somebody", "send_email", CONTEXTS[2])
    assert used["used"].value > 0.05
    assert "used" not in parts("write to somebody", "send_email")


def test_another_tool_of_its_plugin_that_answers_is_a_part() -> None:
    known = parts("folders of a mailbox", "send_email", by_meaning=False)
    assert set(known) == {"words", "plugin"}
    best = parts("folders of a mailbox", "list_folders", by_meaning=False)
    before = sum(part.value for kind, part in best.items() if kind != "plugin")
    assert known["plugin"].value == pytest.approx(0.15 * before)


def test_what_is_not_among_it_has_no_parts() -> None:
    strange = tool("elsewhere", "send_email", "Sends.")
    assert ranker(by_meaning=True).parts("send", EVERYTHING, RankContext(), [strange, MAIL[0]])[0] == ()


def found_without(query: str, hidden: Searchable, limit: int = 20) -> Sequence[tuple[Tool | Group, float]]:
    hits = ranker(by_meaning=True).rank([query], EVERYTHING, RankContext(), limit=limit, without=hidden).hits
    return [(hit.found, hit.score) for hit in hits]


@pytest.mark.parametrize("query", ["send mail", "send_email", "delete an invoice", "travel"])
def test_what_is_not_to_be_found_counts_in_the_scores_of_the_others_all_the_same(query: str) -> None:
    hidden = among(*MAIL[:1], *office(3)[:100], groups=[Group(kind="toolkit", name="travel")])
    everything = ranker(by_meaning=True).rank([query], EVERYTHING, RankContext(), limit=400).hits
    known = {id(hit.found): hit.score for hit in everything}
    gone = {*map(id, hidden.tools), id(TRAVEL)}
    rest = found_without(query, hidden)
    assert rest
    assert all(id(found) not in gone and known[id(found)] == score for found, score in rest)
