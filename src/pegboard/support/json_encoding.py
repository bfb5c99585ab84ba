"""JSON of many small values, by an encoder of the standard library that is set up once."""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable
from typing import Any


def encoding_by(encoder: json.JSONEncoder) -> Callable[[Any], str]:
    """Return what encodes as an encoder without indentation does; ``encode`` sets itself up anew for each value.

    What contains itself is a ``RecursionError`` here, and no ``ValueError``.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    written = json.encoder.encode_basestring_ascii if encoder.ensure_ascii else json.encoder.encode_basestring
    try:
        pieces: Callable[[Any, int], tuple[str, ...]] = make(
            None, encoder.default, written, None, encoder.key_separator, encoder.item_separator, encoder.sort_keys,
            encoder.skipkeys, encoder.allow_nan,
        )  # fmt: skip
    except TypeError:  # there is none, or that of another interpreter
        return encoder.encode
    return lambda value: "".join(pieces(value, 0))
