"""How texts become words."""

from __future__ import annotations

import pytest

from pegboard.search.analysis.words import split_values, stem, words
from pegboard.search.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getHTTPResponse_v2", ["get", "http", "response", "v2"]),
        ("createS3Bucket", ["create", "s3", "bucket"]),
        ("kebab-case.and/paths", ["kebab", "case", "and", "paths"]),
        ("ＦＵＬＬ　width", ["full", "width"]),
        ("Straße Ёлка naïve", ["strasse", "елка", "naive"]),
        ("使用git工具", ["使用", "git", "工具"]),
        ("字", ["字"]),
    ],
)
def test_words_of_names_and_scripts(text: str, found: list[str]) -> None:
    """P3: camel and snake case, digits that belong to letters, full width, accents, scripts without spaces."""
    assert words(text) == found


@pytest.mark.parametrize(
    "forms",
    [
        "create creates created creating creation",
        "query queries",
        "run running runs",
        "calculate calculator calculation",
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: str) -> None:
    """P3: without a dictionary."""
    assert len({stem(form) for form in forms.split()}) == 1


def test_values_are_taken_from_a_request_with_what_they_are() -> None:
    """P3: what is passed to a tool says less of it than what it shall do."""
    rest, values, kinds = split_values("Move /tmp/a.txt on 2024-05-01 at 10:30 for $12 and call 555-123-4567")
    assert rest.split() == ["Move", "on", "at", "for", "and", "call"]
    assert values == ["/tmp/a.txt", "2024-05-01", "10:30", "$12", "555-123-4567"]
    assert kinds == ["file", "date", "time", "price", "phone"]


def test_no_word_of_an_iterator_is_lost_where_one_of_them_is_new() -> None:
    vocabulary = Vocabulary()
    known = vocabulary.numbers(["send", "message"])
    found = vocabulary.numbers(iter(["send", "message", "weather", "send"]))
    assert [vocabulary.word(number) for number in found] == ["send", "message", "weather", "send"]
    assert found[:2] == known


@pytest.mark.parametrize("typo", ["mesage", "messagee", "massage", "emssage"])
def test_a_misspelled_word_is_the_known_one_beside_it(typo: str) -> None:
    """P3: a letter less, more, other, or two that changed places; only among the words that count."""
    vocabulary = Vocabulary()
    number = vocabulary.numbers(["message", "weather"])[0]
    vocabulary.index_spelling()
    assert vocabulary.correct_word(typo, lambda _: 1) == number
    assert vocabulary.correct_word(typo, lambda _: 0) is None
    assert vocabulary.correct_word("unrelated", lambda _: 1) is None
