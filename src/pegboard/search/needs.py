"""What is needed, as weighted words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pegboard.search.analysis.literals import KIND_WEIGHT, VALUE_WEIGHT, parted
from pegboard.search.analysis.stop_words import STOP_WORDS
from pegboard.search.analysis.words import sentences, words
from pegboard.search.index import Index

BEGINNING, END = 3_000, 1_000
"""So many characters of a long text are read."""
MOST_SENTENCES: Final = 8
CORRECTED: Final = 0.8
"""How much a corrected word counts."""
SHORT: Final = 8
"""With fewer words that say something, what was said before counts more."""
LEAST_HISTORY: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedWord:
    """A word of a need.

    Attributes:
        text: the word.
        count: how often it stands there, values and kinds of values counting less.
        sentences: in which sentences.
    """

    text: str
    count: float
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word or stem that stands in what may be found, and how much it counts in a need."""

    number: int
    weight: float
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A need as an index understands it.

    Attributes:
        text: what was asked.
        terms: its words and stems that are known.
        stems: the stems alone, each with its idf, for what a name covers.
        mass: what a document could reach at most: the weights of all its words, known or not.
        known: the part of it that is of known words.
        sentences: the mass of each sentence, where there is more than one.
    """

    text: str
    terms: tuple[Term, ...]
    stems: tuple[int, ...]
    mass: float
    known: float
    sentences: tuple[float, ...] = ()


def shortened(text: str) -> str:
    """Return a text of at most 4,000 characters: its beginning and its end."""
    return text if len(text) <= BEGINNING + END else f"{text[:BEGINNING]} {text[-END:]}"


def words_of(text: str) -> list[WeightedWord]:
    """Return the words of a text that say something; of one that has none, all its words."""
    found: dict[str, float] = {}
    where: dict[str, list[int]] = {}
    dropped: list[str] = []
    for number, sentence in enumerate(sentences(text)[: 4 * MOST_SENTENCES]):
        rest, values, kinds = parted(sentence)
        weighted = [(word, 1.0) for word in words(rest)]
        weighted += [(word, VALUE_WEIGHT) for value in values for word in words(value)]
        weighted += [(kind, KIND_WEIGHT) for kind in kinds]
        for word, weight in weighted:
            if word in STOP_WORDS:
                dropped.append(word)
                continue
            found[word] = found.get(word, 0.0) + weight
            where.setdefault(word, []).append(number)
    if not found:
        return [WeightedWord(text=word, count=1.0) for word in dict.fromkeys(dropped)]
    return [WeightedWord(text=word, count=count, sentences=tuple(where[word])) for word, count in found.items()]


def history_weight(content: int) -> float:
    """Return how much what was said before counts beside a text with so many words that say something."""
    return LEAST_HISTORY + max(0.0, (SHORT - content) / SHORT)


def with_history(current: list[WeightedWord], messages: Sequence[str]) -> list[WeightedWord]:
    """Return the words of a need with those of the two messages before it, the older one half as heavy."""
    weight = history_weight(len(current))
    merged = {word.text: word for word in current}
    for message, share in zip(reversed(messages[-2:]), (1.0, 0.5), strict=False):
        for word in words_of(shortened(message)):
            known = merged.get(word.text)
            count = weight * share * (1 + math.log(word.count) if word.count > 1 else word.count)
            if known is None:
                merged[word.text] = WeightedWord(text=word.text, count=count)
            else:
                merged[word.text] = WeightedWord(text=word.text, count=known.count + count, sentences=known.sentences)
    return list(merged.values())


def understood(text: str, index: Index, messages: Sequence[str] = ()) -> Need:
    """Return a need as weighted words and stems of an index.

    Args:
        text: What is needed.
        index: What may be found.
        messages: What was said before, the newest last.
    """
    said = words_of(shortened(text))
    if messages:
        said = with_history(said, messages)
    vocabulary = index.vocabulary
    terms: list[Term] = []
    stems: dict[int, None] = {}
    mass = known = 0.0
    masses: dict[int, float] = {}
    for word in said:
        count = word.count if word.count <= 1 else 1 + math.log(word.count)
        number = vocabulary.known(word.text)
        root = vocabulary.known_stem(word.text) if number is None else vocabulary.stem(number)
        if root is None or not index.frequency(root):
            number = vocabulary.corrected(word.text, index.frequency)
            root = None if number is None else vocabulary.stem(number)
            count *= 1 if number is None else CORRECTED
        exact = index.weight(index.frequency(number)) if number is not None else None
        rough = index.weight(index.frequency(root) if root is not None else 0)
        total = count * ((rough if exact is None else exact) + rough) / 2
        mass += total
        for sentence in set(word.sentences):
            masses[sentence] = masses.get(sentence, 0.0) + total
        if root is None:
            continue
        known += total
        stems[root] = None
        if exact is not None and number is not None and index.frequency(number):
            terms.append(Term(number=number, weight=count * exact / 2, sentences=word.sentences))
        terms.append(Term(number=root, weight=count * rough / 2, sentences=word.sentences))
    return Need(
        text=text,
        terms=tuple(terms),
        stems=tuple(stems),
        mass=mass,
        known=known,
        sentences=tuple(masses.get(n, 0.0) for n in range(max(masses) + 1)) if len(masses) > 1 else (),
    )
