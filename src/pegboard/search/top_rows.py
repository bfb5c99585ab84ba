"""From scores to answers: the best of each query in turn, without what is the same twice over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pegboard.search.index import Index
from pegboard.search.index_segment import Floats

SAME: Final = 2
"""So many tools with equal texts may stand before others."""
STEP: Final = 0.75
SMALLEST: Final = 1e-6
"""The least score is lowered by steps until enough reach it: quicker than sorting, where most have next to nothing."""


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
        rows = [row for row in _highest(scores, count) if row not in named]
        chosen, later = _without_repeats(rows, index)
        if len(chosen) >= limit or count >= reached:
            return [*named, *chosen, *later][:limit]
        count = min(reached, 8 * count)


def _highest(scores: Floats, count: int) -> list[int]:
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


def in_turn(columns: Sequence[Sequence[int]], limit: int) -> list[tuple[int, int]]:
    """Return numbers of queries and rows: the best of each query, then the second best; each row once."""
    chosen: dict[int, int] = {}
    for place in range(max(map(len, columns), default=0)):
        for number, column in enumerate(columns):
            if place < len(column) and len(chosen) < limit:
                chosen.setdefault(column[place], number)
    return [(number, row) for row, number in chosen.items()]
