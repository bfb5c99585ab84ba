"""What scores are made of, so that a person understands why something is found: asked for by operators only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import FieldShare, MatchedWord, ScorePart, TextField
from pegboard.search.analysis.words import STOP_WORDS, words
from pegboard.search.documents import field_texts
from pegboard.search.index import Index, document_key
from pegboard.search.index_segment import SENTENCES, Flags, field_weights
from pegboard.search.queries import ParsedQuery, QueryWord, Term
from pegboard.search.scores import (
    BEST_SENTENCE,
    HIGHEST,
    MOST,
    NAME_COVERAGE,
    READ_AGAINST,
    WHOLE,
    LexicalScores,
    Shares,
)
from pegboard.search.vocabulary import Vocabulary

KEPT: Final = 500
"""So many readings are kept, about 3 MiB."""

NAMED: Final = (ScorePart(kind="name", value=1.0),)
"""What the score of an exact name is made of."""

_OF_TOOL: Final[Sequence[TextField]] = (
    "name", "description", "description", "parameters", "parameters", "plugin", "plugin", "examples",
)  # fmt: skip
_OF_GROUP: Final[Sequence[TextField]] = (
    "name", "description", "description", "members", "tools", "plugin", "plugin", "examples",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredQuery:
    """One query, and how well the rows of an index answer it.

    Attributes:
        query: the query as the index understands it.
        asked: which word of it each of its words stands for.
        lexical: how well each row answers in words.
        index: what may be found.
        read: what its documents say, where they were looked at before.
        reads: whether the query is a request to read, so that what writes counts less.
    """

    query: ParsedQuery
    asked: Mapping[int, QueryWord]
    lexical: LexicalScores
    index: Index
    read: KeptDocumentWords
    reads: bool


def rows_of(found: Sequence[Tool | Group], index: Index, likely: Sequence[int]) -> list[int | None]:
    """Return the row of each document, None of one that the index has not.

    Args:
        found: The documents.
        index: What may be found.
        likely: Where they stand, if that is known: then nothing else is looked at.
    """
    rows = {id(index.documents[row]): row for row in likely}
    if not rows.keys() >= set(map(id, found)):
        wanted = set(map(id, found))
        rows = {id(document): row for row, document in enumerate(index.documents) if id(document) in wanted}
    return [rows.get(id(document)) for document in found]


def rows_among(these: Searchable, index: Index) -> Flags:
    """Return which rows of an index are among others: its tools as they are, its groups by kind and name."""
    tools = set(map(id, these.tools))
    groups = {(group.kind, group.name) for group in these.groups}
    return np.fromiter(
        (
            id(document) in tools if isinstance(document, Tool) else (document.kind, document.name) in groups
            for document in index.documents
        ),
        dtype=np.bool_,
        count=index.size,
    )


def parts_of(scored: ScoredQuery, row: int, shares: Shares) -> tuple[ScorePart, ...]:
    """Return the parts of the score of a row, the greatest first; they add up to it, but for its rounding.

    Args:
        scored: The query, and how well the rows answer it.
        row: Which of them.
        shares: What words, meaning and past use count in its score.
    """
    lexical = scored.lexical
    if row in lexical.exact:
        return NAMED
    unit = shares.words / HIGHEST
    matched = _matched_words(scored, row, unit)
    by_words = sum(word.value for word in matched)
    named = by_words * NAME_COVERAGE * float(lexical.coverage[row])
    parts = [
        ScorePart(kind="words", value=by_words, words=matched),
        ScorePart(kind="named", value=named),
        ScorePart(kind="plugin", value=unit * float(lexical.scores[row]) - by_words - named),
        ScorePart(kind="meaning", value=shares.meaning / HIGHEST),
        ScorePart(kind="used", value=shares.used / HIGHEST),
    ]
    writes = (READ_AGAINST - 1) * sum(part.value for part in parts)
    if scored.reads and scored.index.effects[row] < 0:
        parts.append(ScorePart(kind="writes", value=writes))
    most = MOST - sum(part.value for part in parts)
    parts.append(ScorePart(kind="limit", value=min(0.0, most)))
    counting = (part for part in parts if abs(part.value) > _NOTHING)
    return tuple(sorted(counting, key=lambda part: -part.value))


_NOTHING: Final = 1e-6
"""A part that is no greater comes of rounding."""


def _matched_words(scored: ScoredQuery, row: int, unit: float) -> tuple[MatchedWord, ...]:
    """Return the words of a row that answer the query, what counts most first; a point counts ``unit``."""
    index = scored.index
    document, plugin_text, _ = index.entries[document_key(index.documents[row])]
    read = scored.read.words_of(document, plugin_text, index.vocabulary)
    values: dict[int, float] = {}
    for number, value in _count_words(scored, row):
        root = index.vocabulary.stem(number)
        values[root] = values.get(root, 0.0) + unit * value
    kinds = _OF_TOOL if isinstance(document, Tool) else _OF_GROUP
    found = (_matched_word(scored, read, root, value, kinds) for root, value in values.items())
    return tuple(sorted(found, key=lambda word: -word.value))


def _matched_word(
    scored: ScoredQuery, read: DocumentWords, root: int, value: float, kinds: Sequence[TextField]
) -> MatchedWord:
    asked = scored.asked.get(root) or QueryWord(read.words[root], before=False)
    total = sum(read.weights[root].values())
    by_field: dict[TextField, float] = {}
    for number, weight in read.weights[root].items():
        by_field[kinds[number]] = by_field.get(kinds[number], 0.0) + value * weight / total
    shares = sorted(by_field.items(), key=lambda pair: -pair[1])
    return MatchedWord(
        word=read.words[root],
        asked=asked.word,
        value=value,
        fields=tuple(FieldShare(field=name, value=share) for name, share in shares),
        before=asked.before,
    )


def _count_words(scored: ScoredQuery, row: int) -> Iterator[tuple[int, float]]:
    """Yield the words of the query that a row has, with what each counts: as :func:`lexical_scores` adds them up."""
    index, query = scored.index, scored.query
    block, position = index.entries[document_key(index.documents[row])][2]
    first, last = block.terms.starts[position], block.terms.starts[position + 1]
    numbers, impacts = block.terms.numbers[first:last], block.impacts[first:last]
    counting: list[tuple[Term, float]] = []
    for term in query.terms:
        place = int(np.searchsorted(numbers, term.number))
        if place < len(numbers) and numbers[place] == term.number:
            counting.append((term, float(impacts[place] * term.weight)))
    best = [
        (sum(value for term, value in counting if number in term.sentences) / mass, number, mass)
        for number, mass in enumerate(query.sentences)
        if mass
    ]
    _, sentence, mass = max(best, default=(0.0, -1, 1.0))
    whole = WHOLE if query.sentences else 1.0
    for term, value in counting:
        of_sentence = BEST_SENTENCE * value / mass if sentence in term.sentences else 0.0
        yield term.number, whole * value / query.mass + of_sentence


class DocumentWords:
    """What the words of a document weigh in each of its fields, by the number of their stem."""

    __slots__ = ("document", "plugin_text", "weights", "words")

    def __init__(self, document: Tool | Group, plugin_text: str, vocabulary: Vocabulary) -> None:
        """Read a document as an index does (:func:`pegboard.search.index_segment.read_block`)."""
        self.document, self.plugin_text = document, plugin_text
        self.weights: dict[int, dict[int, float]] = {}
        self.words: dict[int, str] = {}
        kept = [
            [word for word in words(text) if not (SENTENCES[number] and word in STOP_WORDS)]
            for number, text in enumerate(field_texts(document, plugin_text))
        ]
        weights = field_weights(np.array([len(found) for found in kept])).tolist()
        for number, found in enumerate(kept):
            for word in found:
                known = vocabulary.number_of(word)
                if known is not None:
                    root = vocabulary.stem(known)
                    self.words.setdefault(root, word)
                    by_field = self.weights.setdefault(root, {})
                    by_field[number] = by_field.get(number, 0.0) + weights[number]


class KeptDocumentWords:
    """The newest readings: the person who types sees mostly the same answers again."""

    def __init__(self) -> None:
        self._known: dict[int, DocumentWords] = {}

    def words_of(self, document: Tool | Group, plugin_text: str, vocabulary: Vocabulary) -> DocumentWords:
        """Return the reading of a document."""
        known = self._known.get(id(document))
        if known is None or known.document is not document or known.plugin_text != plugin_text:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[id(document)] = DocumentWords(document, plugin_text, vocabulary)
        return known
