"""Recall, nDCG and reciprocal rank, with intervals from resampling the queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.retrieving.sets import Query

MEASURES = ("R@1", "R@5", "R@10", "all in 5", "nDCG@5", "MRR")
RESAMPLES = 1_000
_NOWHERE = 1_000_000


def measured(query: Query, found: Sequence[str]) -> tuple[float, ...]:
    """Return what the answer to one query is worth, by :data:`MEASURES`: shares of the tools that it needs."""
    places = [min((found.index(name) for name in gold if name in found), default=_NOWHERE) for gold in query.gold]
    gain = sum(1 / math.log2(place + 2) for place in places if place < 5)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(5, len(places))))
    needed = len(places)
    return (
        sum(place < 1 for place in places) / needed,
        sum(place < 5 for place in places) / needed,
        sum(place < 10 for place in places) / needed,
        float(all(place < 5 for place in places)),
        gain / ideal,
        1 / (1 + min(places)) if min(places) < _NOWHERE else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one engine did on one set: a row for each query, in the order of the measures, and times in seconds.

    ``memory`` is in MiB, None where it was not measured.
    """

    values: np.ndarray
    halves: np.ndarray
    seconds: np.ndarray
    build: float
    memory: float | None

    def mean(self, measure: int) -> float:
        return 100 * float(self.values[:, measure].mean())

    def half(self, measure: int, half: int) -> float:
        chosen = self.values[self.halves == half, measure]
        return 100 * float(chosen.mean()) if len(chosen) else math.nan


def interval(results: Sequence[Result], measure: int) -> tuple[float, float]:
    """Return between what the mean over the sets lies in 95 of 100 resamples of their queries."""
    chance = np.random.default_rng(0)
    means = np.zeros(RESAMPLES)
    for result in results:
        values = result.values[:, measure]
        means += chance.choice(values, size=(RESAMPLES, len(values))).mean(axis=1) / len(results)
    low, high = np.percentile(100 * means, (2.5, 97.5))
    return float(low), float(high)
