"""JSON that pydantic's reader and writer refuse and other languages write: deep, with halves of characters.

This is the one place that bounds how deep a message may be nested.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

DEEPEST: Final = 1000
"""How deep a message may be nested."""
_ROOM: Final = 4 * DEEPEST
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES: Final = re.compile(rf"\\(?:{_PAIR}|u[dD][89a-fA-F]..|.)", re.DOTALL)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]..\Z", re.DOTALL)


class TooDeepError(ValueError):
    """JSON that is nested more than ``DEEPEST`` levels deep."""


def parse_odd_json(data: bytes | bytearray | str) -> Any:
    r"""Return the value of JSON; half of a character, or bytes that are no UTF-8, become U+FFFD.

    Raises ``TooDeepError``, and ``ValueError`` for what is no JSON.

    >>> parse_odd_json(b'{"a": "\\ud83d!", "b": "\\ud83d\\ude00"}')
    {'a': '\ufffd!', 'b': '😀'}
    """
    text = data if isinstance(data, str) else data.decode("utf-8", errors="replace")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(lambda found: "\\ufffd" if _HALF.match(found.group()) else found.group(), text)
    try:
        with _deeper_recursion():
            value: Any = json.loads(text)
    except RecursionError:
        raise TooDeepError from None
    if depth_of(value) > DEEPEST:
        raise TooDeepError
    return value


def write(value: Any) -> bytes:
    """Return a value as JSON of one line, with an escape for all that is not ASCII; raises ``ValueError``."""
    try:
        with _deeper_recursion():
            return json.dumps(value, separators=(",", ":"), default=str).encode()
    except RecursionError:
        raise TooDeepError from None


def depth_of(value: Any) -> int:
    """Return how deep a value of JSON is nested, at most one more than ``DEEPEST``.

    >>> depth_of("flat"), depth_of([]), depth_of({"a": [1]})
    (0, 1, 2)
    """
    level: list[Any] = [value]
    for depth in range(DEEPEST + 1):
        level = [part for one in level if isinstance(one, dict | list | tuple) for part in _parts(one)]
        if not level:
            return depth
    return DEEPEST + 1


def _parts(value: Any) -> list[Any]:
    """Return what is in an object or a list; what is empty has a depth too."""
    found = list(cast("dict[Any, Any]", value).values()) if isinstance(value, dict) else list(cast("list[Any]", value))
    return found or [None]


@contextmanager
def _deeper_recursion() -> Iterator[None]:
    """Let the reader and writer of the standard library go as deep as is allowed."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
