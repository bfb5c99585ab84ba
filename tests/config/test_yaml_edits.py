"""Edits of a YAML text: what is meant changes, every other character stays."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import yaml_text
from pegboard.config.documents.value_edits import with_items, with_member
from pegboard.errors import ConfigError

NAME = st.text(alphabet="ab-_/: #'\"{}[],é1", min_size=1, max_size=6).filter(lambda text: text.strip() == text)
OWN = ("agents", "a", "tools")


def added(text: str, *items: str, path: tuple[str, ...] = OWN) -> str:
    return with_items(text, path, items, file="f")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("agents:\n  a:\n    tools: [x]   # one\n", "agents:\n  a:\n    tools: [x, new]   # one\n"),
        ("agents:\n  a:\n    tools: [ x, ]\n", "agents:\n  a:\n    tools: [ x, new, ]\n"),
        ("agents:\n  a:\n    tools: []\n", "agents:\n  a:\n    tools: [new]\n"),
        ("agents: {a: {tools: [x]}}", "agents: {a: {tools: [x, new]}}"),
        (
            "agents:\n  a:\n    tools:\n    - x # one\n    # the end\n\n  b: {}\n",
            "agents:\n  a:\n    tools:\n    - x # one\n    - new\n    # the end\n\n  b: {}\n",
        ),
        (
            "agents:\n  a:\n    tools:\n      - sql:\n          u: |\n            # no comment\n  b: {}\n",
            "agents:\n  a:\n    tools:\n      - sql:\n          u: |\n            # no comment\n      - new\n  b: {}\n",
        ),
        ("agents:\n  a:\n    tools:\n    - é", "agents:\n  a:\n    tools:\n    - é\n    - new\n"),
        ("agents:\r\n  a:\r\n    tools:\r\n    - x\r\n", "agents:\r\n  a:\r\n    tools:\r\n    - x\r\n    - new\r\n"),
        ("agents:\n  a: # note\n", "agents:\n  a: {tools: [new]} # note\n"),
        ("agents:\n  a: ~\n", "agents:\n  a: {tools: [new]}\n"),
        ("agents:\n  a: {}\n", "agents:\n  a: {tools: [new]}\n"),
        (
            "agents:\n  a:\n    role: r\n    # lease: x\n  b: {}\n",
            "agents:\n  a:\n    role: r\n    tools: [new]\n    # lease: x\n  b: {}\n",
        ),
        ("agents:\n  b: {}\n", "agents:\n  b: {}\n  a:\n    tools: [new]\n"),
        ("store: x\n", "store: x\n\nagents:\n  a:\n    tools: [new]\n"),
    ],
)
def test_an_item_joins_a_list_in_the_form_of_the_list(before: str, after: str) -> None:
    assert added(before, "new") == after


def test_a_member_joins_a_mapping_in_lines_of_its_own() -> None:
    body = {"description": "A: b", "tools": ["x", "y/z"]}
    expected = "toolkits:\n  old: {tools: [q]}\n  new:\n    description: 'A: b'\n    tools: [x, y/z]\nagents: {}\n"
    text = "toolkits:\n  old: {tools: [q]}\nagents: {}\n"
    assert with_member(text, ("toolkits",), "new", body, file="f") == expected
    with pytest.raises(ConfigError):
        with_member(text, ("toolkits",), "old", body, file="f")


@pytest.mark.parametrize("word", ["no", "on", "5", "1.5", "null", "~", "a: b", "a #b", "[x", "'", "true", "x,y"])
def test_a_name_that_yaml_reads_as_something_else_is_quoted(word: str) -> None:
    for text in ("agents: {a: {tools: [x]}}\n", "agents:\n  a:\n    tools:\n    - x\n"):
        assert yaml_text.compose(added(text, word), "f").value["agents"]["a"]["tools"] == ["x", word]


@pytest.mark.parametrize(
    "text",
    [
        "agents: {a: &x {tools: [y]}, b: *x}\n",
        "agents: {a: {tools: plain}}\n",
        "agents: {a: plain}\n",
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        added(text, "new")
    assert refused.value.code == "not_rewritable"


@given(
    names=st.lists(NAME, min_size=1, max_size=3, unique=True),
    lists=st.lists(st.lists(NAME, max_size=3), min_size=1, max_size=3),
    flow=st.sampled_from([True, False, None]),
    items=st.lists(NAME, min_size=1, max_size=3),
    indent=st.integers(2, 6),
)
def test_whatever_the_file_looks_like_only_the_list_says_something_else(
    names: list[str], lists: list[list[str]], flow: bool | None, items: list[str], indent: int
) -> None:
    agents = {name: {"tools": list(own), "role": "r"} for name, own in zip(names, lists, strict=False)}
    value: dict[str, Any] = {"agents": agents}
    text = yaml.safe_dump(value, default_flow_style=flow, indent=indent, allow_unicode=True)
    after = with_items(text, ("agents", names[0], "tools"), items, file="f")
    value["agents"][names[0]]["tools"] = [*lists[0], *items]
    assert yaml_text.compose(after, "f").value == value
