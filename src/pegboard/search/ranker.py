"""The ranker: by words, and by meaning where there is one to ask (P3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group, Searchable
from pegboard.ports import Evidence, RankContext, Ranked, Ranking

if TYPE_CHECKING:
    from pegboard.ports import ScorePart
    from pegboard.search.index import Index
    from pegboard.search.index_segment import Flags
    from pegboard.search.meaning.embedding import Embedding
    from pegboard.search.queries import ParsedQuery
    from pegboard.search.score_parts import KeptDocumentWords
    from pegboard.search.scores import FusedScores, LexicalScores
    from pegboard.search.vocabulary import Vocabulary

KEPT: Final = 8
"""So many indexes are kept: one for each set of what may be found that is in use."""
AT_ONCE: Final = 300
"""So many documents are indexed at once rather than in a thread of their own."""
MOST_QUERIES: Final = 50
"""Further queries of one search are not ranked."""


class AnsweredQuery(NamedTuple):
    """The answer to one query, kept until the next one: who asks what its scores are made of asks at once."""

    text: str
    context: RankContext
    of: Index
    parsed: ParsedQuery
    lexical: LexicalScores
    fused: FusedScores | None
    rows: Sequence[int]


class ToolRanker:
    """A ranker by words, and by meaning; the index over what may be found is made once and kept while in use."""

    def __init__(self, embedding: Embedding | None = None) -> None:
        self._embedding = embedding
        self._vocabulary: Vocabulary | None = None
        self._indexes: tuple[Index, ...] = ()
        self._building: dict[Searchable, Future[Index]] = {}
        self._newest: AnsweredQuery | None = None
        self._document_words: KeptDocumentWords | None = None
        self._hidden: tuple[Index, Searchable, Flags] | None = None
        self._lock = Lock()

    async def prepare(self, among: Searchable) -> None:
        """Index what is not indexed yet, in a thread where that is long: the first time that is reading the table."""
        if self._find_index(among) is not None:
            return
        if self._indexes and len(among.tools) + len(among.groups) <= AT_ONCE:
            self.index(among)
            return
        await asyncio.shield(asyncio.wrap_future(self._start_build(among)))

    def index(self, among: Searchable) -> Index:
        """Return the index over what may be found: the one that is kept or being made, or a new one."""
        kept = self._find_index(among)
        if kept is not None:
            return kept
        with self._lock:
            building = self._building.get(among)
        return self._build_index(among) if building is None else building.result()

    def rank(
        self,
        queries: Sequence[str],
        among: Searchable,
        context: RankContext,
        *,
        limit: int,
        without: Searchable | None = None,
    ) -> Ranking:
        """Return the best answers in turns: the best of each query, then the second best; an exact name first."""
        index = self.index(among)
        hidden = None if without is None else self._rows_of(without, index)
        columns: list[list[int]] = []
        scores: list[dict[int, float]] = []
        evidence: list[Evidence] = []
        for query in queries[:MOST_QUERIES]:
            rows, known, found = self._rank_one(query, index, context, limit, hidden)
            columns.append(rows)
            scores.append(known)
            evidence.append(found)
        evidence += [Evidence(fits=0.0)] * (len(queries) - len(evidence))
        hits = tuple(
            Ranked(found=index.documents[row], score=scores[number][row], need=number)
            for number, row in _take_in_turn(columns, limit)
        )
        return Ranking(hits=hits, needs=tuple(evidence))

    def _rank_one(
        self, text: str, index: Index, context: RankContext, limit: int, hidden: Flags | None
    ) -> tuple[list[int], dict[int, float], Evidence]:
        """Return the best rows for one query, their scores, and what is known of them."""
        from pegboard.search.analysis.everyday import intent_of
        from pegboard.search.index import top_rows
        from pegboard.search.queries import parse_query
        from pegboard.search.scores import evidence, less_for_writing, lexical_scores, relevance

        query = parse_query(text, index, context.messages)
        lexical = lexical_scores(query, index)
        fused = None if self._embedding is None else self._embedding.fuse_scores(query, context, lexical, index)
        scores = lexical.scores if fused is None else fused.blend.scores
        intent = intent_of(text)
        scores = less_for_writing(scores, intent, index)
        exact = lexical.exact
        if hidden is not None:
            scores[hidden] = 0.0
            exact = tuple(row for row in exact if not hidden[row])
        rows = top_rows(scores, exact, index, limit)
        known = {row: 1.0 if row in exact else relevance(float(scores[row])) for row in rows}
        self._newest = AnsweredQuery(text, context, index, query, lexical, fused, rows)
        return rows, known, evidence(query, lexical, rows, index, intent, scores, fused)

    def parts(
        self, query: str, among: Searchable, context: RankContext, found: Sequence[Tool | Group]
    ) -> tuple[tuple[ScorePart, ...], ...]:
        """Return what the scores are made of that :meth:`rank` gives for one query."""
        from pegboard.search.analysis.everyday import intent_of
        from pegboard.search.queries import query_words
        from pegboard.search.score_parts import KeptDocumentWords, ScoredQuery, parts_of, rows_of
        from pegboard.search.scores import Shares

        index = self.index(among)
        newest = self._newest
        if newest is None or newest.of is not index or (newest.text, newest.context) != (query, context):
            self._rank_one(query, index, context, 0, None)
            newest = self._newest
            assert newest is not None
        fused = newest.fused
        self._document_words = self._document_words or KeptDocumentWords()
        scored = ScoredQuery(
            query=newest.parsed,
            asked=query_words(query, index, context.messages),
            lexical=newest.lexical,
            index=index,
            read=self._document_words,
            reads=intent_of(query) == "read",
        )
        return tuple(
            () if row is None else parts_of(scored, row, Shares() if fused is None else fused.blend.shares(row))
            for row in rows_of(found, index, newest.rows)
        )

    def _rows_of(self, these: Searchable, index: Index) -> Flags:
        """Return which rows of an index are among others; groups by what they are called."""
        known = self._hidden
        if known is None or known[0] is not index or known[1] is not these:
            from pegboard.search.score_parts import rows_among

            known = self._hidden = (index, these, rows_among(these, index))
        return known[2]

    def _find_index(self, among: Searchable) -> Index | None:
        for place, index in enumerate(self._indexes):
            if index.among is among:
                if place:
                    self._keep_index(index)
                return index
        return None

    def _keep_index(self, index: Index) -> None:
        with self._lock:
            others = [other for other in self._indexes if other.among is not index.among]
            self._indexes = (index, *others[: KEPT - 1])

    def _build_index(self, among: Searchable) -> Index:
        from pegboard.search.index import build
        from pegboard.search.scores import calibrate_index
        from pegboard.search.vocabulary import Vocabulary

        with self._lock:
            if self._vocabulary is None:  # an empty one counts: another thread is about to fill it
                self._vocabulary = Vocabulary()
            vocabulary = self._vocabulary
        index = calibrate_index(build(among, vocabulary, self._indexes))
        if self._embedding is not None:
            self._embedding.prepare(index)
        self._keep_index(index)
        return index

    def _start_build(self, among: Searchable) -> Future[Index]:
        """Return the index that is being made in a thread of its own."""
        with self._lock:
            building = self._building.get(among)
            if building is not None:
                return building
            future = self._building[among] = Future()
        Thread(target=self._fill, args=(among, future), name="pegboard-index", daemon=True).start()
        return future

    def _fill(self, among: Searchable, future: Future[Index]) -> None:
        """Make an index and hand it over; whoever asks after that finds it kept, or makes it again where it failed."""
        try:
            index, failure = self._build_index(among), None
            index.names.read()
        except BaseException as error:
            index, failure = None, error
        with self._lock:
            del self._building[among]
        if index is None:
            future.set_exception(failure)
        else:
            future.set_result(index)


def _take_in_turn(columns: Sequence[Sequence[int]], limit: int) -> list[tuple[int, int]]:
    """Return numbers of queries and rows: the best of each query, then the second best; each row once."""
    chosen: dict[int, int] = {}
    for place in range(max(map(len, columns), default=0)):
        for number, column in enumerate(columns):
            if place < len(column) and len(chosen) < limit:
                chosen.setdefault(column[place], number)
    return [(number, row) for row, number in chosen.items()]
