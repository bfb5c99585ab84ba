"""What a score is made of (P3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PartKind = Literal["name", "words", "named", "plugin", "meaning", "used", "writes", "limit"]
"""What a part of a score is for: the exact name (then nothing else counts), the words that both have, how much of its
name they are, how well the best tool of its plugin answers, its meaning, what was called after similar needs; and,
below zero, that a tool writes where the need is to read, and what is too much for anything but an exact name."""

TextField = Literal["name", "description", "parameters", "plugin", "members", "tools", "examples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShare:
    """How much of a word's part is in one field of what was found."""

    field: TextField
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedWord:
    """A word of what was found that answers a word of a need.

    Attributes:
        word: as what was found has it.
        asked: the word of the need: the same, another form of it, or one that it may stand for.
        value: its part of the score.
        fields: where it stands, and how much each field adds to its part.
        before: whether the word was not asked for now, but is in what was said before.
    """

    word: str
    asked: str
    value: float
    fields: tuple[FieldShare, ...] = ()
    before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePart:
    """A part of a score, and the words that it is for; all parts of a score add up to it, but for its rounding."""

    kind: PartKind
    value: float
    words: tuple[MatchedWord, ...] = ()
