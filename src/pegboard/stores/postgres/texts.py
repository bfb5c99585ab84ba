"""How texts stand in the database, which holds neither NUL nor lone surrogates, and how keys of any length do."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_ESCAPE: Final = "\x1a"
_ESCAPED: Final = re.compile("[\0\x1a\ud800-\udfff]")
_WRITTEN: Final = re.compile("\x1a([0-9a-f]{4})")
_DIGEST: Final = 16


def to_column(text: str) -> str:
    r"""Return the text as it is stored: what the database cannot hold is written as its number.

    A text always has the same form, so equality in SQL is equality of the texts.

    >>> to_column("a\0"), to_column("a") == "a"
    ('a\x1a0000', True)
    """
    if text.isascii() and "\0" not in text and _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", text)


def from_column(value: str) -> str:
    r"""Return the text that :func:`to_column` was given.

    >>> from_column(to_column("a\0\x1ab"))
    'a\x00\x1ab'
    """
    if _ESCAPE not in value:
        return value
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), value)


def key_of(*parts: str | int) -> bytes:
    """Return a key of 16 bytes that stands for texts of any length: an index holds none of 10,000 characters.

    >>> key_of("a", "bc") != key_of("ab", "c")
    True
    """
    digest = blake2b(digest_size=_DIGEST)
    for part in parts:
        text = str(part).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text))
        digest.update(text)
    return digest.digest()
