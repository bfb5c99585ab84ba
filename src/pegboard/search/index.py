"""The statistics of one set of what may be found, and how well each answers a need in words (P3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Searchable
from pegboard.search.blocks import Document, Floats, Integers, added_up, read
from pegboard.search.names import LONGEST, Names, name_key, name_keys, spelled
from pegboard.search.segments import Place, Segment, joined
from pegboard.search.vocabulary import Vocabulary

READ_TOGETHER: Final = 1_024
"""How many documents are read at once."""
SMALL: Final = 2_000
"""So many documents may stand beside the large segment before all are joined anew."""


Entry: TypeAlias = tuple[Document, str, Place]
"""A document that has been read, the text of its plugin at the time, and where its words were counted."""

SAMPLE: Final = 100
"""About so many documents are looked up to see which earlier index is near."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """What is known of what may be found; it is never changed, so many may search in it at once.

    A row is the place of a tool or group among what may be found: the tools in their order, then the groups.
    Nothing in a score depends on anything that is not among the rows (P3).

    Attributes:
        among: what may be found.
        documents: the tools, then the groups: what stands in each row.
        vocabulary: the numbers of words.
        entries: what has been read, by :func:`document_key`.
        numbers: which number each document of the first segment has, by the same key.
        segments: the documents by word; a document that is no longer there has no row.
        rows: the number of each row's document, through all segments.
        ordered: whether row and number are the same.
        frequencies: in how many rows each word or stem stands.
        weights: how much each counts (BM25's idf), and ``unknown`` one that no row has.
        name_mass: the weight of each row's name.
        texts: a number for each row that rows with equal texts share.
        plugins: the rows by plugin.
        names: where the rows' names stand, for what begins one.
        usual: what the best wrong answer usually reaches (:func:`pegboard.search.evidence.calibrated`).
    """

    among: Searchable
    documents: Sequence[Document]
    vocabulary: Vocabulary
    entries: Mapping[object, Entry]
    numbers: Mapping[object, int]
    segments: tuple[Segment, ...]
    rows: Integers
    ordered: bool
    frequencies: list[int]
    weights: list[float]
    unknown: float
    name_mass: Floats
    texts: Integers
    plugins: Plugins
    names: Names
    usual: float = 1.0

    @property
    def size(self) -> int:
        """Return how many rows there are."""
        return len(self.documents)

    def frequency(self, term: int) -> int:
        """Return in how many rows a word or stem stands."""
        return self.frequencies[term] if term < len(self.frequencies) else 0

    def weight(self, term: int | None) -> float:
        """Return how much a word or stem counts; None is one that no row has."""
        return self.weights[term] if term is not None and term < len(self.weights) else self.unknown

    def text(self, row: int) -> int:
        """Return a number that rows with equal texts share."""
        return int(self.texts[row])

    def by_row(self, by_number: NDArray[Any]) -> NDArray[Any]:
        """Return values by the number of a document as values by row."""
        return by_number if self.ordered else by_number[self.rows]

    def named(self, text: str) -> list[int]:
        """Return the rows that a text names, best first.

        A name is that of a tool, toolkit or plugin, or ``plugin.tool`` with any separator, in any case, in the
        singular or plural; spelled as it is it comes first. Where nothing has the name, it is the only one that
        begins so.
        """
        text = text.strip()
        key = name_key((text,)) if 0 < len(text) <= LONGEST else 0
        if not key:
            return []
        found: list[int] = []
        offset = 0
        for segment in self.segments:
            first = np.searchsorted(segment.keys, key, side="left")
            last = np.searchsorted(segment.keys, key, side="right")
            found += (segment.named[first:last] + offset).tolist()
            offset += segment.size
        rows = np.flatnonzero(np.isin(self.rows, found)).tolist() if found else []
        rows = [row for row in rows if key in name_keys(self.documents[row])]
        return sorted(rows, key=lambda row: not spelled(self.documents[row], text)) or self.names.beginning(text)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plugins:
    """Rows by plugin; a group stands alone.

    Attributes:
        of: the number of each row's plugin.
        order: the rows by plugin, or None where they stand so already.
        starts: where each plugin's rows begin in that order.
        counts: how many rows each has.
    """

    of: Integers
    order: Integers | None
    starts: Integers
    counts: Integers

    def best(self, scores: Floats) -> Floats:
        """Return for each row the best score of its plugin."""
        if not len(scores):
            return scores
        if self.order is None:
            return np.repeat(np.maximum.reduceat(scores, self.starts), self.counts)
        return np.maximum.reduceat(scores[self.order], self.starts)[self.of]


def document_key(document: Document) -> object:
    """Return under what a document is known: a tool is itself, a group its content."""
    return id(document) if isinstance(document, Tool) else document


def build(among: Searchable, vocabulary: Vocabulary, known: Sequence[Index] = ()) -> Index:
    """Return the index of what may be found.

    Args:
        among: What may be found.
        vocabulary: The numbers of words; it grows.
        known: Earlier indexes, the newest first: what they have read is not read again.
    """
    documents: tuple[Document, ...] = (*among.tools, *among.groups)
    keys = [*map(id, among.tools), *among.groups]
    entries = _entries(keys, documents, among.plugins, vocabulary, known)
    segments, rows, numbers = _segments(keys, entries, known)
    return _assembled(
        segments,
        rows,
        among=among,
        documents=documents,
        vocabulary=vocabulary,
        entries=entries,
        numbers=numbers,
        plugins=_plugins(documents),
        names=Names(documents),
    )


def _entries(
    keys: Sequence[object],
    documents: Sequence[Document],
    texts: Mapping[str, str],
    vocabulary: Vocabulary,
    known: Sequence[Index],
) -> dict[object, Entry]:
    """Return where the words of each document were counted; those that no index knows are counted now."""
    entries: dict[object, Entry] = {}
    new: list[tuple[object, Document, str]] = []
    for key, document in zip(keys, documents, strict=True):
        text = texts.get(document.plugin, "") if isinstance(document, Tool) else ""
        for index in known:
            found = index.entries.get(key)
            if found is not None and found[1] == text:
                entries[key] = found
                break
        else:
            new.append((key, document, text))
    for start in range(0, len(new), READ_TOGETHER):
        part = new[start : start + READ_TOGETHER]
        block = read([document for _, document, _ in part], [text for _, _, text in part], vocabulary)
        for position, (key, document, text) in enumerate(part):
            entries[key] = (document, text, (block, position))
    if new:
        vocabulary.index_spelling()
    return entries


def _segments(
    keys: Sequence[object], entries: Mapping[object, Entry], known: Sequence[Index]
) -> tuple[tuple[Segment, ...], Integers, dict[object, int]]:
    """Return the documents by word and each row's number; most of an earlier index is taken as it is."""
    index = _nearest(keys, known)
    if index is not None:
        before, old = index.numbers, index.entries
        large = index.segments[0]
        kept = {key: before[key] for key, entry in entries.items() if key in before and old[key] is entry}
        fresh = [key for key in keys if key not in kept]
        if len(fresh) <= max(SMALL, large.size // 8) and 2 * len(kept) >= large.size:
            numbers = {**kept, **{key: large.size + at for at, key in enumerate(fresh)}}
            rows = np.array([numbers[key] for key in keys], dtype=np.int64)
            beside = (joined([entries[key][2] for key in fresh]),) if fresh else ()
            return (large, *beside), rows, kept
    rows = np.arange(len(keys))
    return (joined([entries[key][2] for key in keys]),), rows, dict(zip(keys, range(len(keys)), strict=True))


def _nearest(keys: Sequence[object], known: Sequence[Index]) -> Index | None:
    """Return the earlier index that shares most with these documents, by a sample of them."""
    sample = keys[:: len(keys) // SAMPLE + 1]
    shared = [(sum(key in index.numbers for key in sample), index) for index in known]
    most = max(shared, key=lambda pair: pair[0], default=None)
    return most[1] if most is not None and 2 * most[0] >= len(sample) else None


def _assembled(segments: tuple[Segment, ...], rows: Integers, **known: Any) -> Index:
    """Return the index with the statistics of its rows."""
    total = sum(segment.size for segment in segments)
    frequencies = _frequencies(segments, np.setdiff1d(np.arange(total), rows))
    idf = np.log(1 + (len(rows) - frequencies + 0.5) / (frequencies + 0.5))
    mass = np.concatenate([_name_mass(segment, idf) for segment in segments])
    return Index(
        segments=segments,
        rows=rows,
        ordered=len(rows) == total and bool((rows == np.arange(total)).all()),
        frequencies=frequencies.tolist(),
        weights=idf.tolist(),
        unknown=math.log(1 + (len(rows) + 0.5) / 0.5),
        name_mass=mass[rows],
        texts=np.concatenate([segment.texts for segment in segments])[rows],
        **known,
    )


def _frequencies(segments: Sequence[Segment], gone: Integers) -> Integers:
    """Return in how many documents each word stands, without those that are gone from the first segment."""
    size = max(len(segment.postings.starts) for segment in segments) - 1
    frequencies = np.zeros(size, dtype=np.int64)
    for segment in segments:
        counts = np.diff(segment.postings.starts)
        frequencies[: len(counts)] += counts
    terms = segments[0].terms
    for number in gone.tolist():
        frequencies[terms.numbers[terms.starts[number] : terms.starts[number + 1]]] -= 1
    return frequencies


def _name_mass(segment: Segment, idf: Floats) -> Floats:
    """Return the weight of each document's name."""
    owners = np.repeat(np.arange(segment.size), np.diff(segment.names.starts))
    return added_up(owners, idf[segment.names.numbers], segment.size)


def _plugins(documents: Sequence[Document]) -> Plugins:
    """Return the rows by plugin."""
    numbers: dict[object, int] = {}
    of = np.array(
        [
            numbers.setdefault(document.plugin if isinstance(document, Tool) else document, len(numbers))
            for document in documents
        ],
        dtype=np.int64,
    )
    together = bool((np.diff(of) >= 0).all())
    order = None if together else np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=len(numbers))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)[:-1]))
    return Plugins(of=of, order=order, starts=starts, counts=counts)
