"""Documents by word: which documents a word stands in, and what it counts there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.search.postings_block import Block, Impacts, Integers, Rows, Small

BlockRow: TypeAlias = tuple[Block, int]
"""A document that has been read: its block and where it stands there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """Documents by word: those of word w stand from ``starts[w]`` to ``starts[w + 1]``, rising."""

    starts: list[int]
    documents: Small
    impacts: Impacts

    def span(self, term: int) -> tuple[int, int]:
        """Return where the documents of a word begin and end."""
        return (self.starts[term], self.starts[term + 1]) if term + 1 < len(self.starts) else (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Segment:
    """Documents that are searched together; it is never changed.

    Attributes:
        size: how many documents.
        terms: the words and stems of each document.
        names: the stems of each document's name.
        postings: the documents of each word or stem.
        name_postings: those whose name has a stem.
        counts: in how many documents each word or stem stands.
        keys: the keys of names, rising, and ``named``: whose they are.
        texts: a number for each document that equal ones share.
        marks: a number of each document's name, the same in every process.
    """

    size: int
    terms: Rows
    names: Rows
    postings: Postings
    name_postings: Postings
    counts: Integers
    keys: Integers
    named: Integers
    texts: Integers
    marks: Integers


def join_segment(places: Sequence[BlockRow]) -> Segment:
    """Return the documents at these places as a segment, in this order."""
    runs = _runs(places)
    terms = _rows([(block.terms, first, last) for block, first, last in runs])
    names = _rows([(block.names, first, last) for block, first, last in runs])
    impacts = _together([b.impacts[b.terms.starts[i] : b.terms.starts[j]] for b, i, j in runs], np.float32)
    keys = _together([block.keys[first:last].reshape(-1) for block, first, last in runs], np.int64)
    order = np.argsort(keys, kind="stable")
    postings = _postings(terms, impacts)
    return Segment(
        size=len(places),
        terms=terms,
        names=names,
        postings=postings,
        counts=np.diff(postings.starts),
        name_postings=_postings(names, np.ones(len(names.numbers), dtype=np.float32)),
        keys=keys[order],
        named=order // 2,
        texts=_together([block.texts[first:last] for block, first, last in runs], np.int64),
        marks=_together([block.marks[first:last] for block, first, last in runs], np.int64),
    )


def _runs(places: Sequence[BlockRow]) -> list[tuple[Block, int, int]]:
    """Return the places as stretches of blocks."""
    runs: list[tuple[Block, int, int]] = []
    for block, position in places:
        if runs and runs[-1][0] is block and runs[-1][2] == position:
            runs[-1] = (block, runs[-1][1], position + 1)
        else:
            runs.append((block, position, position + 1))
    return runs


def _rows(parts: list[tuple[Rows, int, int]]) -> Rows:
    numbers = _together([rows.numbers[rows.starts[i] : rows.starts[j]] for rows, i, j in parts], np.int32)
    lengths = _together([np.diff(rows.starts[i : j + 1]) for rows, i, j in parts], np.int64)
    return Rows(starts=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths))), numbers=numbers)


def _together(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _postings(rows: Rows, impacts: Impacts) -> Postings:
    """Return rows by document as documents by number."""
    terms = rows.numbers
    size = int(terms.max()) + 1 if len(terms) else 0
    order = np.argsort(terms, kind="stable")
    documents = np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int32), np.diff(rows.starts))
    counts = np.bincount(terms, minlength=size)
    return Postings(
        starts=[0, *np.cumsum(counts).tolist()],
        documents=documents[order],
        impacts=impacts[order],
    )
