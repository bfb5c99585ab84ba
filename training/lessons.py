"""What the table learns from: texts with the teacher's vectors, names with descriptions, requests with tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.retrieving.sets import QuerySet
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from pegboard.search.analysis.words import split_values as without_values
from pegboard.search.meaning.vectors import VALUES, purpose_texts
from pegboard.search.meaning.word_vectors import BESIDE, LONGEST, LONGEST_BESIDE, WordPieces
from training.rows import Floats, Rows, counted, of_length_one, share

BATCH = 512
REQUESTS, OTHERS = 128, 1_500
"""Requests of a batch, and the tools of a large catalog that stand beside theirs."""
TEMPERATURE = 0.08


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """Texts and the vectors that they are to have."""

    texts: csr_matrix
    wanted: Floats

    def learn(self, rows: Rows, rate: float, draw: np.random.Generator) -> None:
        """Move the rows towards the teacher's vectors of a batch."""
        chosen = draw.choice(self.texts.shape[0], BATCH)
        rows.learn(self.texts[chosen], -self.wanted[chosen], rate)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """The requests of a set, its tools, and which of them each request needs."""

    requests: csr_matrix
    tools: csr_matrix
    needed: Sequence[NDArray[np.int64]]

    def learn(self, rows: Rows, rate: float, draw: np.random.Generator) -> None:
        """Move requests towards the tools that they need, away from the others of the catalog."""
        chosen = draw.choice(len(self.needed), min(REQUESTS, len(self.needed)), replace=False)
        beside = np.arange(self.tools.shape[0])
        if len(beside) > OTHERS:
            beside = draw.choice(beside, OTHERS, replace=False)
        among = np.unique(np.concatenate([beside, *(self.needed[at] for at in chosen)]))
        wanted = np.zeros((len(chosen), len(among)), np.float32)
        for row, at in enumerate(chosen):
            wanted[row, np.searchsorted(among, self.needed[at])] = 1 / len(self.needed[at])
        requests, tools = self.requests[chosen], self.tools[among]
        asked, offered = rows.vectors(requests), rows.vectors(tools)
        off = (share(asked @ offered.T / TEMPERATURE) - wanted) / TEMPERATURE
        rows.learn(requests, off @ offered, rate)
        rows.learn(tools, off.T @ asked, rate)


def requests_of(given: QuerySet, pieces: WordPieces, size: int) -> Requests:
    """Return the requests of a set, cut as a search cuts them."""
    said: list[list[int]] = []
    values: list[list[int]] = []
    for query in given.queries:
        rest, found, kinds = without_values(query.text)
        said.append(pieces.ids(" ".join((rest, *kinds)))[: 4 * LONGEST])
        values.append(pieces.ids(" ".join(found))[: 4 * LONGEST])
    read = [purpose_texts(tool) for tool in given.among.tools]
    texts = counted([pieces.ids(text)[:LONGEST] for text, _ in read], size)
    beside = counted([pieces.ids(text)[:LONGEST_BESIDE] for _, text in read], size)
    row = {tool.wire: at for at, tool in enumerate(given.among.tools)}
    return Requests(
        requests=(counted(said, size) + VALUES * counted(values, size)).tocsr(),
        tools=(texts + BESIDE * beside).tocsr(),
        needed=[np.unique([row[name] for names in query.gold for name in names]) for query in given.queries],
    )


def main_directions(vectors: Floats, columns: int) -> Floats:
    """Return the directions in which the vectors differ most."""
    return np.linalg.svd(vectors.T @ vectors)[2][:columns].T


def beginnings(singles: Floats, texts: csr_matrix) -> Floats:
    """Return rows to begin with: the teacher's vector of each piece by itself, frequent pieces counting less."""
    frequency = np.asarray(texts.sum(0)).ravel()
    return singles * (1e-3 / (1e-3 + frequency / frequency.sum()))[:, None]


__all__ = ["Requests", "Texts", "beginnings", "main_directions", "of_length_one", "requests_of"]
