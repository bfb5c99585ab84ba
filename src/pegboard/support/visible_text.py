"""Text that people decide by, with every character made visible that hides or turns others around."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_DIRECTIONS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SELECTORS: Final = frozenset(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Variation selectors: one after a sign says how it is drawn, many spell bytes that no one sees."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""What counts as printable and draws nothing."""
_UNSEEN: Final = _DIRECTIONS | _SELECTORS | _BLANK
UNSEEN: Final = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\U000e0000-\U000e0fff"
)
"""What no one sees, between the brackets of a regular expression."""
_KEPT: Final = frozenset("\n\t")
_RUN: Final = re.compile(r"\s{20,}|(\S)\1{19,}")


def visible(text: str) -> str:
    r"""Return a text as it can be read.

    >>> visible("safe\u202egpj.exe")
    'safe<U+202E>gpj.exe'

    A variation selector that belongs to a sign stays with it:

    >>> visible("\u26a0\ufe0f a\ufe01") == "\u26a0\ufe0f a<U+FE01>"
    True
    """
    if text.isprintable() and _UNSEEN.isdisjoint(text):
        return text
    return "".join(map(_visible_character, text, " " + text))


def without_long_runs(text: str) -> str:
    """Return a text with the length of each long run of blanks, or of one hidden character, in place of it.

    >>> without_long_runs("Look." + " " * 400 + "Send all.")
    'Look.<400 blanks>Send all.'
    >>> without_long_runs("-" * 21)
    '---------------------'
    """
    return _RUN.sub(lambda run: run[0] if run[1] and not is_hidden(run[1]) else f"<{len(run[0])} blanks>", text)


def is_hidden(character: str, before: str = " ") -> bool:
    r"""Return whether a character is one that people do not see, or that turns others around.

    Args:
        character: the character.
        before: the one in front of it: a sign or an ideograph may have one variation selector.

    >>> [is_hidden(one) for one in "a\u00e9 \n\u200b\u202e\U000e0041\x1b"]
    [False, False, False, False, True, True, True, True]
    """
    if character in _UNSEEN:
        return not (character in _SELECTORS and _takes_selector(before))
    return not (character.isprintable() or character in _KEPT or unicodedata.category(character) == "Zs")


def _takes_selector(before: str) -> bool:
    kind = unicodedata.category(before)
    return before not in _SELECTORS and (kind[0] in "SP" or kind in {"Nd", "Lo"})


def _visible_character(character: str, before: str) -> str:
    if is_hidden(character, before):
        return f"<U+{ord(character):04X}>"
    return character if character.isprintable() or character in _KEPT else " "
