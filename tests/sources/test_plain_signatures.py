"""What is read of most functions without pydantic and docstring_parser is what these return."""

import inspect
import json
from functools import reduce
from operator import or_
from types import NoneType
from typing import Any, Dict, List, Literal, Optional, Union, cast  # noqa: UP035

from docstring_parser import ParseError, parse
from hypothesis import given
from hypothesis import strategies as st

from pegboard.sources.signatures import functions
from pegboard.sources.signatures.annotations import plain_schema

SIMPLE = st.sampled_from(
    [str, int, float, bool, None, NoneType, Any, list, dict, List[str], Dict[str, Any], Optional[int], Literal["a"]]  # noqa: UP006, UP045
)
LITERALS = st.lists(st.sampled_from(["a", "b", "c d", ""]), min_size=1, max_size=3).map(
    lambda texts: cast("Any", Literal)[*texts]
)
OTHER = st.sampled_from([set[str], tuple[str, ...], bytes, object, dict[int, str], Literal[1, "a"], Literal[True]])


def union_of(kinds: list[Any]) -> Any:
    """Return a union in one order: ``typing`` keeps one of two that differ in it, and pydantic sees that one."""
    return reduce(or_, sorted(kinds, key=repr))


ANNOTATIONS = st.recursive(
    SIMPLE | LITERALS | OTHER,
    lambda inner: (
        inner.map(lambda kind: list[kind])
        | inner.map(lambda kind: dict[str, kind])
        | st.lists(inner, min_size=2, max_size=3).map(lambda kinds: cast("Any", Union)[*sorted(kinds, key=repr)])
        | st.lists(st.sampled_from([str, int, bool, NoneType, list[str]]), min_size=2, max_size=3).map(union_of)
    ),
    max_leaves=4,
)
NAMES = ("name", "title", "properties", "type", "default", "count")


def parameters(names: list[str], annotations: list[Any], defaults: list[bool]) -> dict[str, inspect.Parameter]:
    found = {}
    for name, annotation, has_default in zip(names, annotations, defaults, strict=False):
        default = None if has_default else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY
        found[name] = inspect.Parameter(name, kind, annotation=annotation, default=default)
    return found


@given(
    st.lists(ANNOTATIONS, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.permutations(NAMES),
    st.booleans(),
)
def test_a_schema_of_plain_types_is_the_one_of_pydantic_to_the_byte(
    annotations: list[Any], defaults: list[bool], names: list[str], open_ended: bool
) -> None:
    given_ = parameters(names, annotations, defaults)
    plain = functions._plain_schema(given_, open_ended=open_ended)
    theirs = functions._arguments_adapter(parameters, given_, open_ended=open_ended).json_schema()
    assert plain is None or json.dumps(plain) == json.dumps(functions.without_titles(theirs))


def test_the_usual_types_are_plain_and_all_others_are_left_to_pydantic() -> None:
    usual = (str, int, float, bool, list[str], dict[str, Any], str | None, Optional[list[int]], Literal["a", "b"])  # noqa: UP045
    assert None not in [plain_schema(kind) for kind in usual]
    assert plain_schema(None | int) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    others = (set[str], tuple[int, int], bytes, dict[int, str], Literal[1], Any | None, list[set[str]])
    assert [plain_schema(kind) for kind in others] == [None] * len(others)


LINES = st.sampled_from(
    [
        "Add a note.", "It stays, until it goes: for ever.", "", "    indented", "Args:", "Parameters:", "Returns:",
        "Note:", "    text: What to remember,", "        in one line.", "    tags (list): Words. Defaults to None.",
        "Example::", ":param text: What to remember.", ":returns: It.", "@param text: What to remember.", "Args:  ",
        ".. deprecated:: 1.0", "Parameters", "----------", "text : str", "Returns", "-------", "- a point", "Raises:",
        "See also:",
    ]
)  # fmt: skip


def documented_by_every_style(text: str) -> tuple[str, dict[str, str]]:
    if not text:
        return "", {}
    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    description = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return description.strip(), {
        p.arg_name.lstrip("*"): functions._on_one_line(p.description) for p in parsed.params if p.description
    }


@given(st.lists(LINES, max_size=8))
def test_a_docstring_is_read_as_by_the_parsers_of_every_style(lines: list[str]) -> None:
    def tool() -> None: ...

    tool.__doc__ = "\n".join(lines)
    assert functions._read_docstring(tool) == documented_by_every_style(inspect.getdoc(tool) or "")
