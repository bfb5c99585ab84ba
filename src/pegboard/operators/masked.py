"""One mask over whatever operators are shown (X5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from pegboard.core.model.masking import Masker

T = TypeVar("T")

_VERBATIM: Final = object()
Verbatim = Annotated[str, _VERBATIM]
"""A name, a place or a word of Pegboard's own: what operators hand back has to mean the same thing."""
_WITHOUT_TEXT: Final = frozenset({NoneType, bool, int, float})


def masked(value: T, masker: Masker) -> T:
    """Return a value with every text in it masked, but for fields that are ``Verbatim`` or one of certain words.

    Tuples, mappings and dataclasses are gone through; what has no secret in it is returned as it is.
    """
    return cast("T", _masked(value, masker))


def _masked(value: Any, masker: Masker) -> Any:
    match value:
        case str():
            return masker.text(value)
        case tuple():
            return tuple(_masked(item, masker) for item in cast("tuple[Any, ...]", value))
        case Mapping():
            return {name: _masked(item, masker) for name, item in cast("Mapping[Any, Any]", value).items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            old = {name: getattr(value, name) for name in texts_of(type(value))}
            new = {name: _masked(item, masker) for name, item in old.items()}
            return replace(value, **new) if new != old else value
        case _:
            return value


@cache
def texts_of(kind: type) -> tuple[str, ...]:
    """Return the fields of a dataclass that may have a text in them which is masked."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(field.name for field in fields(kind) if _may_have_text(hints[field.name]))


def _may_have_text(hint: Any) -> bool:
    if get_origin(hint) is Literal or hint in _WITHOUT_TEXT or hint is ...:
        return False
    if get_origin(hint) is Annotated:
        return _VERBATIM not in hint.__metadata__ and _may_have_text(get_args(hint)[0])
    parts = get_args(hint)
    return any(map(_may_have_text, parts)) if parts else not is_dataclass(hint) or bool(texts_of(cast("type", hint)))
