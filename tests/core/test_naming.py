"""Names on the wire, and what someone may have meant."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.naming import (
    LIMIT,
    did_you_mean,
    first_sentence,
    is_within,
    nearest,
    one_line,
    sentences,
    wire_name,
)

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
ids = st.tuples(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90))


@pytest.mark.parametrize(
    ("prefix", "expected"), [(None, "github__get_issue"), ("gh", "gh__get_issue"), ("", "get_issue")]
)
def test_a_prefix_stands_before_the_name_of_a_tool(prefix: str | None, expected: str) -> None:
    """G10: `{plugin}__{tool}` by default, `prefix: gh` gives `gh__name`, `""` the bare name."""
    assert wire_name("github", "get_issue", prefix=prefix) == expected


@pytest.mark.parametrize("length", [63, 64])
def test_a_valid_name_of_at_most_64_characters_is_left_as_it_is(length: int) -> None:
    """G10: only what has to be changed is changed."""
    tool = "t" * (length - len("git__"))
    assert wire_name("git", tool) == f"git__{tool}"


def test_a_longer_name_is_cut_and_carries_a_digest() -> None:
    """G10: two long names that share their first 64 characters stay apart."""
    left, right = wire_name("git", "x" * 80 + "a"), wire_name("git", "x" * 80 + "b")
    assert len(left) == len(right) == LIMIT
    assert left[:55] == right[:55]
    assert left != right


@pytest.mark.parametrize("name", ["日本語", "café", "a.b", "a b", "a/b", "🔧", "\ud800", "a\nb", "é" * 200])
def test_a_name_in_any_script_becomes_valid(name: str) -> None:
    """G10: letters that a provider refuses are replaced, and a digest keeps the name apart."""
    assert VALID.fullmatch(wire_name(name, name))
    assert VALID.fullmatch(wire_name(name, name, prefix=""))


def test_names_that_differ_only_in_what_was_replaced_stay_apart() -> None:
    """G10: collision-free."""
    names = {wire_name("my files", tool) for tool in ("read it", "read.it", "read/it", "read_it", "read:it")}
    assert len(names) == 5


def test_names_never_change_from_one_release_to_the_next() -> None:
    """G10: stable: these are in the logs and histories of users."""
    assert wire_name("my files", "read it") == "my_files__read_it_4f130f7b"
    assert wire_name("日本", "ツール") == "_____74b5ccc8"
    assert wire_name("git", "x" * 80) == f"git__{'x' * 50}_743c870b"


@given(ids, st.none() | st.text(max_size=70))
def test_every_name_is_valid_and_stable(parts: tuple[str, str], prefix: str | None) -> None:
    """G10: valid everywhere, at most 64 characters, the same every time."""
    name = wire_name(*parts, prefix=prefix)
    assert VALID.fullmatch(name)
    assert name == wire_name(*parts, prefix=prefix)


def test_a_suggestion_ignores_case_and_prefers_the_nearest() -> None:
    assert nearest("DEVOP", ["research", "Devops"]) == ("Devops",)
    assert did_you_mean("git__git_lgo", ["git__git_log", "mail__send"]) == "Did you mean 'git__git_log'?"


def test_there_is_no_suggestion_where_nothing_is_near() -> None:
    assert did_you_mean("zzzz", ["git", "shell"]) == ""
    assert did_you_mean("", []) == ""


def test_a_suggestion_is_found_among_very_many_names() -> None:
    names = [f"plugin_{n}__tool" for n in range(5000)] + ["git__git_log"]
    assert nearest("git__gitlog", names) == ("git__git_log",)


@given(st.text(max_size=200), st.integers(min_value=1, max_value=50))
def test_one_line_is_printable_and_as_short_as_asked(text: str, limit: int) -> None:
    """F2: control characters are stripped."""
    line = one_line(text, limit=limit)
    assert len(line) <= limit
    assert line.isprintable()


few_letters = st.text(alphabet="abc", max_size=7)


def slips_between(one: str, other: str) -> int:
    """Return how many slips make one text of another, from the whole table."""
    table = {(row, 0): row for row in range(len(one) + 1)} | {(0, column): column for column in range(len(other) + 1)}
    for row, letter in enumerate(one, 1):
        for column, sought in enumerate(other, 1):
            cost = table[row - 1, column - 1] + (letter != sought)
            cost = min(cost, table[row - 1, column] + 1, table[row, column - 1] + 1)
            if row > 1 < column and letter == other[column - 2] and one[row - 2] == sought:
                cost = min(cost, table[row - 2, column - 2] + 1)
            table[row, column] = cost
    return table[len(one), len(other)]


@given(few_letters, few_letters, st.integers(min_value=0, max_value=3))
def test_two_texts_are_as_near_as_the_slips_between_them(one: str, other: str, slips: int) -> None:
    assert is_within(one, other, slips) == is_within(other, one, slips) == (slips_between(one, other) <= slips)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("List files.  Use v1.2 of it, with care!\nReally?", ["List files.", "Use v1.2 of it, with care!", "Really?"]),
        ("列出文件。读取文件！真的？好", ["列出文件。", "读取文件！", "真的？", "好"]),
        ("no end", ["no end"]),
    ],
)
def test_sentences_end_where_they_end_in_each_script(text: str, expected: list[str]) -> None:
    """F2: the first one is what hints say of a tool."""
    assert sentences(text) == expected
    assert first_sentence(text) == (expected[0] if expected else "")
