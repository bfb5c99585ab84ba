"""A table of rows, one for each word piece, and how its rows are learnt: a text is the sum of its pieces' rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Floats = NDArray[np.float32]


def counted(texts: Sequence[Sequence[int]], pieces: int) -> csr_matrix:
    """Return how often each piece is in each text."""
    lengths = [len(ids) for ids in texts]
    columns = np.fromiter((number for ids in texts for number in ids), np.int32, sum(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape=(len(texts), pieces))
    counts.sum_duplicates()
    return counts


def of_length_one(vectors: Floats) -> Floats:
    """Return the vectors with length one; an empty text's stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


class Rows:
    """The rows and what Adam keeps of each; only the rows of a batch are touched."""

    def __init__(self, start: Floats) -> None:
        self.values = start.astype(np.float32)
        self._mean = np.zeros_like(self.values)
        self._square = np.zeros_like(self.values)
        self._steps = np.zeros(len(start), np.int32)

    def vectors(self, texts: csr_matrix) -> Floats:
        """Return the texts' vectors, of length one."""
        return of_length_one(texts @ self.values)

    def learn(self, texts: csr_matrix, wanted: Floats, rate: float) -> None:
        """Move the rows against the gradient of the texts' vectors of length one.

        Args:
            texts: The texts of the batch.
            wanted: The gradient of the loss with respect to each of their vectors.
            rate: How far one step goes.
        """
        used = np.unique(texts.indices)
        part = texts[:, used]
        sums = part @ self.values[used]
        lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        units = sums / lengths
        inward = (wanted - units * (units * wanted).sum(1, keepdims=True)) / lengths
        gradient = np.asarray(part.T @ inward, np.float32)
        self._steps[used] += 1
        steps = self._steps[used][:, None]
        mean = self._mean[used] = 0.9 * self._mean[used] + 0.1 * gradient
        square = self._square[used] = 0.99 * self._square[used] + 0.01 * gradient**2
        correction = np.sqrt(1 - 0.99**steps) / (1 - 0.9**steps)
        self.values[used] -= (rate * correction * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)


def share(scores: Floats) -> Floats:
    """Return the softmax of each row."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
