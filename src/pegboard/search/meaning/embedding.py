"""What a ranker knows of queries and documents beyond their words (P3); it imports nothing heavy at the start."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from pegboard.core.model.tools import Tool
from pegboard.ports import RankContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pegboard.search.index import Index
    from pegboard.search.meaning.vectors import DocumentVectors, ExampleVectors, QueryVectors
    from pegboard.search.queries import ParsedQuery
    from pegboard.search.scores import BackgroundNearness, FusedScores, LexicalScores

log = logging.getLogger("pegboard")

EVERYDAY: Final = 0.5
"""How much the words of tools that everyday words stand for count beside the query."""
EXAMPLE: Final = 0.8
"""How much the nearness to an example request counts; a row is as near as the nearest of what is known of it."""
LARGE: Final = 10_000
"""In what is larger the sentences of a query are not compared one by one: each takes half a millisecond."""


class Embedding:
    """What a query and a document have in common in meaning, in one score with their words and past use.

    The table is read when it is needed for the first time.
    """

    def __init__(self, table: Path | None = None) -> None:
        """Make it of the table in a file, or of the one of this package."""
        self._table = table
        self._read: tuple[DocumentVectors, QueryVectors] | None = None
        self._unreadable = False
        self._rows: tuple[Index, Mapping[str, int]] | None = None
        self._examples: ExampleVectors | None = None
        self._usual: WeakKeyDictionary[Index, float] = WeakKeyDictionary()
        self._background: WeakKeyDictionary[Index, BackgroundNearness] = WeakKeyDictionary()

    def prepare(self, index: Index) -> None:
        """Read what is new among the rows of an index, and how near they are to each other.

        It runs in the thread that builds the index.
        """
        parts = self._parts()
        if parts is not None:
            parts[0].matrices(index)
            self._example_vectors().prepare(index, parts[0].table)
            self._usual_in(index, *parts)
            self._background_of(index, parts[0])

    def fuse_scores(
        self, query: ParsedQuery, context: RankContext, lexical: LexicalScores, index: Index
    ) -> FusedScores | None:
        """Return how well each row answers a query, by words, by meaning and by past use.

        Args:
            query: What is searched for, as the index understands it.
            context: What the host knows of the conversation.
            lexical: How well each row answers in words.
            index: What may be found, prepared or not.

        Returns:
            The scores, or None where the table cannot be read: words alone count then.
        """
        import numpy as np

        from pegboard.search.meaning.vectors import gains, information_in, nearness
        from pegboard.search.scores import FusedScores, blend_scores

        parts = self._parts()
        if parts is None or not index.size:
            return None
        vectors, queries = parts
        vector = queries.in_conversation(query.text, context.messages)
        alike = self._example_vectors().nearness(vector, index, vectors.table)
        if query.meant:
            vector = np.add(vector, np.float32(EVERYDAY) * queries.vector(" ".join(query.meant)), dtype=np.float32)
        gained = gains(context.used, vector, queries, self._by_id(index), index.size) if context.used else None
        sentences = queries.sentences(query.text) if index.size <= LARGE else []
        cosines = vectors.cosines([vector, *sentences], index)
        near = nearness(cosines)
        if alike is not None:
            near = np.maximum(near, np.float32(EXAMPLE) * alike)
        blend = blend_scores(lexical, near, gained, in_conversation=bool(context.messages))
        usual = self._usual_in(index, vectors, queries)
        said_in_query, background = information_in(query.text, vectors.table), self._background_of(index, vectors)
        return FusedScores(blend=blend, cosines=cosines[0], said=said_in_query, usual=usual, background=background)

    def _example_vectors(self) -> ExampleVectors:
        if self._examples is None:
            from pegboard.search.meaning.vectors import ExampleVectors

            self._examples = ExampleVectors()
        return self._examples

    def _usual_in(self, index: Index, vectors: DocumentVectors, queries: QueryVectors) -> float:
        """Return how near the nearest other row usually is to what a row is for: a property of the catalog (P3)."""
        from pegboard.search.meaning.vectors import usually_nearest

        known = self._usual.get(index)
        if known is None:
            known = self._usual[index] = usually_nearest(vectors, queries, index)
        return known

    def _background_of(self, index: Index, vectors: DocumentVectors) -> BackgroundNearness:
        """Return how near texts about nothing in particular come to an index: a property of the catalog (P3)."""
        from pegboard.search.meaning.vectors import background

        known = self._background.get(index)
        if known is None:
            known = self._background[index] = background(vectors, index)
        return known

    def _parts(self) -> tuple[DocumentVectors, QueryVectors] | None:
        if self._read is None and not self._unreadable:
            from pegboard.search.meaning.vectors import DocumentVectors, QueryVectors, by_table
            from pegboard.search.meaning.word_vectors import WrongTableError, read_vectors, shipped_vectors

            try:
                table = shipped_vectors() if self._table is None else read_vectors(self._table)
            except WrongTableError as error:
                self._unreadable = True
                log.warning("searches go by words alone: %s; install pegboard again", error)
            else:
                self._read = DocumentVectors(table), QueryVectors(partial(by_table, table=table))
        return self._read

    def _by_id(self, index: Index) -> Mapping[str, int]:
        """Return the row of each tool by its id."""
        known = self._rows
        if known is None or known[0] is not index:
            rows = {document.id: row for row, document in enumerate(index.documents) if isinstance(document, Tool)}
            known = self._rows = (index, rows)
        return known[1]
