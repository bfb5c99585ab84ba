"""What tells one tool from others: the sentence with words of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pegboard.core.model.naming import one_line, sentences, words_of

SENTENCE_CHARACTERS: Final = 60
"""How long a sentence in an answer is at most."""
_READ_CHARACTERS: Final = 4_000
"""How much of a description is read for sentences."""
_AS_DISTINCT: Final = 0.5
"""How much of the most distinct sentence's share of own words an earlier one needs to be preferred."""


def distinct_sentences(descriptions: Sequence[str]) -> tuple[str, ...]:
    """Return of each description the first sentence with words that the other descriptions lack, on one line.

    Where no sentence has any, it is the first one.

    >>> distinct_sentences(["Part of the bank. Opens an account.", "Part of the bank. Closes an account."])
    ('Opens an account.', 'Closes an account.')
    >>> distinct_sentences(["List files. Use with care.", "Read a file. Use with care."])
    ('List files.', 'Read a file.')
    """
    split = [sentences(text[:_READ_CHARACTERS]) for text in descriptions]
    words = [[frozenset(words_of(sentence)) for sentence in of_one] for of_one in split]
    times = Counter(word for of_one in words for word in frozenset[str]().union(*of_one))
    return tuple(_most_distinct(of_one, sets, times) for of_one, sets in zip(split, words, strict=True))


def _most_distinct(split: list[str], words: list[frozenset[str]], times: Mapping[str, int]) -> str:
    if not split:
        return ""
    shares = [sum(times[word] == 1 for word in own) / max(len(own), 1) for own in words]
    enough = max(shares) * _AS_DISTINCT
    chosen = next(place for place, share in enumerate(shares) if share >= enough)
    sentence = split[chosen]
    return sentence if len(sentence) <= SENTENCE_CHARACTERS else one_line(sentence, limit=SENTENCE_CHARACTERS)
