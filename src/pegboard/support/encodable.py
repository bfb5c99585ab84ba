"""Text as UTF-8 can carry it: half of a character, as broken file names and scraped pages have, becomes U+FFFD."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    try:
        return cast("T", _encodable(value))
    except RecursionError:  # a value of such a depth cannot be written as JSON either
        return value


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, Mapping):
        known = cast("Mapping[Any, Any]", value)
        made = {_encodable(key): _encodable(one) for key, one in known.items()}
        pairs = zip(made.items(), known.items(), strict=False)
        same = all(key is known_key and part is known_part for (key, part), (known_key, known_part) in pairs)
        return value if same and len(made) == len(known) else made
    if isinstance(value, list | tuple):
        parts = cast("list[Any] | tuple[Any, ...]", value)
        found = [_encodable(part) for part in parts]
        if all(new is old for new, old in zip(found, parts, strict=True)):
            return parts
        return found if isinstance(value, list) else tuple(found)
    return value
