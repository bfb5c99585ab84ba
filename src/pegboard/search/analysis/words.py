"""The words of a text: names taken apart, and scripts without spaces cut into overlapping pairs."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

LONGEST: Final = 40
"""Longer words are cut."""

_NAME: Final = re.compile(
    r"[A-Za-z]{1,3}[0-9]{1,20}(?![a-z0-9])|[A-Z]{1,40}(?![a-z])|[A-Z]?[a-z]{1,40}|[0-9]{1,40}",
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|[\n\r]+|(?<=[。！？；।។။])")
_PIECE: Final = re.compile("[\0\1]?[^\0\1]+")
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAADF),
    (0xAC00, 0xD7AF),  # Hangul: words carry particles
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_LATER_SCRIPTS: Final = "\u0590"
"""Before it stand the alphabets whose accents can be left away."""


class _Classes(dict[int, str]):
    """What a character becomes before a text is split: itself, a space, or itself behind a mark.

    NUL stands before each letter of a script without spaces, SOH before what belongs to the letter before it.
    """

    def __missing__(self, point: int) -> str:
        self[point] = made = _class_of(point)
        return made


def _class_of(point: int) -> str:
    letter = chr(point)
    kind = unicodedata.category(letter)[0]
    unspaced = any(first <= point <= last for first, last in _UNSPACED)
    if kind == "M":
        return f"\1{letter}" if unspaced else letter
    if kind == "L" and unspaced:
        return f"\0{letter}"
    return letter if kind == "L" or unicodedata.category(letter) == "Nd" else " "


_CLASSES: Final = _Classes()


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case.

    >>> words("readFile from_disk HTTPServer v2 S3Bucket")
    ['read', 'file', 'from', 'disk', 'http', 'server', 'v2', 's3', 'bucket']
    >>> words("文件搜索 café")
    ['文件', '件搜', '搜索', 'cafe']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_CLASSES)
        if not text.isascii() or "\0" in text:
            return [word for token in text.split() for word in _mixed(token)]
    return [word.lower() for word in _NAME.findall(text)]


def _mixed(token: str) -> list[str]:
    """Return the words of a token with letters beyond ASCII."""
    found: list[str] = []
    run: list[str] = []
    for piece in _PIECE.findall(token):
        if piece[0] == "\0":
            run.append(piece[1])
            rest = piece[2:]
        elif piece[0] == "\1":
            if run:
                run[-1] += piece[1]
            rest = piece[2:]
        else:
            rest = piece
        if rest:
            found += _pairs(run) + _folded(rest)
            run = []
    return found + _pairs(run)


def _pairs(run: list[str]) -> list[str]:
    """Return letters as overlapping pairs; one alone stays alone."""
    return [first + second for first, second in pairwise(run)] or run


def _folded(word: str) -> list[str]:
    """Return a word in lower case; in Latin, Greek and Cyrillic without accents."""
    if word.isascii():
        return [part.lower() for part in _NAME.findall(word)]
    folded = word.casefold()
    if max(folded) < _LATER_SCRIPTS:
        folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return [folded[:LONGEST]]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without what is empty.

    >>> sentences("Lists files. Takes v1.2 paths!")
    ['Lists files.', 'Takes v1.2 paths!']
    """
    return [part for sentence in _SENTENCE.split(text) if (part := sentence.strip())]
