"""The vectors of what may be found, kept as long as an index needs them."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pegboard.search.fields import FIRST, NAME, PARAMETERS, REST, field_texts
from pegboard.search.index import Index, document_key
from pegboard.search.index_segment import Segment
from pegboard.search.meaning.need_vectors import NeedVectors
from pegboard.search.meaning.pieces import spaced_name
from pegboard.search.meaning.word_vectors import STEPS, Steps, WordVectors, in_steps
from pegboard.search.postings_block import Block, Document

Matrix = NDArray[np.float32]

SAMPLE, OF_LARGE = 96, 24
"""So many rows are looked at to learn how near rows are to each other; fewer where there are many."""


def purpose_texts(document: Document) -> tuple[str, str]:
    """Return what is read of a tool or group: its name and what it is for; beside it its parameters or members."""
    fields = field_texts(document, "")
    return f"{spaced_name(fields[NAME])}. {fields[FIRST]} {fields[REST]}", spaced_name(fields[PARAMETERS])


def cosines_of(vectors: Sequence[NDArray[np.float32]], matrices: Sequence[Matrix], index: Index) -> NDArray[np.float32]:
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


class DocumentVectors:
    """The vectors of documents: read once with their block, and side by side as they stand in their segment."""

    def __init__(self, table: WordVectors) -> None:
        self.table = table
        self._blocks: WeakKeyDictionary[Block, Steps] = WeakKeyDictionary()
        self._segments: WeakKeyDictionary[Segment, Matrix] = WeakKeyDictionary()

    def matrices(self, index: Index) -> list[Matrix]:
        """Return a matrix for each segment of an index, a column for each document; what is missing is made."""
        known = [self._segments.get(segment) for segment in index.segments]
        if any(matrix is None for matrix in known):
            self._read(index)
        found: list[Matrix] = []
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

    def _read(self, index: Index) -> None:
        """Read the documents of the blocks that are new."""
        new: dict[Block, dict[int, Document]] = {}
        for document, _, (block, position) in index.entries.values():
            if block not in self._blocks:
                new.setdefault(block, {})[position] = document
        for block, documents in new.items():
            steps = np.zeros((len(block.texts), self.table.columns), np.int16)
            steps[list(documents)] = self.table.steps([purpose_texts(document) for document in documents.values()])
            self._blocks[block] = steps

    def _matrix(self, index: Index, first: int, size: int) -> Matrix:
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


def usually_nearest(vectors: DocumentVectors, needs: NeedVectors, index: Index) -> float:
    """Return how near the nearest other row is to what one is for: the middle of a sample of an index's rows."""
    nearest: list[float] = []
    if index.size > 1:
        for row in index.sample(SAMPLE, OF_LARGE):
            document = index.documents[row]
            purpose = field_texts(document, "")[FIRST] or spaced_name(document.name)
            cosines = vectors.cosines([needs.vector(purpose)], index)[0]
            nearest.append(float(np.delete(cosines, row).max()))
    return float(np.median(nearest)) if nearest else 0.0
