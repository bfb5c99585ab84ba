"""How well each tool and group answers a query in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pegboard.search.index import Index
from pegboard.search.index_segment import SATURATION, Floats, Impacts, Postings, Small, added_up
from pegboard.search.queries import ParsedQuery

NAME_COVERAGE: Final = 0.25
WHOLE, BEST_SENTENCE = 0.88, 0.12
PLUGIN_EVIDENCE: Final = 0.15


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


HIGHEST: Final = (SATURATION + 1) * (1 + NAME_COVERAGE) * (1 + PLUGIN_EVIDENCE)
"""No score is higher."""


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
    scores = _added(documents, impacts, size) / query.mass
    if not query.sentences:
        return scores
    best = np.zeros(size)
    for number, mass in enumerate(query.sentences):
        chosen = [at for at, (term, _, _) in enumerate(spans) if number in term.sentences]
        if chosen and mass:
            part = _added([documents[at] for at in chosen], [impacts[at] for at in chosen], size)
            np.maximum(best, part / mass, out=best)
    return WHOLE * scores + BEST_SENTENCE * best


def _added(documents: list[Small], impacts: list[Impacts], size: int) -> Floats:
    """Return for each document the sum of what its words count, added up in the order of the query."""
    return added_up(np.concatenate(documents), np.concatenate(impacts), size)


def _name_scores(query: ParsedQuery, index: Index, postings: Postings, size: int) -> Floats:
    spans = [(stem, *postings.span(stem)) for stem in query.stems]
    spans = [(stem, first, last) for stem, first, last in spans if last > first]
    if not spans:
        return np.zeros(size)
    weights = np.repeat([index.weight(stem) for stem, _, _ in spans], [last - first for _, first, last in spans])
    return added_up(np.concatenate([postings.documents[first:last] for _, first, last in spans]), weights, size)
