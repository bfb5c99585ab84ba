"""The vector of a need: its words, a little of its values, and what was said before it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pegboard.search.analysis.literals import split_values
from pegboard.search.analysis.words import sentences
from pegboard.search.meaning.word_vectors import WordVectors
from pegboard.search.needs import MOST_SENTENCES, ends_of, history_weight, weighted_words

VALUES: Final = 0.3
"""How much the values in a need (names, numbers, dates) count beside its words."""
BEFORE: Final = (2.0, 1.0)
"""How much the last message counts beside a need, and the one before it, before their weight by the need's length."""
LEAST_WORDS: Final = 3
"""A sentence of fewer words has no vector of its own."""
KEPT: Final = 2_000

Vector = NDArray[np.float32]


class NeedVectors:
    """The vectors of needs; those asked for last are kept."""

    def __init__(self, made: Callable[[str], Vector]) -> None:
        self._made = made
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    def vector(self, text: str) -> Vector:
        """Return the vector of a need by itself, of length one, or zeros where it says nothing."""
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
        """Return the vector of a need with the two messages before it: the shorter the need, the more they count."""
        found = self.vector(text)
        if not messages:
            return found
        weight = history_weight(len(weighted_words(ends_of(text))))
        for message, share in zip(reversed(messages[-len(BEFORE) :]), BEFORE, strict=False):
            found = np.add(found, np.float32(weight * share) * self.vector(message), dtype=np.float32)
        return found

    def sentences(self, text: str) -> list[Vector]:
        """Return the vectors of a need's sentences, where it has more than one that says something."""
        found = [each for each in sentences(ends_of(text)) if len(each.split()) >= LEAST_WORDS][:MOST_SENTENCES]
        return [self.vector(each) for each in found] if len(found) > 1 else []


def by_table(text: str, table: WordVectors) -> Vector:
    """Return the vector of a need by the table, of length one, or zeros where it says nothing."""
    if not any(map(str.isalnum, text)):
        return np.zeros(table.columns, np.float32)
    rest, values, kinds = split_values(ends_of(text))
    plain = table.sum(" ".join((rest, *kinds)))
    total = plain + np.float32(VALUES) * table.sum(" ".join(values)) if values else plain
    return total / np.float32(max(float(np.linalg.norm(total)), 1e-9))


def said(text: str, table: WordVectors) -> float:
    """Return how much a need says: the length of the sum of its pieces' rows; frequent pieces have short ones."""
    return float(np.linalg.norm(table.sum(ends_of(text))))
