"""Ranking by words: BM25 over names and descriptions, an exact name first (P3)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Searchable
from pegboard.ports import Evidence, RankContext, Ranked, Ranking

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_K1, _B = 1.2, 0.75
_NAME_WEIGHT, _PLUGIN_WEIGHT = 3, 2
_KEPT = 8


def words(text: str) -> list[str]:
    """Return the words of a text, snake and camel case taken apart, in lower case.

    >>> words("readFile from_disk HTTPServer")
    ['read', 'file', 'from', 'disk', 'http', 'server']
    """
    return [word.casefold() for word in _WORD.findall(text)]


class _Index:
    """The statistics of one set of permitted tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tools
        self.names: dict[str, list[int]] = {}
        self.postings: dict[str, list[tuple[int, int]]] = {}
        lengths: list[int] = []
        for position, tool in enumerate(tools):
            for name in {tool.wire.casefold(), tool.name.casefold(), tool.id.casefold()}:
                self.names.setdefault(name, []).append(position)
            counts = Counter(_document(tool))
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self.postings.setdefault(word, []).append((position, count))
        self.lengths = lengths
        self.mean = sum(lengths) / len(lengths) if lengths else 1.0

    def scores(self, query: str) -> Mapping[int, float]:
        """Return BM25 of every tool that shares a word with the query."""
        found: dict[int, float] = {}
        total = len(self.tools)
        for word in dict.fromkeys(words(query)):
            postings = self.postings.get(word, ())
            if not postings:
                continue
            idf = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for position, count in postings:
                norm = _K1 * (1 - _B + _B * self.lengths[position] / self.mean)
                found[position] = found.get(position, 0.0) + idf * count * (_K1 + 1) / (count + norm)
        return found


def _document(tool: Tool) -> list[str]:
    properties: object = tool.input_schema.get("properties")
    parameters = ""
    if isinstance(properties, Mapping):
        parameters = " ".join(map(str, cast("Mapping[str, object]", properties)))
    return (
        words(tool.name) * _NAME_WEIGHT
        + words(tool.plugin) * _PLUGIN_WEIGHT
        + words(tool.description)
        + words(parameters)
    )


class LexicalRanker:
    """A ranker by BM25; the index over a set of permitted tools is made once and kept while in use."""

    def __init__(self) -> None:
        self._indexes: list[_Index] = []

    async def prepare(self, among: Searchable) -> None:
        """Index what is not indexed yet."""
        self._index(among.tools)

    def rank(
        self,
        queries: Sequence[str],
        among: Searchable,
        context: RankContext,  # noqa: ARG002
        *,
        limit: int,
    ) -> Ranking:
        """Return the best tools for the queries, in turns: the best of each, then the second best."""
        index = self._index(among.tools)
        columns = [self._column(index, query, limit) for query in queries]
        merged: dict[int, float] = {}
        for rank in range(limit):
            for column in columns:
                if rank < len(column):
                    position, score = column[rank]
                    merged.setdefault(position, score)
        found = [Ranked(found=index.tools[p], score=round(s, 4)) for p, s in merged.items()]
        needs = tuple(Evidence(fits=1.0 if column else 0.0) for column in columns)
        return Ranking(hits=tuple(found[:limit]), needs=needs)

    def _column(self, index: _Index, query: str, limit: int) -> list[tuple[int, float]]:
        exact = index.names.get(query.strip().casefold(), [])
        scores = index.scores(query)
        top = max(scores.values(), default=1.0) or 1.0
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[: limit + len(exact)]
        rest = [(p, 0.99 * score / top) for p, score in best if p not in exact]
        return [(position, 1.0) for position in exact] + rest

    def _index(self, permitted: Sequence[Tool]) -> _Index:
        for index in self._indexes:
            if index.tools is permitted:
                return index
        index = _Index(permitted)
        self._indexes = [index, *self._indexes[: _KEPT - 1]]
        return index
