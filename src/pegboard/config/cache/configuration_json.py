"""A compiled configuration as JSON and back: the known frozen values, each with its type.

A text from the environment is written as the marker of its variable, and read as its value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final, cast

from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.agents import Agent, Anticipate, Budget
from pegboard.core.model.hooks import Hook
from pegboard.core.model.leases import LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.masking import MASK, Masker, mask_overrides
from pegboard.core.model.prices import Prices
from pegboard.core.model.recording import Recording
from pegboard.core.model.references import ByReference, Reference, refers
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import Confinement, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Frozen
from pegboard.core.principals.bearer_tokens import Token
from pegboard.problems import Place, Problem

_RECORDS: Final[tuple[type[Any], ...]] = (
    Agent,
    Anticipate,
    Budget,
    ByReference,
    Configuration,
    Confinement,
    Hook,
    LeaseTerm,
    Loadout,
    Member,
    Place,
    Prices,
    Problem,
    PythonSpec,
    Reference,
    Recording,
    RegisteredSpec,
    ServerSpec,
    Token,
    Toolkit,
)
_RECORD_NAMES: Final = {kind.__name__: kind for kind in _RECORDS}
_USERINFO: Final = re.compile(r"(?<=://)[^/\s'\"]+(?=@)")
_NOBODY: Final = Masker()


class NotCacheableError(Exception):
    """The refusal to write a configuration down: it has a secret, or a value of an unknown type."""


def encode_value(value: Any, markers: Sequence[str] | None) -> Any:
    """Return a value as JSON; raises :class:`NotCacheableError` for an unknown type.

    ``markers`` are those of the variables: what looks like a secret and has none of them is refused too. With
    None nothing is, for what is never written.
    """
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, int):
        return value
    if kind is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        _refuse_userinfo(value, markers)
        return str(value) if kind is str else [_type_name(kind, _texts()), str(value)]
    if isinstance(value, Path):
        return ["Path", str(value)]
    if kind in (list, tuple):
        return [kind.__name__, *(encode_value(item, markers) for item in value)]
    if kind is frozenset:
        return ["frozenset", *sorted(encode_value(item, markers) for item in value)]
    if kind in (dict, Frozen):
        return [kind.__name__, _encoded_mapping(value, markers)]
    name = _type_name(kind, _RECORD_NAMES)
    given = ((part, getattr(value, part.name)) for part in fields(value) if part.init)
    return [name, {part.name: encode_value(inner, markers) for part, inner in given if not _is_default(part, inner)}]


def _texts() -> Mapping[str, type[Any]]:
    """Return the kinds of text that only values of the user's own have: most configurations have none."""
    from pegboard.config.documents.document import Expanded, YamlWord

    return {"Expanded": Expanded, "YamlWord": YamlWord}


def _type_name(kind: type[Any], known: Mapping[str, type[Any]]) -> str:
    if known.get(kind.__name__) is not kind:
        raise NotCacheableError(kind.__name__)
    return kind.__name__


def _is_default(part: Field[Any], value: Any) -> bool:
    default: object = part.default
    return default is not MISSING and type(value) is type(default) and value == default


def _encoded_mapping(value: Mapping[str, Any], markers: Sequence[str] | None) -> dict[str, Any]:
    for key, inner in value.items():
        if markers is not None and _is_data(inner) and _is_secret_key(key) and not _is_from_environment(inner, markers):
            raise NotCacheableError(key)
    return {str(key): encode_value(inner, markers) for key, inner in value.items()}


def _is_secret_key(key: str) -> bool:
    """Return whether the values of a key are secrets."""
    return mask_overrides({key: "value"}, _NOBODY, frozenset())[key] == MASK


def _is_data(value: Any) -> bool:
    """Return whether a value was written by the user as it is; a record says itself what in it is secret."""
    return bool(value) and not isinstance(value, bool) and isinstance(value, str | int | float | dict | list)


def _is_from_environment(value: Any, markers: Sequence[str]) -> bool:
    """Return whether every text in a value comes from the environment, or is read when its server starts."""
    if isinstance(value, dict):
        return all(_is_from_environment(inner, markers) for inner in cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return all(_is_from_environment(inner, markers) for inner in cast("list[Any]", value))
    return isinstance(value, str) and (any(marker in value for marker in markers) or refers(value))


def _refuse_userinfo(text: str, markers: Sequence[str] | None) -> None:
    """Refuse a password in a URL, unless it comes from the environment."""
    if (
        markers is not None
        and "://" in text
        and any(not _is_from_environment(found, markers) for found in _USERINFO.findall(text))
    ):
        raise NotCacheableError("userinfo")


def decode_value(value: Any, texts: Mapping[str, str]) -> Any:
    """Return the value that was encoded; ``texts`` stand for the markers of variables.

    What was never encoded raises ``ValueError``, ``TypeError``, ``KeyError`` or ``AttributeError``.
    """
    if isinstance(value, str):
        return _fill_markers(value, texts)
    if not isinstance(value, list):
        return value
    name, *rest = cast("list[Any]", value)
    match name:
        case "tuple":
            return tuple([decode_value(item, texts) for item in rest])
        case "list":
            return [decode_value(item, texts) for item in rest]
        case "frozenset":
            return frozenset([decode_value(item, texts) for item in rest])
        case "Path":
            return Path(_fill_markers(rest[0], texts))
        case "Expanded" | "YamlWord":
            return _texts()[name](_fill_markers(rest[0], texts))
        case _:
            inner = {key: decode_value(item, texts) for key, item in rest[0].items()}
            return inner if name == "dict" else Frozen(inner) if name == "Frozen" else _RECORD_NAMES[name](**inner)


def _fill_markers(text: str, texts: Mapping[str, str]) -> str:
    for marker, value in texts.items():
        if marker in text:
            text = text.replace(marker, value)
    return text
