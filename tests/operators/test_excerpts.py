"""The lines of a configuration beside a problem: keys and indentation, however the file is broken, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.schema.json_schema import schema
from pegboard.config.schema.sections import every_key
from pegboard.core.model.masking import Masker
from pegboard.operators.configuration import BESIDE, HIDDEN, WrittenLines, shown_problems
from pegboard.problems import Place, Problem

KEYS = every_key()
SECRETS = ("ada-ada", "k3y, w1th", "hunter22", "xyz xyz", "BEGIN KEY", "pw-of-db", "tok-tok", "in-url")
YAML = """\
store: "memory:"
tokens:
  ada: {token: ada-ada-ada, agents: [mailer], console: true}
servers:
  mail: {command: srv, args: [--token, tok-tok, --quiet], env: {API_KEY: "k3y, w1th", FOO: ${FOO}}}
  docs:
    url: https://example.invalid/mcp?api_key=in-url&page=1
    headers:
      Authorization: "Bearer xyz xyz"
    args:
    - --password
    - hunter22
  keyed:
    env:
      PRIVATE_KEY: |
        BEGIN KEY
      DATABASE: postgres://u:pw-of-db@db/x
agents:
  mailer: {budget: 1500, discovreable: ["*"]}
"""
words = st.sampled_from([*sorted(KEYS)[::7], "hunter22", "s3cr3t", "tools-x", "…"])
signs = st.sampled_from([*list("\"'{}[],:#|>&*!%@`-?\t "), "\u2028", "\xa0", "\x00", "\x85"])
one_line = st.one_of(st.text(max_size=40), st.lists(st.one_of(words, signs), max_size=15).map("".join))
texts = st.lists(one_line, min_size=1, max_size=6).map("\n".join)


def shown(text: str, line: int, column: int | None = None) -> list[str]:
    return [
        f"{one.before}[{one.marked}]{one.after}" if one.marked else one.before + one.after
        for one in WrittenLines(text, KEYS).lines_around(line, column)
    ]


def test_keys_are_shown_with_their_indentation_and_what_is_wrong_is_marked_between_them() -> None:
    """F5: two lines before and after."""
    assert shown(YAML, 19, 26) == ["      …", "agents …", "  … budget […]", ""]
    assert shown("stroe: x\n", 1, 1) == ["[…]", ""]
    assert shown("a: {tools: [x], turns: 1}", 1, 5) == ["… [tools] … turns …"]
    assert shown("a: {tools: [x], turns: 1}", 1, 16) == ["… tools […] turns …"]
    assert shown(YAML, 999, 1) == shown(YAML, 0, 1) == []
    assert shown("store: 1", 1, 400) == ["store …"]
    assert shown("store: [", 2, 1) == ["store …"]


def test_no_word_of_a_secret_is_shown_of_a_file_as_people_write_it() -> None:
    """X5: in comments, block scalars, lists, commands and addresses."""
    found = "\n".join("".join(shown(YAML, line)) for line in range(1, 20))
    assert [secret for secret in SECRETS if secret in found] == []


@given(texts, st.integers(0, 8), st.one_of(st.none(), st.integers(-1, 80)))
def test_whatever_is_shown_of_any_text_is_a_key_of_the_schema(text: str, line: int, column: int | None) -> None:
    """X5: the newest edit is shown because it is wrong, so that no one can tell what in it is secret."""
    written = re.split(r"\r\n|\r|\n", text)
    for one in WrittenLines(text, KEYS).lines_around(line, column):
        parts = f"{one.before}{one.marked}{one.after}"
        assert set(parts.split()) <= KEYS | {HIDDEN}
        assert f"{HIDDEN} {HIDDEN}" not in parts
        indentation = parts[: len(parts) - len(parts.lstrip(" \t"))]
        assert written[one.number - 1].startswith(indentation)


@given(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=6), st.integers(0, 8))
def test_every_key_of_a_line_is_shown_in_its_place(keys: list[str], indentation: int) -> None:
    line = " " * indentation + "".join(f"{key}: {{" for key in keys)
    assert shown(line, 1) == [" " * indentation + "".join(f"{key} … " for key in keys).rstrip()]


def test_the_keys_are_those_of_the_json_schema() -> None:
    """F5: none that the author chooses: a name of a server or of a variable may be anything."""

    def properties(part: object) -> set[str]:
        if isinstance(part, list):
            return set().union(*map(properties, part))
        if not isinstance(part, dict):
            return set()
        own = part.get("properties")
        return set(own if isinstance(own, dict) else ()).union(*map(properties, part.values()))

    assert properties(schema()) == KEYS


@pytest.mark.parametrize(("secret", "expected"), [("tools", "… *** … turns …"), ("hunter22", "… tools … turns …")])
def test_a_key_that_is_a_secret_as_well_is_masked(secret: str, expected: str) -> None:
    """X5: what came from the environment may be any word."""
    problem = Problem(severity="error", code="bad", message="wrong", place=Place(file="f", line=1, column=2))
    (found,) = shown_problems([problem], Masker([secret]), lambda _: "a: {tools: 1, turns: 2}", KEYS)
    (line,) = found.excerpt
    assert f"{line.before}{line.marked}{line.after}" == expected


def test_a_file_of_one_line_of_a_megabyte_is_shown_beside_what_is_wrong() -> None:
    text = '{"a": [' + '"tools", ' * 100_000 + '"wrong": 1, ' + '"store", ' * 100_000 + "]}"
    (line,) = WrittenLines(text, KEYS).lines_around(1, text.index('"wrong"') + 1)
    assert line.before.startswith(f"{HIDDEN} ")
    assert line.before.endswith(" tools ")
    assert line.marked == HIDDEN
    assert line.after.startswith(" store ")
    assert len(line.before + line.marked + line.after) < 2 * BESIDE
