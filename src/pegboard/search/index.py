"""The statistics of one set of what may be found, and which rows of it are the best by their scores (P3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Searchable
from pegboard.search.documents import LONGEST_NAME, RowNames, SearchDocument, is_name_of, name_key, name_keys
from pegboard.search.index_segment import BlockRow, Floats, Integers, Segment, added_up, join_segment, read_block
from pegboard.search.vocabulary import Vocabulary

READ_TOGETHER: Final = 1_024
"""How many documents are read at once."""
SMALL: Final = 2_000
"""So many documents may stand beside the large segment before all are joined again."""


ReadDocument: TypeAlias = tuple[SearchDocument, str, BlockRow]
"""A document that has been read, the text of its plugin at the time, and where its words were counted."""

SAMPLE: Final = 100
"""About so many documents are looked up to see which earlier index is near."""


LARGE: Final = 10_000
"""What has more rows is large: less of it is looked at."""

SAME: Final = 2
"""So many tools with equal texts may stand before others."""
STEP: Final = 0.75
SMALLEST: Final = 1e-6
"""The least score is lowered by steps until enough reach it: quicker than sorting, where most have next to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Index:
    """What is known of what may be found; it is never changed, so many may search in it at once.

    A row is the place of a tool or group among what may be found: the tools in their order, then the groups.
    Nothing in a score depends on anything that is not among the rows (P3).

    Attributes:
        among: what may be found.
        documents: the tools, then the groups: what is in each row.
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
        marks: a number of each row's name.
        effects: whether each row reads (1), writes (-1) or does not say so (0).
        plugins: the rows by plugin.
        names: where the rows' names stand, for what begins one.
        usual: what the best wrong answer usually reaches (:func:`pegboard.search.scores.calibrate_index`).
    """

    among: Searchable
    documents: Sequence[SearchDocument]
    vocabulary: Vocabulary
    entries: Mapping[object, ReadDocument]
    numbers: Mapping[object, int]
    segments: tuple[Segment, ...]
    rows: Integers
    ordered: bool
    frequencies: list[int]
    weights: list[float]
    unknown: float
    name_mass: Floats
    texts: Integers
    marks: Integers
    effects: Integers
    plugins: Plugins
    names: RowNames
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

    def by_row(self, by_number: NDArray[Any]) -> NDArray[Any]:
        """Return values by the number of a document as values by row."""
        return by_number if self.ordered else by_number[self.rows]

    def sample_rows(self, small: int, large: int) -> list[int]:
        """Return some rows, fewer of a large index: mostly the same ones where others come or go."""
        count = min(self.size, small if self.size <= LARGE else large)
        if not count:
            return []
        ordered = self.marks * self.size + np.arange(self.size)
        return (np.sort(np.partition(ordered, count - 1)[:count]) % self.size).tolist()

    def named(self, text: str) -> list[int]:
        """Return the rows that a text names, best first.

        A name is that of a tool, toolkit or plugin, or ``plugin.tool`` with any separator, in any case, in the
        singular or plural; spelled as it is it comes first. Where nothing has the name, it is the only one that
        begins so.
        """
        text = text.strip()
        key = name_key((text,)) if 0 < len(text) <= LONGEST_NAME else 0
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
        return sorted(rows, key=lambda row: not is_name_of(self.documents[row], text)) or self.names.rows_beginning(
            text
        )


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


def top_rows(scores: Floats, exact: Sequence[int], index: Index, limit: int) -> list[int]:
    """Return the best rows: those named first, then by score; equal scores in the order of the rows.

    Args:
        scores: How well each row answers.
        exact: The rows that come first, in this order.
        index: What may be found.
        limit: How many at most.
    """
    named = list(exact[:limit])
    reached = int(np.count_nonzero(scores > 0))
    wanted = limit + len(named)
    count = min(reached, 2 * wanted)
    while True:
        rows = [row for row in _highest_rows(scores, count) if row not in named]
        chosen, later = _without_repeats(rows, index)
        if len(chosen) >= limit or count >= reached:
            return [*named, *chosen, *later][:limit]
        count = min(reached, 8 * count)


def _highest_rows(scores: Floats, count: int) -> list[int]:
    """Return at least so many rows, the highest score first."""
    if not count:
        return []
    least = float(scores.max())
    rows = np.flatnonzero(scores >= least)
    while len(rows) < count:
        least = least * STEP if least > SMALLEST else np.nextafter(0, 1)
        rows = np.flatnonzero(scores >= least)
    return rows[np.argsort(-scores[rows], kind="stable")].tolist()


def _without_repeats(rows: Sequence[int], index: Index) -> tuple[list[int], list[int]]:
    """Return the rows, and those whose texts have been seen often enough."""
    seen: dict[int, int] = {}
    chosen: list[int] = []
    later: list[int] = []
    for row, text in zip(rows, index.texts[rows].tolist() if rows else (), strict=True):
        seen[text] = seen.get(text, 0) + 1
        (chosen if seen[text] <= SAME else later).append(row)
    return chosen, later


def document_key(document: SearchDocument) -> object:
    """Return under what a document is known: a tool is itself, a group its content."""
    return id(document) if isinstance(document, Tool) else document


def build(among: Searchable, vocabulary: Vocabulary, known: Sequence[Index] = ()) -> Index:
    """Return the index of what may be found.

    Args:
        among: What may be found.
        vocabulary: The numbers of words; it grows.
        known: Earlier indexes, the newest first: what they have read is not read again.
    """
    documents: tuple[SearchDocument, ...] = (*among.tools, *among.groups)
    keys = [*map(id, among.tools), *among.groups]
    near = _nearest_index(keys, known)
    kept = _reuse_entries(dict(zip(keys, documents, strict=True)), among.plugins, near)
    _complete_entries(kept, among.plugins, vocabulary, known)
    segments, rows = _segments(keys, kept, near)
    return _assemble_index(
        segments,
        rows,
        among=among,
        documents=documents,
        vocabulary=vocabulary,
        entries=kept.entries,
        numbers=kept.numbers,
        plugins=_plugins(among),
        names=RowNames(documents),
    )


@dataclass(slots=True, kw_only=True)
class _ReusedEntries:
    """What is taken over from an earlier index: entries and numbers by key, and what it lacks."""

    entries: dict[object, ReadDocument]
    numbers: dict[object, int]
    missing: dict[object, SearchDocument]


def _reuse_entries(
    wanted: dict[object, SearchDocument], texts: Mapping[str, str], near: Index | None
) -> _ReusedEntries:
    """Return what an earlier index has of these documents; where a plugin's text is another, nothing of its tools."""
    if near is None:
        return _ReusedEntries(entries={}, numbers={}, missing=wanted)
    entries, numbers = dict(near.entries), dict(near.numbers)
    gone = [key for key in entries if key not in wanted]
    before = near.among.plugins
    stale = {name for name, text in texts.items() if before.get(name, text) != text}
    if stale:
        gone += [key for key, found in wanted.items() if isinstance(found, Tool) and found.plugin in stale]
    for key in gone:
        entries.pop(key, None)
        numbers.pop(key, None)
    missing = {key: wanted[key] for key in wanted if key not in entries} if len(entries) < len(wanted) else {}
    return _ReusedEntries(entries=entries, numbers=numbers, missing=missing)


def _complete_entries(
    kept: _ReusedEntries, texts: Mapping[str, str], vocabulary: Vocabulary, known: Sequence[Index]
) -> None:
    """Complete the entries: from other indexes, and by reading what none of them knows."""
    new: list[tuple[object, SearchDocument, str]] = []
    for key, document in kept.missing.items():
        text = texts.get(document.plugin, "") if isinstance(document, Tool) else ""
        found = next((entry for index in known if (entry := index.entries.get(key)) and entry[1] == text), None)
        if found is None:
            new.append((key, document, text))
        else:
            kept.entries[key] = found
    for start in range(0, len(new), READ_TOGETHER):
        part = new[start : start + READ_TOGETHER]
        block = read_block([document for _, document, _ in part], [text for _, _, text in part], vocabulary)
        for position, (key, document, text) in enumerate(part):
            kept.entries[key] = (document, text, (block, position))
    if new:
        vocabulary.index_spelling()


def _segments(keys: Sequence[object], kept: _ReusedEntries, near: Index | None) -> tuple[tuple[Segment, ...], Integers]:
    """Return the documents by word and each row's number; most of an earlier index is taken as it is."""
    entries, numbers = kept.entries, kept.numbers
    if near is not None:
        large = near.segments[0]
        fresh = list(dict.fromkeys(key for key in keys if key not in numbers)) if len(numbers) < len(keys) else []
        if len(fresh) <= max(SMALL, large.size // 8) and 2 * len(numbers) >= large.size:
            placed = {**numbers, **{key: large.size + at for at, key in enumerate(fresh)}} if fresh else numbers
            beside = (join_segment([entries[key][2] for key in fresh]),) if fresh else ()
            return (large, *beside), np.array([placed[key] for key in keys], dtype=np.int64)
    numbers.clear()
    numbers.update(zip(keys, range(len(keys)), strict=True))
    return (join_segment([entries[key][2] for key in keys]),), np.arange(len(keys))


def _nearest_index(keys: Sequence[object], known: Sequence[Index]) -> Index | None:
    """Return the earlier index that shares most with these documents, by a sample of them."""
    sample = keys[:: len(keys) // SAMPLE + 1]
    shared = [(sum(key in index.numbers for key in sample), index) for index in known]
    most = max(shared, key=lambda pair: pair[0], default=None)
    return most[1] if most is not None and 2 * most[0] >= len(sample) else None


def _assemble_index(segments: tuple[Segment, ...], rows: Integers, **known: Any) -> Index:
    """Return the index with the statistics of its rows."""
    there = np.zeros(sum(segment.size for segment in segments), dtype=bool)
    there[rows] = True
    total = len(there)
    frequencies = _frequencies(segments, np.flatnonzero(~there))
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
        marks=np.concatenate([segment.marks for segment in segments])[rows],
        effects=np.concatenate([segment.effects for segment in segments])[rows],
        **known,
    )


def _frequencies(segments: Sequence[Segment], gone: Integers) -> Integers:
    """Return in how many documents each word stands, without those that are gone from the first segment."""
    frequencies = np.zeros(max(len(segment.counts) for segment in segments), dtype=np.int64)
    for segment in segments:
        frequencies[: len(segment.counts)] += segment.counts
    terms = segments[0].terms
    for number in gone.tolist():
        frequencies[terms.numbers[terms.starts[number] : terms.starts[number + 1]]] -= 1
    return frequencies


def _name_mass(segment: Segment, idf: Floats) -> Floats:
    """Return the weight of each document's name."""
    owners = np.repeat(np.arange(segment.size), np.diff(segment.names.starts))
    return added_up(owners, idf[segment.names.numbers], segment.size)


def _plugins(among: Searchable) -> Plugins:
    """Return the rows by plugin."""
    names = [tool.plugin for tool in among.tools]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    alone = range(len(numbers), len(numbers) + len(among.groups))
    of = np.array([*map(numbers.__getitem__, names), *alone], dtype=np.int64)
    together = bool((of[1:] >= of[:-1]).all())
    order = None if together else np.argsort(of, kind="stable")
    counts = np.bincount(of, minlength=len(numbers))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)[:-1]))
    return Plugins(of=of, order=order, starts=starts, counts=counts)
