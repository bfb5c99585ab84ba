"""The stem that the forms of an English word share: light, without a dictionary."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_SINGULAR: Final = ("ss", "us", "is")
_INFLECTIONS: Final = (("ings", 2), ("ing", 2), ("edly", 2), ("ed", 2))
_DERIVATIONS: Final = (
    ("ization", 2), ("isation", 2), ("ation", 4), ("ition", 3), ("ion", 3), ("ment", 3), ("ator", 4), ("er", 3),
    ("or", 3), ("ly", 3), ("ate", 4), ("able", 3), ("ive", 3), ("e", 2),
)  # fmt: skip
"""Endings, and how many letters have to stand before them."""
_VOWEL: Final = re.compile("[aeiouy]")
_DOUBLE: Final = frozenset("bdfgmnprt")


def singular(word: str) -> str:
    """Return the singular of an English word, as far as its ending tells.

    >>> [singular(word) for word in ("queries", "boxes", "files", "status", "address")]
    ['query', 'box', 'file', 'status', 'address']
    """
    if len(word) < 4 or not word.endswith("s") or word.endswith(_SINGULAR):
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
    >>> sorted({stem(word) for word in ("transfer", "transferred", "transfers", "transferring")})
    ['transf']
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    root = _single(_without(singular(word), _INFLECTIONS))
    root = _single(_without(root, _DERIVATIONS))
    if len(root) > 5 and root.endswith("at"):
        root = root[:-2]
    return root[:-1] + "i" if len(root) > 3 and root.endswith("y") else root


def _without(word: str, endings: tuple[tuple[str, int], ...]) -> str:
    """Return a word without the first of these endings that leaves enough of it."""
    for ending, least in endings:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= least and _VOWEL.search(rest):
            return rest
    return word


def _single(word: str) -> str:
    """Return a word with one letter where its end has two."""
    doubled = len(word) > 3 and word[-1] == word[-2] and (word[-1] in _DOUBLE or (word[-1] == "l" and len(word) > 5))
    return word[:-1] if doubled else word
