"""How well each row answers a query, by words, meaning and past use, and what that tells of the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pegboard.ports import Evidence
from pegboard.search.analysis.everyday import Intent, is_courtesy
from pegboard.search.index import Index
from pegboard.search.index_segment import SATURATION, Flags, Floats, Impacts, Postings, Small, added_up
from pegboard.search.queries import ParsedQuery, parse_query

NAME_COVERAGE: Final = 0.25
WHOLE, BEST_SENTENCE = 0.88, 0.12
PLUGIN_EVIDENCE: Final = 0.15
HIGHEST: Final = (SATURATION + 1) * (1 + NAME_COVERAGE) * (1 + PLUGIN_EVIDENCE)
"""No score is higher."""

MOST: Final = 0.99
"""No score is higher but that of an exact name, which is 1."""
LEAD: Final = 1.2
AHEAD: Final = 1.05
"""The best is loaded without being asked for where it leads the second by this factor."""
COVERED: Final = 0.9
"""The best is clear where it leads the second by this factor and the query has this share of its name."""

LEAST_WORDS: Final = 0.45
LEAST_IN_CONVERSATION: Final = 0.35
COVERED_NAME: Final = 0.3
"""The share of the words: the least, less where it is read with messages, more where it names a tool in full."""
NEAR_TOP: Final = 0.6
"""The tools whose names count for that have this part of the best lexical score."""
LITTLE_WORDS: Final = 0.8
LITTLE_MEANING: Final = 0.5
"""Where even the best row has less, all count less: a weak best is to lose against past use and the other part."""
READ_AGAINST: Final = 0.85
"""What a tool that writes counts for a request to read; a request to write often begins with a look."""
UNRELATED: Final = 0.15
"""A tool that shares no word with the query and no more meaning than this is no answer."""

SAMPLE, OF_LARGE = 96, 16
"""So many names are asked for, each with its own tool left aside, to learn what nothing scores; fewer where many."""
QUARTILE: Final = 25
MOST_LEAD: Final = 3.0
_REACHED, _NAMED, _LEADING, _BASE = 0.72, 0.28, 0.26, -1.26
"""A logistic fit on the first half of the development queries, with their tools and with them taken away."""

_WITH_MEANING: Final = np.array([1.207, 2.111, -1.652, -0.085, 4.029])
_BASE_WITH_MEANING: Final = -3.82
"""With what is known of meaning: chosen on the first half of the development queries, with the table as shipped and
with each set excluded from its training, so that with the shipped table at most one in ten of the searches whose tools
are there has less than :data:`pegboard.ports.UNLIKELY`, whatever the set; `docs/retrieval.md` has how many of the
others, and what it is with the set excluded. A query that says much and finds little is likelier to have no answer;
where tools are near each other, another may do as well.
"""


STANDS_OUT: Final = 4.5
"""From here on an answer stands out: so many times the spread of the background is it above it."""
_IN_WORDS: Final = 2.0
"""How many spreads count as much as a best answer in words that is as good as wrong answers usually are. Both were
chosen on the first half of the messages in `benchmarks/messages`: `docs/retrieval.md` has what became of the other.
"""
_ALONE: Final = 0.5
"""How good the best answer in words has to be where nothing is known of meaning."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LexicalScores:
    """How well each row answers one query.

    Attributes:
        scores: for each row, 0 where it shares no word with the query; comparable between queries and catalogs,
            at most :data:`HIGHEST`.
        coverage: for each row the share of its name that the query names, between 0 and 1, by weight.
        exact: the rows whose name the query is, best first; then the one whose name it begins.
    """

    scores: Floats
    coverage: Floats
    exact: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundNearness:
    """How near texts about nothing in particular come to what may be found.

    Attributes:
        usual: the middle of how near their nearest rows are.
        spread: how much that varies.
    """

    usual: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What the score of a row is made of: ``words`` is what a point of its lexical score counts in it."""

    words: float = 1.0
    meaning: float = 0.0
    used: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlendedScores:
    """One score for each row, and what it was made of.

    Attributes:
        scores: how well each row answers, between 0 and the highest lexical score.
        words: what a point of the lexical score counts in it.
        meaning: what a point of nearness counts.
        scale: what a point of past use counts.
        near: how near each row is.
        gained: what each row gains by past use, or None.
        unrelated: the rows that are no answers by words and meaning.
    """

    scores: Floats
    words: float
    meaning: float
    scale: float
    near: NDArray[np.floating]
    gained: Floats | None
    unrelated: Flags

    def shares(self, row: int) -> Shares:
        """Return what the score of a row is made of."""
        meaning = 0.0 if self.unrelated[row] else self.meaning * float(self.near[row])
        used = 0.0 if self.gained is None else self.scale * float(self.gained[row])
        return Shares(words=0.0 if self.unrelated[row] else self.words, meaning=meaning, used=used)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FusedScores:
    """How well each row answers by everything that is known, and what that is measured by.

    Attributes:
        blend: how well each row answers, and what that is made of.
        cosines: how near it is to the query in meaning alone.
        said: how much the query says: the length of the sum of its pieces' rows.
        usual: how near the nearest other usually is to what one of the rows is for.
        background: how near texts about nothing in particular come to the rows.
    """

    blend: BlendedScores
    cosines: NDArray[np.float32]
    said: float
    usual: float
    background: BackgroundNearness


def lexical_scores(query: ParsedQuery, index: Index) -> LexicalScores:
    """Return how well each row of an index answers a query in words."""
    scores, coverage = _by_number(query, index)
    scores, coverage = index.by_row(scores), index.by_row(coverage)
    np.divide(coverage, index.name_mass, out=coverage, where=index.name_mass > 0)
    scores *= 1 + NAME_COVERAGE * coverage
    evidence = index.plugins.best(scores)
    evidence *= PLUGIN_EVIDENCE
    np.add(scores, evidence, out=scores, where=scores > 0)
    return LexicalScores(scores=scores, coverage=coverage, exact=tuple(index.named(query.text)))


def _by_number(query: ParsedQuery, index: Index) -> tuple[Floats, Floats]:
    """Return for each document the score of its words, and the weight of the words of its name."""
    scores = [_segment_scores(query, s.postings, s.size) for s in index.segments]
    names = [_name_scores(query, index, s.name_postings, s.size) for s in index.segments]
    return (np.concatenate(scores), np.concatenate(names)) if len(scores) > 1 else (scores[0], names[0])


def _segment_scores(query: ParsedQuery, postings: Postings, size: int) -> Floats:
    """Return the whole query's score, a little of it that of its best sentence."""
    spans = [(term, *postings.span(term.number)) for term in query.terms]
    spans = [(term, first, last) for term, first, last in spans if last > first]
    if not spans or not query.mass:
        return np.zeros(size)
    documents = [postings.documents[first:last] for _, first, last in spans]
    impacts = [postings.impacts[first:last] * term.weight for term, first, last in spans]
    scores = _add_impacts(documents, impacts, size) / query.mass
    if not query.sentences:
        return scores
    best = np.zeros(size)
    for number, mass in enumerate(query.sentences):
        chosen = [at for at, (term, _, _) in enumerate(spans) if number in term.sentences]
        if chosen and mass:
            part = _add_impacts([documents[at] for at in chosen], [impacts[at] for at in chosen], size)
            np.maximum(best, part / mass, out=best)
    return WHOLE * scores + BEST_SENTENCE * best


def _add_impacts(documents: list[Small], impacts: list[Impacts], size: int) -> Floats:
    """Return for each document the sum of what its words count, added up in the order of the query."""
    return added_up(np.concatenate(documents), np.concatenate(impacts), size)


def _name_scores(query: ParsedQuery, index: Index, postings: Postings, size: int) -> Floats:
    spans = [(stem, *postings.span(stem)) for stem in query.stems]
    spans = [(stem, first, last) for stem, first, last in spans if last > first]
    if not spans:
        return np.zeros(size)
    weights = np.repeat([index.weight(stem) for stem, _, _ in spans], [last - first for _, first, last in spans])
    return added_up(np.concatenate([postings.documents[first:last] for _, first, last in spans]), weights, size)


def blend_scores(
    lexical: LexicalScores,
    cosines: NDArray[np.float32],
    gained: Floats | None = None,
    *,
    in_conversation: bool = False,
) -> BlendedScores:
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
    near, high = _scale_to_range(cosines), float(cosines.max())
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
    return BlendedScores(
        scores=scores * scale,
        words=scale * share / least,
        meaning=scale * (1 - share),
        scale=scale,
        near=near,
        gained=gained,
        unrelated=unrelated,
    )


def _scale_to_range(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = float(cosines.min()), float(cosines.max())
    return (cosines - low) / max(high - low, LITTLE_MEANING)


def less_for_writing(scores: Floats, intent: Intent, index: Index) -> Floats:
    """Return the scores, those of rows that write less where the request is one to read."""
    return np.where(index.effects < 0, READ_AGAINST * scores, scores) if intent == "read" else scores


def relevance(score: float) -> float:
    """Return a score as a number between 0 and 1 that grows with it, below that of an exact name."""
    return round(min(MOST, score / HIGHEST), 4)


def calibrate_index(index: Index) -> Index:
    """Return the index with what the best wrong answer usually reaches: names of its own, each left aside in turn."""
    reached: list[float] = []
    for row in index.sample_rows(SAMPLE, OF_LARGE):
        query = parse_query(index.documents[row].name, index)
        scores = lexical_scores(query, index).scores
        scores[row] = 0.0
        reached.append(_score_by_length(float(scores.max()), query))
    return replace(index, usual=max(float(np.percentile(reached, QUARTILE)), 1.0)) if reached else index


def evidence(
    query: ParsedQuery,
    lexical: LexicalScores,
    rows: Sequence[int],
    index: Index,
    intent: Intent,
    scores: Floats,
    fused: FusedScores | None = None,
) -> Evidence:
    """Return what is known of the answers to one query.

    Args:
        query: The query as the index understands it.
        lexical: How well each row answers in words.
        rows: The best, in order.
        index: What may be found.
        intent: Whether it asks to read or to write something.
        scores: How well each row answers by everything that is known.
        fused: How well each row answers in words and meaning, where that is known.
    """
    if not rows:
        return Evidence(fits=0.0, stands_out=False)
    if lexical.exact:
        return Evidence(clear=len(lexical.exact) == 1)
    first, second = rows[0], rows[1] if len(rows) > 1 else None
    lead = MOST_LEAD
    if second is not None and scores[second] > 0:
        lead = min(MOST_LEAD, float(scores[first] / scores[second]))
    covered = float(lexical.coverage[first])
    reached = _score_by_length(float(lexical.scores[first]), query) / index.usual
    if fused is None:
        odds = _REACHED * reached + _NAMED * covered + _LEADING * lead + _BASE
    else:
        near, known = float(fused.cosines[first]), query.known / max(query.mass, 1e-9)
        odds = float(_WITH_MEANING @ (reached, near, known, fused.said, fused.usual)) + _BASE_WITH_MEANING
    return Evidence(
        fits=round(1 / (1 + math.exp(-odds)), 4),
        clear=lead >= LEAD and covered >= COVERED,
        stands_out=_stands_out(reached, fused) and not is_courtesy(query.text),
        loads=lead >= AHEAD and (index.effects[first] >= 0 or intent == "write"),
    )


def _stands_out(reached: float, fused: FusedScores | None) -> bool:
    """Return whether a query finds something better than what a text about nothing in particular finds.

    Args:
        reached: the words of the best answer, as a share of what wrong answers usually reach.
        fused: How near each row is, and how near such texts come, where that is known.
    """
    if fused is None:
        return reached >= _ALONE
    background = fused.background
    above = (float(fused.cosines.max()) - background.usual) / background.spread
    return above + _IN_WORDS * reached >= STANDS_OUT


def _score_by_length(score: float, query: ParsedQuery) -> float:
    """Return a score that counts more in a query of more words: chance reaches it less."""
    return score * math.sqrt(query.mass)
