"""Text that people decide by, with every character made visible that hides or turns others around."""

from __future__ import annotations

import unicodedata
from typing import Final

_DIRECTIONS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_KEPT: Final = frozenset("\n\t")


def visible(text: str) -> str:
    r"""Return a text as it can be read.

    >>> visible("safe\u202egpj.exe")
    'safe<U+202E>gpj.exe'
    """
    if text.isprintable() and _DIRECTIONS.isdisjoint(text):
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in _KEPT or (character.isprintable() and character not in _DIRECTIONS):
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return f"<U+{ord(character):04X}>"
