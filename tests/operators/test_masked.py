"""One mask over whatever operators are shown: no secret is left in any of their texts (X5)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.model.masking import Masker
from pegboard.operators.approvals import OperatorApprovals
from pegboard.operators.configuration import ConfigurationState
from pegboard.operators.masked import Verbatim, masked, texts_of
from pegboard.operators.operations import Operations

MASKER = Masker(["hunter22"])
PROSE = {"description", "error", "fault", "hint", "label", "last_error", "marked", "message", "path"}
PROSE |= {"problem", "query", "reason", "sentence", "target", "text", "title", "unavailable", "verdict", "word"}
"""The fields that a server, a plugin, a model or a file has written."""


def parts_of(hint: Any) -> Iterator[Any]:
    """Yield a type and everything that stands in it."""
    yield hint
    inner = get_type_hints(hint, include_extras=True).values() if is_dataclass(hint) else ()
    for part in (*get_args(hint), *inner):
        yield from parts_of(part)


def shown() -> list[type]:
    """Return every dataclass that the face of the operators returns, and those in its fields."""
    hints: list[Any] = [ConfigurationState]
    for face in (Operations, OperatorApprovals):
        methods = [method for name, method in vars(face).items() if callable(method) and not name.startswith("_")]
        hints += (get_type_hints(method)["return"] for method in methods)
    found = {part for hint in hints for part in parts_of(hint) if isinstance(part, type) and is_dataclass(part)}
    return sorted(found, key=lambda kind: kind.__name__)


def made(hint: Any) -> Any:
    """Return a value of a type with a secret in each of its texts; what stays as it is says so."""
    parts = [part for part in get_args(hint) if part not in (..., NoneType)]
    if hint is str or get_origin(hint) is Annotated:
        return "free hunter22" if hint is str else "kept hunter22"
    if get_origin(hint) is tuple:
        return tuple(map(made, parts)) * 2
    if get_origin(hint) is Literal or not parts:
        return parts[0] if parts else filled(hint)
    return made(parts[0])


def filled(kind: Any) -> Any:
    """Return a dataclass with all of its fields, or the value of a plain type."""
    if not is_dataclass(kind):
        return kind()
    hints = get_type_hints(kind, include_extras=True)
    return kind(**{field.name: made(hints[field.name]) for field in fields(kind)})  # type: ignore[operator]


def texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            for item in value:
                yield from texts(item)
        case Mapping():
            yield from texts(tuple(value.values()))
        case _ if is_dataclass(value):
            yield from texts(tuple(getattr(value, field.name) for field in fields(value)))
        case _:
            pass


def test_the_face_is_looked_through() -> None:
    names = {kind.__name__ for kind in shown()}
    assert names >= {"ApprovalOverview", "ArgumentOverview", "AuditLine", "BillRow", "ConnectionState", "ExcerptLine"}
    assert names >= {"Fix", "MatchedWord", "PlainReason", "PrintedLine", "SearchHit", "SessionOverview", "SwitchRow"}


@pytest.mark.parametrize("kind", shown(), ids=lambda kind: kind.__name__)
def test_every_text_of_whatever_the_face_returns_is_masked(kind: type) -> None:
    """X5: but for names, places and words of Pegboard's own, which operators hand back."""
    value = filled(kind)
    assert list(texts(masked(value, MASKER))) == [text.replace("free hunter22", "free ***") for text in texts(value)]


@pytest.mark.parametrize("kind", shown(), ids=lambda kind: kind.__name__)
def test_what_others_have_written_is_never_shown_as_it_is(kind: type) -> None:
    """X5: no field with such a text is declared to be a name."""
    assert {field.name for field in fields(kind)} & PROSE <= set(texts_of(kind))


@dataclass(frozen=True)
class _Node:
    name: Verbatim
    text: str
    inner: Any


nodes = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(), st.sampled_from(["hunter22", "a hunter22 b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(_Node, name=st.sampled_from(["one", "other"]), text=st.sampled_from(["", "hunter22"]), inner=inner),
    ),
)


@given(nodes)
def test_no_secret_is_left_at_any_depth_and_nothing_else_changes(value: object) -> None:
    """X5: in tuples, mappings and dataclasses."""
    after = masked(value, MASKER)
    assert list(texts(after)) == [MASKER.text(text) for text in texts(value)]
    assert masked(value, Masker()) == value
