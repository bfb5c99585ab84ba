"""The order of tools in the answer of a search (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.core.model.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Hold one answer of a search; ``score`` grows with relevance, between 0 and 1."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankContext:
    """Hold what the host knows of the conversation (P3)."""

    messages: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


class Ranker(Protocol):
    """Order tools by how well they answer what is needed."""

    def rank(
        self,
        queries: Sequence[str],
        permitted: Sequence[Tool],
        context: RankContext,
        *,
        limit: int,
    ) -> list[Ranked]:
        """Return the best tools, best first, with statistics of only the permitted ones (P3).

        An exact name comes first. ``permitted`` is the same object as long as nothing changed, so
        that an index over it can be kept.
        """
        ...
