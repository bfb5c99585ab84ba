"""Texts as UTF-8 can carry them: half of a character becomes U+FFFD; and JSON of many small values, made quickly."""

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
_HALVES: Final = re.compile("[\ud800-\udfff]+")


def encodable_text(text: str) -> str:
    r"""Return a text of the same length that UTF-8 can carry.

    >>> encodable_text("report\udc97.txt")
    'report\ufffd.txt'
    """
    if text.isascii() or _HALVES.search(text) is None:
        return text
    return _HALVES.sub(lambda halves: "\ufffd" * len(halves.group()), text)


def encodable(value: T) -> T:
    """Return a value of JSON with each text of it as UTF-8 can carry it: the same one where all of it can be."""
    if type(value) is str:
        return cast("T", encodable_text(value))
    try:
        return value if _is_encodable(value) else cast("T", _encodable(value))
    except RecursionError:  # a value of such a depth cannot be written as JSON either
        return value


def _is_encodable(value: Any) -> bool:
    """Return whether UTF-8 can carry each text of a value; most can, so this comes before anything is copied."""
    if isinstance(value, str):
        return value.isascii() or _HALVES.search(value) is None
    if isinstance(value, (list, tuple)):
        parts = value
    elif isinstance(value, (dict, Mapping)):  # a dict is told in a tenth of the time
        parts = (*value, *value.values())
    else:
        return True
    for part in parts:  # noqa: SIM110 - a generator takes twice the time
        if not (type(part) is str and part.isascii()) and not _is_encodable(part):
            return False
    return True


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, Mapping):
        known = cast("Mapping[Any, Any]", value)
        return {_encodable(key): _encodable(part) for key, part in known.items()}
    if isinstance(value, list | tuple):
        parts = [_encodable(part) for part in cast("list[Any] | tuple[Any, ...]", value)]
        return parts if isinstance(value, list) else tuple(parts)
    return value


Pieces = Callable[[Any, int], Iterable[str]]
"""Gives the pieces of a value's JSON, to be joined; the number is 0."""


def pieces_by(encoder: json.JSONEncoder) -> Pieces:
    """Return what writes as an encoder without indentation does; ``encode`` sets itself up again for each value.

    What contains itself is a ``RecursionError`` here, and no ``ValueError``.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    written = json.encoder.encode_basestring_ascii if encoder.ensure_ascii else json.encoder.encode_basestring
    try:
        pieces: Pieces = make(
            None, encoder.default, written, None, encoder.key_separator, encoder.item_separator, encoder.sort_keys,
            encoder.skipkeys, encoder.allow_nan,
        )  # fmt: skip
    except TypeError:  # there is none, or that of another interpreter
        return lambda value, _: (encoder.encode(value),)
    return pieces
