"""The stem that the forms of an English word share: light, without a dictionary."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_PLURAL: Final = ("s", "ss", "us", "is")
_ENDINGS: Final = (
    ("ization", 2), ("isation", 2), ("ation", 4), ("ition", 3), ("ion", 3), ("ing", 2), ("ment", 3), ("ator", 4),
    ("er", 3), ("or", 3), ("edly", 2), ("ed", 2), ("ly", 3), ("ate", 4), ("able", 3), ("ive", 3), ("e", 2),
)  # fmt: skip
_VOWEL: Final = re.compile("[aeiouy]")
_DOUBLE: Final = frozenset("bdfgmnprt")


def singular(word: str) -> str:
    """Return the singular of an English word, as far as its ending tells.

    >>> [singular(word) for word in ("queries", "boxes", "files", "status", "address")]
    ['query', 'box', 'file', 'status', 'address']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(_PLURAL[1:]):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return what the forms of a word share.

    >>> sorted({stem(word) for word in ("create", "creates", "created", "creating", "creation")})
    ['creat']
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    root = singular(word)
    for ending, least in _ENDINGS:
        rest = root[: -len(ending)]
        if root.endswith(ending) and len(rest) >= least and _VOWEL.search(rest):
            root = rest
            break
    if len(root) > 3 and root[-1] == root[-2] and root[-1] in _DOUBLE:
        root = root[:-1]
    if len(root) > 5 and root.endswith("at"):
        root = root[:-2]
    return root[:-1] + "i" if len(root) > 3 and root.endswith("y") else root
