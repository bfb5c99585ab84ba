"""One mask over whatever operators are shown: no secret is left in any of their texts (X5)."""

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from types import FunctionType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from pegboard import console
from pegboard.core.model.masking import Masker
from pegboard.operators.configuration import ConfigurationState
from pegboard.operators.masked import Name, ShownNames, Verbatim, mask_value, texts_of
from pegboard.operators.seen_catalog import services_of_agents
from pegboard.operators.subjects import OperatorSubjects, make_subjects

NAMES = ShownNames(Masker(["hunter22"]), b"key")
PROSE = {"description", "error", "fault", "hint", "label", "last_error", "marked", "message", "path"}
PROSE |= {"problem", "query", "reason", "sentence", "target", "text", "title", "unavailable", "verdict", "word"}
"""The fields that a server, a plugin, a model or a file has written."""


def parts_of(hint: Any) -> Iterator[Any]:
    """Yield a type and everything that is in it."""
    yield hint
    inner = get_type_hints(hint, include_extras=True).values() if is_dataclass(hint) else ()
    for part in (*get_args(hint), *inner):
        yield from parts_of(part)


def asked_by_the_console() -> Iterator[Callable[..., object]]:
    """Yield the functions of operators that modules of the console import, and the methods of their subjects."""
    for found in pkgutil.walk_packages(console.__path__, "pegboard.console."):
        for one in vars(import_module(found.name)).values():
            if (
                isinstance(one, FunctionType)
                and one.__module__.startswith("pegboard.operators.")
                and one not in (make_subjects, services_of_agents)
            ):
                yield one
    for subject in get_type_hints(OperatorSubjects).values():
        yield from (method for name, method in vars(subject).items() if callable(method) and not name.startswith("_"))


def shown() -> list[type]:
    """Return every dataclass that operators return to the console, and those in its fields."""
    hints = [ConfigurationState, *(get_type_hints(function)["return"] for function in asked_by_the_console())]
    found = {part for hint in hints for part in parts_of(hint) if isinstance(part, type) and is_dataclass(part)}
    return sorted(found, key=lambda kind: kind.__name__)


def made(hint: Any) -> Any:
    """Return a value of a type with a secret in each of its texts; what stays as it is says so."""
    parts = [part for part in get_args(hint) if part not in (..., NoneType)]
    if hint is str or get_origin(hint) is Annotated:
        return "free hunter22" if hint is str else "kept hunter22" if hint == Verbatim else "named hunter22"
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


def test_every_text_of_whatever_the_face_returns_is_masked() -> None:
    """X5: but for places and words of Pegboard's own; a name is shown so that it is known when it is handed back."""
    named = NAMES.shown("named hunter22")
    assert NAMES.meant(named) == "named hunter22"
    for kind in shown():
        value = filled(kind)
        expected = [text.replace("free hunter22", "free ***").replace("named hunter22", named) for text in texts(value)]
        assert list(texts(mask_value(value, NAMES))) == expected, kind


def test_what_others_have_written_is_never_shown_as_it_is() -> None:
    """X5: no field with such a text is declared to be a name."""
    for kind in shown():
        assert {field.name for field in fields(kind)} & PROSE <= set(texts_of(kind)), kind


@dataclass(frozen=True)
class _Node:
    name: Name
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
    after = mask_value(value, NAMES)
    assert list(texts(after)) == [NAMES.masker.text(text) for text in texts(value)]
    assert mask_value(value, ShownNames(Masker())) == value


SECRETS = ("hunter22", "s p/a:c?e", "hunter22-and-more", "22-h")
written = st.lists(st.one_of(st.sampled_from((*SECRETS, "***", "***~", "~", "0123456789")), st.text(max_size=4))).map(
    "".join
)


@given(written)
def test_what_is_shown_of_a_name_has_no_secret_and_means_that_name_alone(name: str) -> None:
    """X5: whatever stands beside the secrets in it, and whatever looks like a mark."""
    names = ShownNames(Masker(SECRETS), b"key")
    shown = names.shown(name)
    assert not any(form in shown for form in names.masker.forms)
    assert names.meant(shown) == name


def test_names_that_differ_in_their_secrets_alone_are_told_apart() -> None:
    """X5: by marks that stay the same in every process on the store, and tell no one else what they stand for."""
    masker = Masker(["hunter22", "hunter23"])
    first, again, elsewhere = ShownNames(masker, b"key"), ShownNames(masker, b"key"), ShownNames(masker, b"other")
    shown = first.shown("of hunter22")
    assert re.fullmatch(r"of \*\*\*~[0-9a-f]{10}", shown)
    assert shown != first.shown("of hunter23")
    assert again.meant(shown) == "of hunter22"
    assert (elsewhere.shown("of hunter22") != shown, elsewhere.meant(shown)) == (True, shown)


def test_x5_a_secret_deep_in_a_definition_is_masked() -> None:
    """X5: also in lists, as JSON has them, and in mappings of mappings."""
    names = ShownNames(Masker({"hunter2secret"}))
    given = {"enum": ["x hunter2secret", {"default": "hunter2secret"}], "most": 3}
    assert mask_value(given, names) == {"enum": ["x ***", {"default": "***"}], "most": 3}
