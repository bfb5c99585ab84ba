"""The ranking by meaning: what a ranker by words is given beside them (P3)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.core.model.tools import Tool
from pegboard.ports import RankContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pegboard.search.index import Index
    from pegboard.search.lexical import LexicalScores
    from pegboard.search.meaning.fusion import Fused
    from pegboard.search.meaning.needs import Needs
    from pegboard.search.meaning.vectors import Vectors


class ByMeaning:
    """Words, the table's vectors and past use in one score; the table is read when it is asked for the first time."""

    def __init__(self, table: Path | None = None) -> None:
        """Make it of the table in a file, or of the one of this package."""
        self._table = table
        self._read: tuple[Vectors, Needs] | None = None
        self._rows: tuple[Index, Mapping[str, int]] | None = None

    def prepare(self, index: Index) -> None:
        """Read what is new among the rows of an index."""
        vectors, _ = self._parts()
        vectors.matrices(index)

    def fused(self, need: str, context: RankContext, lexical: LexicalScores, index: Index) -> Fused:
        """Return how well each row answers a need, by words, by meaning and by past use.

        Args:
            need: What is needed.
            context: What the host knows of the conversation.
            lexical: How well each row answers in words.
            index: What may be found, prepared or not.
        """
        from pegboard.search.meaning.fusion import Fused, fused, nearness
        from pegboard.search.meaning.past_use import gains

        vectors, needs = self._parts()
        vector = needs.in_conversation(need, context.messages)
        gained = gains(context.used, vector, needs, self._by_id(index), index.size) if context.used else None
        near = nearness(vectors.cosines([vector, *needs.sentences(need)], index))
        return Fused(scores=fused(lexical, near, gained, in_conversation=bool(context.messages)), nearness=near)

    def _parts(self) -> tuple[Vectors, Needs]:
        if self._read is None:
            from pegboard.search.meaning.fusion import Fused
    from pegboard.search.meaning.needs import Needs
            from pegboard.search.meaning.table import read, shipped
            from pegboard.search.meaning.vectors import Vectors

            table = shipped() if self._table is None else read(self._table)
            self._read = Vectors(table), Needs(table)
        return self._read

    def _by_id(self, index: Index) -> Mapping[str, int]:
        """Return the row of each tool by its id."""
        known = self._rows
        if known is None or known[0] is not index:
            rows = {document.id: row for row, document in enumerate(index.documents) if isinstance(document, Tool)}
            known = self._rows = (index, rows)
        return known[1]
