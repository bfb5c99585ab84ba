"""JSON of many small values, by an encoder of the standard library that is set up once."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable
from typing import Any

Pieces = Callable[[Any, int], Iterable[str]]
"""Gives the pieces of a value's JSON, to be joined; the number is 0."""


def pieces_by(encoder: json.JSONEncoder) -> Pieces:
    """Return what writes as an encoder without indentation does; ``encode`` sets itself up anew for each value.

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
