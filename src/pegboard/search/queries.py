"""What is searched for, as weighted words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from pegboard.search.analysis.everyday import meant_words
from pegboard.search.analysis.synonyms import SYNONYMS
from pegboard.search.analysis.words import (
    KIND_OF_WORD,
    KIND_WEIGHT,
    STOP_WORDS,
    VALUE_WEIGHT,
    sentences,
    split_values,
    stem,
    words,
)
from pegboard.search.index import Index

BEGINNING, END = 3_000, 1_000
"""So many characters of a long text are read."""
MOST_SENTENCES: Final = 8
CORRECTED: Final = 0.8
"""How much a corrected word counts."""
SHORT: Final = 8
"""With fewer words that say something, what was said before counts more."""
LEAST_HISTORY: Final = 0.1
SYNONYM: Final = 0.6
"""How much a word counts that may stand for one of the query."""
EVERYDAY: Final = 0.7
"""How much a word of tools counts that an everyday word stands for."""
LACKING: Final = 1.6
"""How much more a synonym counts of a word that nothing has."""
RELATED: Final = 0.6
"""How much a word counts that begins like one that nothing has."""
RARE: Final = 4
"""A synonym counts only where it is in at most one of so many documents."""
NAMED: Final = 0.15

_PROPER: Final = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+\b")


@dataclass(slots=True, kw_only=True)
class WeightedWord:
    """A word of a query.

    Attributes:
        count: how often it is there, values and kinds of values counting less.
        proper: whether it looks like someone's or something's name.
        sentences: in which sentences.
    """

    count: float = 0.0
    proper: bool = False
    sentences: dict[int, None] = field(default_factory=dict[int, None])


WeightedWords: TypeAlias = dict[str, WeightedWord]


class Term(NamedTuple):
    """A word or stem that is in what may be found, and how much it counts in a query."""

    number: int
    weight: float
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A query as an index understands it.

    Attributes:
        text: what was asked.
        terms: its words and stems that are known.
        stems: the stems alone, each with its idf, for what a name covers.
        mass: what a document could reach at most: the weights of all its words, known or not.
        known: the part of it that is of known words.
        sentences: the mass of each sentence, where there is more than one.
        meant: words of tools that its everyday words mean, of which the index has the stem.
    """

    text: str
    terms: tuple[Term, ...]
    stems: tuple[int, ...]
    mass: float
    known: float
    sentences: tuple[float, ...] = ()
    meant: tuple[str, ...] = ()


def head_and_tail(text: str) -> str:
    """Return a text of at most 4,000 characters: its beginning and its end."""
    return text if len(text) <= BEGINNING + END else f"{text[:BEGINNING]} {text[-END:]}"


def weighted_words(text: str) -> WeightedWords:
    """Return the words of a text that say something; of one that has none, all its words."""
    found: WeightedWords = {}
    dropped: dict[str, None] = {}
    for number, sentence in enumerate(sentences(text)[:MOST_SENTENCES]):
        rest, values, kinds = split_values(sentence)
        plain = words(rest)
        weighted = [(word, 1.0) for word in plain]
        weighted += [(word, VALUE_WEIGHT) for value in values for word in words(value)]
        named = {KIND_OF_WORD[word] for word in plain if word in KIND_OF_WORD}
        weighted += [(kind, KIND_WEIGHT) for kind in sorted({*kinds, *named})]
        for word, weight in weighted:
            if word in STOP_WORDS:
                dropped[word] = None
                continue
            entry = found.get(word)
            if entry is None:
                entry = found[word] = WeightedWord()
            entry.count += weight
            entry.sentences[number] = None
        for name in _PROPER.findall(rest):
            if (entry := found.get(name.lower())) is not None:
                entry.proper = True
    return found or {word: WeightedWord(count=1.0, sentences={0: None}) for word in dropped}


def history_weight(content: int) -> float:
    """Return how much what was said before counts beside a text with so many words that say something."""
    return LEAST_HISTORY + max(0.0, (SHORT - content) / SHORT)


def _with_history(current: WeightedWords, messages: Sequence[str]) -> WeightedWords:
    """Return the words of a query with those of the two messages before it, the older one half as heavy."""
    weight = history_weight(len(current))
    for message, share in zip(reversed(messages[-2:]), (1.0, 0.5), strict=False):
        for word, earlier in weighted_words(head_and_tail(message)).items():
            entry = current.setdefault(word, WeightedWord())
            entry.count += weight * share * _dampen_count(earlier.count)
    return current


def _dampen_count(count: float) -> float:
    return 1 + math.log(count) if count > 1 else count


def parse_query(text: str, index: Index, messages: Sequence[str] = ()) -> ParsedQuery:
    """Return a query as weighted words and stems of an index.

    Args:
        text: What is searched for.
        index: What may be found.
        messages: What was said before, the newest last.
    """
    reading = _QueryReader(index)
    for word, entry in _words_of(text, messages).items():
        reading.add(word, entry)
    reading.mean(meant_words(head_and_tail(text)))
    return reading.query(text)


def _words_of(text: str, messages: Sequence[str]) -> WeightedWords:
    current = weighted_words(head_and_tail(text))
    return _with_history(current, messages) if messages else current


class QueryWord(NamedTuple):
    """A word of a query, and whether it stands only in what was said before."""

    word: str
    before: bool


def query_words(text: str, index: Index, messages: Sequence[str] = ()) -> dict[int, QueryWord]:
    """Return for each word and stem of a query as an index understands it the word that was asked: itself, or another.

    Args:
        text: What is searched for.
        index: What may be found.
        messages: What was said before, the newest last.
    """
    now = weighted_words(head_and_tail(text))
    found: dict[int, QueryWord] = {}
    instead: dict[int, QueryWord] = {}
    for word, entry in _words_of(text, messages).items():
        reading, asked = _QueryReader(index), QueryWord(word, word not in now)
        reading.add(word, entry)
        query = reading.query(word)
        for term in query.terms:
            (found if term.number in query.stems or term.sentences else instead).setdefault(term.number, asked)
    return instead | found


class _QueryReader:
    """The words of a query so far, as an index knows them."""

    def __init__(self, index: Index) -> None:
        self._index, self._vocabulary = index, index.vocabulary
        self._terms: list[Term] = []
        self._stems: dict[int, None] = {}
        self._related: dict[int, float] = {}
        self._meant: dict[str, tuple[float, float]] = {}
        self._masses: dict[int, float] = {}
        self._everyday: dict[int, float] = {}
        self._tool_words: list[str] = []
        self._mass = self._known = 0.0
        self._proper = False

    def add(self, word: str, entry: WeightedWord) -> None:
        """Add a word and its stem; a word that the index lacks by the one it was probably meant to be."""
        index, vocabulary = self._index, self._vocabulary
        count = _dampen_count(entry.count)
        number = vocabulary.number_of(word)
        root = vocabulary.known_stem(word) if number is None else vocabulary.stem(number)
        frequency = 0 if root is None else index.frequency(root)
        if not frequency:
            number = vocabulary.correct_word(word, index.frequency)
            if number is None:
                self._proper = self._proper or entry.proper
                self._add_related(word, count)
                self._meant[stem(word)] = (LACKING * count, index.unknown)
            else:
                count, root = count * CORRECTED, vocabulary.stem(number)
                frequency = index.frequency(root)
        often = 0 if number is None else index.frequency(number)
        rough = index.weight(root)
        exact = index.weight(number)
        weight = count * (exact + rough) / 2 if often else count * rough
        self._mass += weight
        for sentence in entry.sentences:
            self._masses[sentence] = self._masses.get(sentence, 0.0) + weight
        if root is None or not frequency:
            return
        self._known += weight
        self._stems[root] = None
        self._meant[vocabulary.word(root)[1:]] = (count, rough)
        where = tuple(entry.sentences)
        if often == frequency:
            self._terms.append(Term(root, weight, where))
            return
        if often and number is not None:
            self._terms.append(Term(number, count * exact / 2, where))
        self._terms.append(Term(root, count * rough / 2, where))

    def _add_related(self, word: str, count: float) -> None:
        """Add the stems of words that begin like a word that the index lacks."""
        for root in self._vocabulary.related_stems(word, self._index.frequency):
            self._related[root] = max(self._related.get(root, 0.0), RELATED * count * self._index.weight(root) / 2)

    def mean(self, meant: Mapping[str, float]) -> None:
        """Add the words of tools that the everyday words of the query stand for."""
        for word, share in meant.items():
            root = self._vocabulary.known_stem(word)
            if root is not None and self._index.frequency(root):
                self._tool_words.append(word)
                self._everyday[root] = max(self._everyday.get(root, 0.0), EVERYDAY * share * self._index.weight(root))

    def query(self, text: str) -> ParsedQuery:
        """Return the query of all words, with words that may stand for them."""
        return ParsedQuery(
            text=text,
            terms=(
                *self._terms,
                *self._neighbouring_terms(),
                *self._names(),
                *map(Term, self._everyday, self._everyday.values()),
            ),
            stems=tuple({**self._stems, **dict.fromkeys(self._related)}),
            mass=self._mass,
            known=self._known,
            sentences=tuple(self._masses.get(n, 0.0) for n in range(max(self._masses) + 1))
            if len(self._masses) > 1
            else (),
            meant=tuple(self._tool_words),
        )

    def _neighbouring_terms(self) -> list[Term]:
        """Return stems that may stand for those of the query; what stands everywhere tells nothing."""
        index, vocabulary = self._index, self._vocabulary
        most = index.size // RARE + 1
        added = {root: weight for root, weight in self._related.items() if root not in self._stems}
        for root, (count, least) in self._meant.items():
            for other in SYNONYMS.get(root, ()):
                number = vocabulary.known_root(other)
                often = 0 if number is None else index.frequency(number)
                if number is not None and number not in self._stems and 0 < often <= most:
                    weight = SYNONYM * count * min(index.weight(number), least) / 2
                    added[number] = max(added.get(number, 0.0), weight)
        return [Term(number, weight) for number, weight in added.items()]

    def _names(self) -> list[Term]:
        """Return the word for names, where the query has a name that the index does not know."""
        root = self._vocabulary.known_stem("name") if self._proper else None
        if root is None or root in self._stems or not self._index.frequency(root):
            return []
        return [Term(root, NAMED * self._index.weight(root))]
