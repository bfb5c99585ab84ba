"""One score out of words, meaning and past use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pegboard.ports import PastUse
from pegboard.search.evidence import Blend
from pegboard.search.index_segment import Floats
from pegboard.search.lexical import HIGHEST, LexicalScores
from pegboard.search.meaning.vectors import QueryVectors, Vector

LEAST_WORDS: Final = 0.45
LEAST_IN_CONVERSATION: Final = 0.35
COVERED_NAME: Final = 0.3
"""The share of the words: the least, less where it is read with messages, more where it names a tool in full."""
WHOLE: Final = 0.6
SENTENCE: Final = 0.4
NEAR_TOP: Final = 0.6
"""The tools whose names count for that have this part of the best lexical score."""
LITTLE_WORDS: Final = 0.8
LITTLE_MEANING: Final = 0.5
"""Where even the best row has less, all count less: a weak best is to lose against past use and the other part."""
UNRELATED: Final = 0.15
"""A tool that shares no word with the query and no more meaning than this is no answer."""
PAST_USE: Final = 0.5
"""How much a tool gains that alone was called after every query like this one; the best row's score counts 1."""
LIKE: Final = 0.2
"""Queries with a lower cosine say nothing about each other."""
DOUBT: Final = 0.5
"""How much speaks against all of them: a single past query that is the same counts two thirds."""


def nearness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how near each row is to a query: to all of it, and to the sentence that is nearest.

    Args:
        cosines: A line for the whole query, then one for each of its sentences.
    """
    return cosines[0] if len(cosines) == 1 else WHOLE * cosines[0] + SENTENCE * cosines[1:].max(axis=0)


def blended(
    lexical: LexicalScores,
    cosines: NDArray[np.float32],
    gained: Floats | None = None,
    *,
    in_conversation: bool = False,
) -> Blend:
    """Return how well each row answers, by words and by meaning.

    Each part counts as its share of what the best row has: their sum, and not their ranks, because a row that is far
    ahead in one of them is to stay ahead.

    Args:
        lexical: How well each row answers in words.
        cosines: How near each row is in meaning.
        gained: What each row gains by past use, where anything was used.
        in_conversation: Whether the query was read with what was said before it.
    """
    top = float(lexical.scores.max())
    near, high = _share(cosines), float(cosines.max())
    share, least = 0.0, 1.0
    words = lexical.scores
    if top > 0:
        named = float(lexical.coverage[lexical.scores >= NEAR_TOP * top].max())
        share = (LEAST_IN_CONVERSATION if in_conversation else LEAST_WORDS) + COVERED_NAME * named
        least = max(top, LITTLE_WORDS)
        words = lexical.scores / least
    scores = share * words + (1 - share) * near
    unrelated = (lexical.scores <= 0) & (cosines < UNRELATED)
    scores[unrelated] = 0
    if gained is not None:
        scores += gained
    scale = share * top + (1 - share) * HIGHEST * min(max(high, 0.0), 1.0)
    return Blend(
        scores=scores * scale,
        words=scale * share / least,
        meaning=scale * (1 - share),
        scale=scale,
        near=near,
        gained=gained,
        unrelated=unrelated,
    )


def _share(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = float(cosines.min()), float(cosines.max())
    return (cosines - low) / max(high - low, LITTLE_MEANING)


def gains(used: Sequence[PastUse], vector: Vector, queries: QueryVectors, rows: Mapping[str, int], size: int) -> Floats:
    """Return what each row gains by past use: the share of it among what was called after similar queries.

    Args:
        used: What was called after which query; a tool that is not found here counts nothing.
        vector: The query's vector.
        queries: The vectors of past queries.
        rows: The row of each tool, by id.
        size: How many rows there are.
    """
    found = np.zeros(size)
    known = [(past.need, rows[past.tool]) for past in used if past.tool in rows]
    length = float(np.linalg.norm(vector))
    if not known or not length:
        return found
    number = {query: at for at, query in enumerate(dict.fromkeys(query for query, _ in known))}
    cosines = np.stack([queries.vector(query) for query in number]) @ (vector / np.float32(length))
    alike = (np.maximum(cosines - LIKE, 0) / (1 - LIKE)) ** 2
    np.add.at(found, [row for _, row in known], alike[[number[query] for query, _ in known]])
    return found * (PAST_USE / (DOUBT + float(alike.sum())))
