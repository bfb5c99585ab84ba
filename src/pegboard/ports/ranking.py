"""The order of tools in the answer of a search (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.core.model.tools import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One answer of a search; ``score`` grows with relevance, between 0 and 1."""

    tool: Tool
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankContext:
    """What the host knows of the conversation: messages, and the tools that were used (P3)."""

    messages: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


class Ranker(Protocol):
    """An order of tools by how well they answer what is needed."""

    def rank(
        self,
        queries: Sequence[str],
        permitted: Sequence[Tool],
        context: RankContext,
        *,
        limit: int,
    ) -> list[Ranked]:
        """Return the best tools, best first, with statistics of only the permitted ones (P3).

        Args:
            queries: What is needed, in words or names; an exact name comes first.
            permitted: The tools that may be found: the same object as long as nothing changed, so
                that an index over it can be kept.
            context: What the host knows of the conversation.
            limit: How many at most.

        Returns:
            The tools with their scores; those without any relevance are not among them.
        """
        ...
