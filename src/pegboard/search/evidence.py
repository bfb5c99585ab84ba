"""What is known of the answers to a need: whether anything fits, and whether the best is clearly the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports import Evidence
from pegboard.search.blocks import Floats
from pegboard.search.lexical import HIGHEST, LexicalScores

LEAD: Final = 1.5
"""So many times the second best's score is a clear lead."""
COVERED: Final = 0.5


def relevance(score: float) -> float:
    """Return a score as a number between 0 and 1 that grows with it, below that of an exact name."""
    return round(min(0.99, score / HIGHEST), 4)


def evidence(lexical: LexicalScores, scores: Floats, rows: Sequence[int]) -> Evidence:
    """Return what is known of the answers to one need.

    Args:
        lexical: How well each row answers in words.
        scores: How well each row answers, all things considered.
        rows: The best, in order.
    """
    if not rows:
        return Evidence(fits=0.0)
    if lexical.exact:
        return Evidence(clear=len(lexical.exact) == 1)
    first = float(scores[rows[0]])
    second = float(scores[rows[1]]) if len(rows) > 1 else 0.0
    clear = first >= LEAD * second and float(lexical.coverage[rows[0]]) >= COVERED
    return Evidence(fits=min(1.0, first / HIGHEST * 2), clear=clear)
