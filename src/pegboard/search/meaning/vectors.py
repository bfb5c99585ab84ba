"""The vectors of queries, of what may be found and of example requests, kept as long as someone needs them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pegboard.ports import PastUse
from pegboard.search.analysis.words import sentences, split_values
from pegboard.search.documents import FIRST, NAME, PARAMETERS, REST, SearchDocument, examples_of, field_texts
from pegboard.search.index import Index, document_key
from pegboard.search.index_segment import Block, Floats, Segment
from pegboard.search.meaning.word_vectors import STEPS, Steps, WordVectors, in_steps
from pegboard.search.queries import MOST_SENTENCES, head_and_tail, history_weight, weighted_words
from pegboard.search.scores import BackgroundNearness

SAMPLE, OF_LARGE = 96, 24
"""So many rows are looked at to learn how near rows are to each other; fewer where there are many."""
LARGE: Final = 10_000
"""Of how many rows on they are many."""
WORDS: Final = 3
LEAST_SPREAD: Final = 0.04
_STRIDE: Final = 7_919
"""A prime: neighbours in the table are alike."""
VALUES: Final = 0.3
"""How much the values in a query (names, numbers, dates) count beside its words."""
BEFORE: Final = (2.0, 1.0)
"""How much the last message counts beside a query, and the one before it, before their weight by its length."""
LEAST_WORDS: Final = 3
"""A sentence of fewer words has no vector of its own."""
WHOLE: Final = 0.6
SENTENCE: Final = 0.4
"""How much the nearness to a whole query counts, and to its nearest sentence."""
PAST_USE: Final = 0.5
"""How much a tool gains that alone was called after every query like this one; the best row's score counts 1."""
LIKE: Final = 0.2
"""Queries with a lower cosine say nothing about each other."""
DOUBT: Final = 0.5
"""How much speaks against all of them: a single past query that is the same counts two thirds."""
KEPT: Final = 2_000
_CASES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_./:#-]+")

VectorRows = NDArray[np.float32]
Vector = NDArray[np.float32]


class QueryVectors:
    """The vectors of queries; those asked for last are kept."""

    def __init__(self, made: Callable[[str], Vector]) -> None:
        self._made = made
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    def vector(self, text: str) -> Vector:
        """Return the vector of a query by itself, of length one, or zeros where it says nothing."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        made = self._made(text)
        with self._lock:
            self._known[text] = made
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return made

    def in_conversation(self, text: str, messages: Sequence[str]) -> Vector:
        """Return the vector of a query with the two messages before it: the shorter the query, the more they count."""
        found = self.vector(text)
        if not messages:
            return found
        weight = history_weight(len(weighted_words(head_and_tail(text))))
        for message, share in zip(reversed(messages[-len(BEFORE) :]), BEFORE, strict=False):
            found = np.add(found, np.float32(weight * share) * self.vector(message), dtype=np.float32)
        return found

    def sentences(self, text: str) -> list[Vector]:
        """Return the vectors of a query's sentences, where it has more than one that says something."""
        found = [each for each in sentences(head_and_tail(text)) if len(each.split()) >= LEAST_WORDS][:MOST_SENTENCES]
        return [self.vector(each) for each in found] if len(found) > 1 else []


def by_table(text: str, table: WordVectors) -> Vector:
    """Return the vector of a query by the table, of length one, or zeros where it says nothing."""
    if not any(map(str.isalnum, text)):
        return np.zeros(table.columns, np.float32)
    rest, values, kinds = split_values(head_and_tail(text))
    plain = table.sum(" ".join((rest, *kinds)))
    total = plain + np.float32(VALUES) * table.sum(" ".join(values)) if values else plain
    return np.divide(total, np.float32(max(float(np.linalg.norm(total)), 1e-9)), dtype=np.float32)


def information_in(text: str, table: WordVectors) -> float:
    """Return how much a query says: the length of the sum of its pieces' rows; frequent pieces have short ones."""
    return float(np.linalg.norm(table.sum(head_and_tail(text))))


class DocumentVectors:
    """The vectors of documents: read once with their block, and side by side as they stand in their segment."""

    def __init__(self, table: WordVectors) -> None:
        self.table = table
        self._blocks: WeakKeyDictionary[Block, Steps] = WeakKeyDictionary()
        self._segments: WeakKeyDictionary[Segment, VectorRows] = WeakKeyDictionary()

    def matrices(self, index: Index) -> list[VectorRows]:
        """Return a matrix for each segment of an index, a column for each document; what is missing is made."""
        known = [self._segments.get(segment) for segment in index.segments]
        if any(matrix is None for matrix in known):
            self._read_blocks(index)
        found: list[VectorRows] = []
        first = 0
        for segment, matrix in zip(index.segments, known, strict=True):
            made = self._matrix(index, first, segment.size) if matrix is None else matrix
            self._segments[segment] = made
            found.append(made)
            first += segment.size
        return found

    def cosines(self, vectors: Sequence[NDArray[np.float32]], index: Index) -> NDArray[np.float32]:
        """Return the cosines of some vectors with each row of an index, a line for each vector."""
        return cosines_of(vectors, self.matrices(index), index)

    def _read_blocks(self, index: Index) -> None:
        """Read the documents of the blocks that are new."""
        new: dict[Block, dict[int, SearchDocument]] = {}
        for document, _, (block, position) in index.entries.values():
            if block not in self._blocks:
                new.setdefault(block, {})[position] = document
        for block, documents in new.items():
            steps = np.zeros((len(block.texts), self.table.columns), np.int16)
            steps[list(documents)] = self.table.steps([purpose_texts(document) for document in documents.values()])
            self._blocks[block] = steps

    def _matrix(self, index: Index, first: int, size: int) -> VectorRows:
        """Return the vectors of a segment's documents; those that have no row in this index stay zero."""
        places: dict[Block, tuple[list[int], list[int]]] = {}
        for document, number in zip(index.documents, index.rows.tolist(), strict=True):
            if first <= number < first + size:
                _, _, (block, position) = index.entries[document_key(document)]
                numbers, positions = places.setdefault(block, ([], []))
                numbers.append(number - first)
                positions.append(position)
        matrix = np.zeros((self.table.columns, size), np.float32)
        for block, (numbers, positions) in places.items():
            matrix[:, numbers] = self._blocks[block][positions].T
        return matrix


def cosines_of(
    vectors: Sequence[NDArray[np.float32]], matrices: Sequence[VectorRows], index: Index
) -> NDArray[np.float32]:
    """Return the cosines of some vectors with each row of an index, a line for each vector.

    They are the same to the last bit whatever else is in the index (P3): only whole numbers are added up.

    Args:
        vectors: Of any length.
        matrices: One for each segment of the index, in whole steps, a column for each document.
        index: What may be found.
    """
    steps = in_steps(np.stack(vectors)).astype(np.float32)
    found = [np.stack([one @ matrix for one in steps]) for matrix in matrices]
    together = np.concatenate(found, axis=1) if len(found) > 1 else found[0]
    return (together if index.ordered else together[:, index.rows]) * np.float32(1 / (STEPS * STEPS))


def nearness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how near each row is to a query: to all of it, and to the sentence that is nearest.

    Args:
        cosines: A line for the whole query, then one for each of its sentences.
    """
    return cosines[0] if len(cosines) == 1 else WHOLE * cosines[0] + SENTENCE * cosines[1:].max(axis=0)


def gains(used: Sequence[PastUse], vector: Vector, queries: QueryVectors, rows: Mapping[str, int], size: int) -> Floats:
    """Return what each row gains by past use: the share of it among what was called after similar queries.

    Args:
        used: What was called after which query; a tool that is not found here counts nothing.
        vector: The query's vector.
        queries: The vectors of past queries.
        rows: The row of each tool, by id.
        size: How many rows there are.
    """
    found = np.zeros(size)
    known = [(past.need, rows[past.tool]) for past in used if past.tool in rows]
    length = float(np.linalg.norm(vector))
    if not known or not length:
        return found
    number = {query: at for at, query in enumerate(dict.fromkeys(query for query, _ in known))}
    cosines = np.stack([queries.vector(query) for query in number]) @ (vector / np.float32(length))
    alike = (np.maximum(cosines - LIKE, 0) / (1 - LIKE)) ** 2
    np.add.at(found, [row for _, row in known], alike[[number[query] for query, _ in known]])
    return found * (PAST_USE / (DOUBT + float(alike.sum())))


def usually_nearest(vectors: DocumentVectors, queries: QueryVectors, index: Index) -> float:
    """Return how near the nearest other row is to what one is for: the middle of a sample of an index's rows."""
    nearest: list[float] = []
    if index.size > 1:
        for row in index.sample_rows(SAMPLE, OF_LARGE):
            document = index.documents[row]
            purpose = field_texts(document, "")[FIRST] or spaced_name(document.name)
            cosines = vectors.cosines([queries.vector(purpose)], index)[0]
            nearest.append(float(np.delete(cosines, row).max()))
    return float(np.median(nearest)) if nearest else 0.0


def background(vectors: DocumentVectors, index: Index) -> BackgroundNearness:
    """Return how near texts about nothing in particular come to an index: a few words each, from all over the table."""
    words, size = vectors.table.words, index.size
    if not words or not size:
        return BackgroundNearness(usual=0.0, spread=LEAST_SPREAD)
    texts = [" ".join(words[at * _STRIDE % len(words)] for at in range(first, first + WORDS))
             for first in range(0, (OF_LARGE if size > LARGE else SAMPLE) * WORDS, WORDS)]  # fmt: skip
    nearest = vectors.cosines([by_table(text, vectors.table) for text in texts], index).max(axis=1)
    return BackgroundNearness(usual=float(np.median(nearest)), spread=max(float(np.std(nearest)), LEAST_SPREAD))


def purpose_texts(document: SearchDocument) -> tuple[str, str]:
    """Return what is read of a tool or group: its name and what it is for; beside it its parameters or members."""
    fields = field_texts(document, "")
    return f"{spaced_name(fields[NAME])}. {fields[FIRST]} {fields[REST]}", spaced_name(fields[PARAMETERS])


def spaced_name(name: str) -> str:
    """Return a name with its words apart.

    >>> spaced_name("GorillaFS__readFile"), spaced_name("getHTTPStatus")
    ('Gorilla FS read File', 'get HTTP Status')
    """
    return " ".join(_CASES.sub(" ", name).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowExamples:
    """The example requests of an index.

    Attributes:
        rows: the rows that have some, rising.
        starts: where those of each row begin in the matrix.
        matrix: a line for each request, in whole steps.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    matrix: NDArray[np.float32]


class ExampleVectors:
    """The vectors of example requests; those of an index are kept as long as it is."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], NDArray[np.float32]] = {}
        self._of: WeakKeyDictionary[Index, _RowExamples] = WeakKeyDictionary()

    def prepare(self, index: Index, table: WordVectors) -> None:
        """Read the example requests of the rows of an index."""
        self._of[index] = self._make_examples(index, table)

    def nearness(self, vector: NDArray[np.float32], index: Index, table: WordVectors) -> NDArray[np.float32] | None:
        """Return how near the nearest example request of each row is, at least 0; None where no row has any.

        Args:
            vector: Of a query, of any length.
            index: What may be found.
            table: The table of the query's vector.
        """
        if index not in self._of:
            self.prepare(index, table)
        known = self._of[index]
        if not len(known.rows):
            return None
        # Not `@`: for a matrix of this size BLAS wakes a second thread, which costs more than it saves.
        steps = np.einsum("ij,j->i", known.matrix, in_steps(vector).astype(np.float32))
        near = steps * np.float32(1 / (STEPS * STEPS))
        found = np.zeros(index.size, np.float32)
        found[known.rows] = np.maximum(np.maximum.reduceat(near, known.starts), 0)
        return found

    def _make_examples(self, index: Index, table: WordVectors) -> _RowExamples:
        asked = [(row, texts) for row, document in enumerate(index.documents) if (texts := examples_of(document))]
        parts = [self._read_texts(texts, table) for _, texts in asked]
        return _RowExamples(
            rows=np.array([row for row, _ in asked], np.int64),
            starts=np.cumsum([0, *map(len, parts)], dtype=np.int64)[:-1],
            matrix=np.concatenate(parts) if parts else np.zeros((0, table.columns), np.float32),
        )

    def _read_texts(self, texts: tuple[str, ...], table: WordVectors) -> NDArray[np.float32]:
        known = self._known.get(texts)
        if known is None:
            known = self._known[texts] = table.steps([(text, "") for text in texts]).astype(np.float32)
        return known
