"""What tells one tool from others: the sentence with words of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pegboard.core.model.naming import one_line

SENTENCE_CHARACTERS: Final = 60
"""How long a sentence in an answer is at most."""
_READ_CHARACTERS: Final = 4_000
"""How much of a description is read for sentences."""
_AS_DISTINCT: Final = 0.5
"""How much of the most distinct sentence's share of own words an earlier one needs to be preferred."""

_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_WORD: Final = re.compile(r"\w+")


def distinct_sentences(descriptions: Sequence[str]) -> tuple[str, ...]:
    """Return of each description the first sentence with words that the other descriptions lack, on one line.

    Where no sentence has any, it is the first one.

    >>> distinct_sentences(["Part of the bank. Opens an account.", "Part of the bank. Closes an account."])
    ('Opens an account.', 'Closes an account.')
    >>> distinct_sentences(["List files. Use with care.", "Read a file. Use with care."])
    ('List files.', 'Read a file.')
    """
    parted = [_sentences(text) for text in descriptions]
    words = [[frozenset(_words(sentence)) for sentence in sentences] for sentences in parted]
    times = Counter(word for of_one in words for word in frozenset[str]().union(*of_one))
    return tuple(_most_distinct(sentences, sets, times) for sentences, sets in zip(parted, words, strict=True))


def _most_distinct(sentences: list[str], words: list[frozenset[str]], times: Mapping[str, int]) -> str:
    if not sentences:
        return ""
    shares = [sum(times[word] == 1 for word in own) / max(len(own), 1) for own in words]
    enough = max(shares) * _AS_DISTINCT
    chosen = next(place for place, share in enumerate(shares) if share >= enough)
    sentence = sentences[chosen]
    return sentence if len(sentence) <= SENTENCE_CHARACTERS else one_line(sentence, limit=SENTENCE_CHARACTERS)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.split(one_line(text[:_READ_CHARACTERS])) if part]


def _words(text: str) -> Iterator[str]:
    return (found.group().casefold() for found in _WORD.finditer(text))
