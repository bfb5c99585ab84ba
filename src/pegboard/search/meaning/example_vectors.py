"""How near a query is to what people ask of the tools that may be found (:mod:`pegboard.search.analysis.examples`)."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pegboard.search.documents import examples_of
from pegboard.search.index import Index
from pegboard.search.meaning.word_vectors import STEPS, WordVectors, in_steps


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
        self._of[index] = self._made(index, table)

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

    def _made(self, index: Index, table: WordVectors) -> _RowExamples:
        asked = [(row, texts) for row, document in enumerate(index.documents) if (texts := examples_of(document))]
        parts = [self._read(texts, table) for _, texts in asked]
        return _RowExamples(
            rows=np.array([row for row, _ in asked], np.int64),
            starts=np.cumsum([0, *map(len, parts)], dtype=np.int64)[:-1],
            matrix=np.concatenate(parts) if parts else np.zeros((0, table.columns), np.float32),
        )

    def _read(self, texts: tuple[str, ...], table: WordVectors) -> NDArray[np.float32]:
        known = self._known.get(texts)
        if known is None:
            known = self._known[texts] = table.steps([(text, "") for text in texts]).astype(np.float32)
        return known
