"""The engines that are compared; each finds the names of tools for a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import bm25s
import Stemmer

from benchmarks.retrieving.fastmcp_engine import FastMCP
from benchmarks.retrieving.sets import Query
from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Searchable
from pegboard.ports import PastUse, RankContext
from pegboard.search.analysis.words import words
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker

FOUND = 10
"""So many tools are asked for."""
MOST_USED = 500
"""So much use is remembered."""


class Engine(Protocol):
    """An engine over one catalog; ``slow`` ones are asked fewer queries of large catalogs."""

    slow: bool

    def build(self, among: Searchable) -> None: ...

    def search(self, query: Query) -> list[str]: ...


class Ours:
    """Pegboard's ranker, asked as a search asks it.

    With ``history`` it knows what the user said before; with ``use`` what was called after the requests of earlier
    sessions, in the order of the file, never of its own.
    """

    slow = False

    def __init__(
        self,
        *,
        meaning: bool = False,
        history: bool = False,
        use: bool = False,
        table: Path | None = None,
    ) -> None:
        self.meaning = Embedding(table) if meaning else None
        self.ranker = ToolRanker(self.meaning)
        self.history, self.use = history, use

    def build(self, among: Searchable) -> None:
        self.among = among
        self.ids = {tool.wire: tool.id for tool in among.tools}
        self.used: list[tuple[int, PastUse]] = []
        asyncio.run(self.ranker.prepare(among))

    def search(self, query: Query) -> list[str]:
        hits = self.ranker.rank([query.text], self.among, self._context(query), limit=FOUND).hits
        return [hit.found.wire for hit in hits if isinstance(hit.found, Tool)]

    def called(self, query: Query) -> None:
        """Remember what a request needed; it counts for later sessions."""
        if self.use:
            names = [min(names & self.ids.keys(), default="") for names in query.gold]
            self.used += [(query.session, PastUse(need=query.text, tool=self.ids[name])) for name in names if name]

    def _context(self, query: Query) -> RankContext:
        used = tuple(use for session, use in self.used[-2 * MOST_USED :] if session != query.session)
        return RankContext(messages=query.before if self.history else (), used=used[-MOST_USED:])


class Bm25s:
    """bm25s (lucene, k1 1.2, b 0.75) over names taken apart and descriptions; also parameters and their texts."""

    slow = False

    def __init__(self, *, stemmed: bool, parameters: bool) -> None:
        self.stemmer = Stemmer.Stemmer("english") if stemmed else None
        self.parameters = parameters

    def build(self, among: Searchable) -> None:
        self.names = [tool.wire for tool in among.tools]
        self.index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self.index.index(self._tokens([self._text(tool) for tool in among.tools]), show_progress=False)

    def search(self, query: Query) -> list[str]:
        tokens = self._tokens([query.text])
        if not len(tokens[0][0] if isinstance(tokens, tuple) else tokens.ids[0]):
            return []
        rows, scores = self.index.retrieve(tokens, k=min(FOUND, len(self.names)), show_progress=False)
        return [self.names[row] for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

    def _text(self, tool: Tool) -> str:
        parts = [" ".join(words(tool.wire)), tool.description]
        properties = tool.input_schema.get("properties")
        if self.parameters and isinstance(properties, dict):
            for name, value in properties.items():
                parts.append(" ".join(words(name)))
                if isinstance(value, dict):
                    parts.append(str(value.get("description") or ""))
        return " ".join(parts)

    def _tokens(self, texts: Sequence[str]):
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=self.stemmer, show_progress=False)


ENGINES: dict[str, Callable[[], Engine]] = {
    "Pegboard, lexical": Ours,
    "Pegboard, lexical, with history": partial(Ours, history=True),
    "Pegboard": partial(Ours, meaning=True),
    "Pegboard, with history": partial(Ours, meaning=True, history=True),
    "Pegboard, with history and use": partial(Ours, meaning=True, history=True, use=True),
    "bm25s": partial(Bm25s, stemmed=False, parameters=False),
    "bm25s, stemmed": partial(Bm25s, stemmed=True, parameters=False),
    "bm25s, parameters": partial(Bm25s, stemmed=False, parameters=True),
    "bm25s, stemmed, parameters": partial(Bm25s, stemmed=True, parameters=True),
    "FastMCP 4.1.2": FastMCP,
}
"""By the names of their rows; an engine more is a line more."""


def excluded(tables: Path, name: str) -> dict[str, Callable[[], Engine]]:
    """Return our engines with the table in whose training a set had no part: ``without_NAME.npz`` in a folder."""
    table = tables / f"without_{name}.npz"
    return {
        "Pegboard, set excluded": partial(Ours, meaning=True, table=table),
        "Pegboard, set excluded, with history": partial(Ours, meaning=True, history=True, table=table),
        "Pegboard, set excluded, with history and use": partial(
            Ours, meaning=True, history=True, use=True, table=table
        ),
    }
