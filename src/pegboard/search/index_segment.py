"""Documents by word: which documents a word is in, and what it counts there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pegboard.search.analysis.words import words
from pegboard.search.documents import (
    EXAMPLES,
    FIELDS,
    FIRST,
    NAME,
    PARAMETER_TEXTS,
    PLUGIN,
    PLUGIN_TEXT,
    REST,
    SearchDocument,
    effect_of,
    field_texts,
    name_keys,
)
from pegboard.search.vocabulary import Vocabulary

Integers: TypeAlias = NDArray[np.int64]
Small: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Impacts: TypeAlias = NDArray[np.float32]

SATURATION: Final = 1.2
"""BM25's k1: how soon a word that is there again counts no more."""

_FIELDS: Final = len(FIELDS)
_WEIGHTS: Final = np.array([kind.weight for kind in FIELDS])
_TYPICAL: Final = np.array([kind.typical for kind in FIELDS])
_SLOPES: Final = np.array([kind.slope for kind in FIELDS])
SENTENCES: Final = np.isin(np.arange(_FIELDS), (FIRST, REST, PARAMETER_TEXTS, PLUGIN_TEXT, EXAMPLES))
"""The fields whose stop words are no words."""
_SHARED: Final = (PLUGIN, PLUGIN_TEXT)
"""The fields that many tools have in common."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Numbers by document: those of document d stand from ``starts[d]`` to ``starts[d + 1]``."""

    starts: Integers
    numbers: Small


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Block:
    """Documents that were read together.

    Attributes:
        terms: the words and stems of each document, rising.
        impacts: what each of them counts in its document.
        names: the stems of each document's name.
        keys: under which each document is found by name: its own name, and that with its plugin's.
        texts: a number that documents with the same texts share.
        marks: a number of each document's name, the same in every process.
        effects: whether each reads (1), writes (-1) or does not say so (0).
    """

    terms: Rows
    impacts: Impacts
    names: Rows
    keys: Integers
    texts: Integers
    marks: Integers
    effects: Integers


def read_block(documents: Sequence[SearchDocument], plugin_texts: Sequence[str], vocabulary: Vocabulary) -> Block:
    """Return what the words of the documents count in them.

    Args:
        documents: What can be found.
        plugin_texts: What the plugin of each is for.
        vocabulary: The words so far; it grows.
    """
    found: list[int] = []
    lengths: list[int] = []
    keys: list[tuple[int, int]] = []
    texts: list[int] = []
    marks: list[int] = []
    effects: list[int] = []
    again: dict[str, list[int]] = {"": []}
    for document, plugin_text in zip(documents, plugin_texts, strict=True):
        fields = field_texts(document, plugin_text)
        for field, text in enumerate(fields):
            numbers = again.get(text)
            if numbers is None:
                numbers = vocabulary.numbers(words(text))
                if field in _SHARED:
                    again[text] = numbers
            found.extend(numbers)
            lengths.append(len(numbers))
        keys.append(name_keys(document))
        texts.append(hash((document.name, *fields[1:5])))
        marks.append(crc32(document.name.encode(errors="surrogatepass")))
        effects.append(effect_of(document))
    return _count_stems(
        np.array(found, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
        vocabulary,
        keys=np.array(keys, dtype=np.int64).reshape(-1, 2),
        texts=np.array(texts, dtype=np.int64),
        marks=np.array(marks, dtype=np.int64),
        effects=np.array(effects, dtype=np.int64),
    )


def _count_stems(tokens: Integers, lengths: Integers, vocabulary: Vocabulary, **known: Any) -> Block:
    size = len(vocabulary)
    stems, stops = (np.array(values) for values in vocabulary.stems_and_stops(size))
    places = np.repeat(np.arange(len(lengths)), lengths)
    kept = ~(stops[tokens] & SENTENCES[places % _FIELDS]) if len(tokens) else np.zeros(0, dtype=bool)
    tokens, places = tokens[kept], places[kept]
    counts = np.bincount(places, minlength=len(lengths)).reshape(-1, _FIELDS)
    weights = field_weights(counts)
    documents = places // _FIELDS
    roots = stems[tokens] if len(tokens) else tokens
    total = len(lengths) // _FIELDS
    names = places % _FIELDS == NAME
    terms, frequencies = _sum_by_key(
        np.concatenate((documents, documents)) * size + np.concatenate((tokens, roots)),
        np.tile(weights.reshape(-1)[places], 2),
    )
    name_terms, _ = _sum_by_key(documents[names] * size + roots[names], np.zeros(int(names.sum())))
    return Block(
        terms=_by_document(terms, size, total),
        impacts=(frequencies * (SATURATION + 1) / (frequencies + SATURATION)).astype(np.float32),
        names=_by_document(name_terms, size, total),
        **known,
    )


def field_weights(counts: Integers) -> Floats:
    """Return what one word counts in each field, by how many words the fields of each document have."""
    return _WEIGHTS / (1 - _SLOPES + _SLOPES * counts / _TYPICAL)


def _sum_by_key(keys: Integers, weights: Floats) -> tuple[Integers, Floats]:
    """Return the different keys, rising, with the sums of their weights, added up in the order of the text."""
    different, groups = np.unique(keys, return_inverse=True)
    return different, added_up(groups, weights, len(different))


def _by_document(keys: Integers, size: int, documents: int) -> Rows:
    starts = np.searchsorted(keys, np.arange(documents + 1) * max(size, 1))
    return Rows(starts=starts, numbers=(keys % max(size, 1)).astype(np.int32))


def added_up(places: NDArray[Any], weights: NDArray[Any], size: int) -> Floats:
    """Return the sum of the weights at each place, added in their order: whatever else is there, to the last bit."""
    return np.bincount(places, weights=weights, minlength=size).astype(np.float64, copy=False)


BlockRow: TypeAlias = tuple[Block, int]
"""A document that has been read: its block and where it is there."""


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
        effects: whether each reads (1), writes (-1) or does not say so (0).
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
    effects: Integers


def join_segment(places: Sequence[BlockRow]) -> Segment:
    """Return the documents at these places as a segment, in this order."""
    runs = _runs(places)
    terms = _rows([(block.terms, first, last) for block, first, last in runs])
    names = _rows([(block.names, first, last) for block, first, last in runs])
    impacts = _concatenate([b.impacts[b.terms.starts[i] : b.terms.starts[j]] for b, i, j in runs], np.float32)
    keys = _concatenate([block.keys[first:last].reshape(-1) for block, first, last in runs], np.int64)
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
        texts=_concatenate([block.texts[first:last] for block, first, last in runs], np.int64),
        marks=_concatenate([block.marks[first:last] for block, first, last in runs], np.int64),
        effects=_concatenate([block.effects[first:last] for block, first, last in runs], np.int64),
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
    numbers = _concatenate([rows.numbers[rows.starts[i] : rows.starts[j]] for rows, i, j in parts], np.int32)
    lengths = _concatenate([np.diff(rows.starts[i : j + 1]) for rows, i, j in parts], np.int64)
    return Rows(starts=np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths))), numbers=numbers)


def _concatenate(parts: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
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
