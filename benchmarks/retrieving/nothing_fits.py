"""Whether a search knows when nothing fits: each request with its tools there, and with them taken away."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.retrieving.measures import RESAMPLES
from benchmarks.retrieving.sets import Query, QuerySet
from pegboard.core.model.tools import Tool
from pegboard.ports import UNLIKELY, RankContext, Ranking
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker

FIRST = 5
Rankers = Mapping[str, Callable[[], ToolRanker]]


def rankers(tables: Path | None, name: str) -> Rankers:
    """Return our rankers by the names of their rows; with the table that a set had no part in where there is one."""
    known: dict[str, Callable[[], ToolRanker]] = {
        "Pegboard, lexical": ToolRanker,
        "Pegboard": lambda: ToolRanker(Embedding()),
    }
    if tables is not None:
        known["Pegboard, set excluded"] = lambda: ToolRanker(Embedding(tables / f"without_{name}.npz"))
    return known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """What a ranker said of the requests of a set, one number for each.

    Attributes:
        there: how probable it is that something fits, with the tools there.
        away: the same with the tools that the request needs taken away.
        clear: whether the first answer was called clear, the tools there.
        right: whether it is one that is needed.
        halves: to which half the request belongs.
    """

    there: np.ndarray
    away: np.ndarray
    clear: np.ndarray
    right: np.ndarray
    halves: np.ndarray

    def row(self) -> dict[str, object]:
        low, high = self._interval()
        halves = [area(self.there[self.halves == half], self.away[self.halves == half]) for half in (0, 1)]
        clear = self.right[self.clear]
        return {
            "AUC": f".{round(100 * area(self.there, self.away)):02} (.{round(100 * low):02}–.{round(100 * high):02})",
            "AUC halves": " / ".join(f".{round(100 * half):02}" for half in halves),
            "false alarms %": round(100 * float((self.there < UNLIKELY).mean()), 1),
            "hedged %": round(100 * float((self.away < UNLIKELY).mean()), 1),
            "hedged % halves": " / ".join(
                f"{100 * float((self.away[self.halves == half] < UNLIKELY).mean()):.1f}" for half in (0, 1)
            ),
            "clear %": round(100 * float(self.clear.mean()), 1),
            "clear, right %": round(100 * float(clear.mean()), 1) if len(clear) else math.nan,
        }

    def _interval(self) -> tuple[float, float]:
        """Return between what the area lies in 95 of 100 resamples of the requests."""
        chance, size = np.random.default_rng(0), len(self.there)
        chosen = chance.integers(0, size, size=(RESAMPLES, size))
        low, high = np.percentile([area(self.there[rows], self.away[rows]) for rows in chosen], (2.5, 97.5))
        return float(low), float(high)


def area(there: np.ndarray, away: np.ndarray) -> float:
    """Return how often a request with its tools has more than one without, a tie counting half (AUC)."""
    ordered = np.sort(away)
    wins = np.searchsorted(ordered, there, "left") + np.searchsorted(ordered, there, "right")
    return float(wins.mean() / 2 / len(away))


def judged(ranker: ToolRanker, given: QuerySet) -> Judged:
    """Return what a ranker says of the requests of a set: the tools are really gone, the index is another."""
    asyncio.run(ranker.prepare(given.among))
    there: list[float] = []
    away: list[float] = []
    clear: list[bool] = []
    right: list[bool] = []
    for query in given.queries:
        ranking = ranker.rank([query.text], given.among, RankContext(), limit=FIRST)
        gold = frozenset[str]().union(*query.gold)
        first = ranking.hits[0].found if ranking.hits else None
        there.append(ranking.needs[0].fits)
        clear.append(ranking.needs[0].clear)
        right.append(isinstance(first, Tool) and first.wire in gold)
        away.append(_without(ranker, given, query, gold).needs[0].fits)
    halves = np.array([query.half for query in given.queries])
    return Judged(
        there=np.array(there), away=np.array(away), clear=np.array(clear), right=np.array(right), halves=halves
    )


def _without(ranker: ToolRanker, given: QuerySet, query: Query, gold: frozenset[str]) -> Ranking:
    rest = replace(given.among, tools=tuple(tool for tool in given.among.tools if tool.wire not in gold))
    return ranker.rank([query.text], rest, RankContext(), limit=FIRST)
