"""The order of tools in the answer of a search, and what was called after which need (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group, Searchable

if TYPE_CHECKING:
    from pegboard.ports.score_parts import ScorePart

USES_KEPT: Final = 500
"""How many remembered uses of a principal and agent are kept."""
USE_LIFETIME: Final = 30 * 24 * 3600.0
"""For how long a use is remembered, in seconds."""


class UseRecord(NamedTuple):
    """A tool that was called, and the need after which that was, secrets masked (X5).

    ``at`` is in seconds since the epoch, ``tool`` the id of the tool.
    """

    at: float
    principal: str
    agent: str
    need: str
    tool: str


class UseStore(Protocol):
    """What was called after which need; neither two principals nor two agents share it (S1).

    Of a principal and agent the newest ``USES_KEPT`` are kept. An equal need and tool are there once, as new as the
    newest. What is ``USE_LIFETIME`` older than what is stored is removed with it, whoever it was of.
    """

    def remember_later(self, *uses: UseRecord) -> None:
        """Store uses, the newest last, within 50 ms, in a batch."""
        ...

    async def uses(self, principal: str, agent: str) -> Sequence[UseRecord]:
        """Return what is remembered and what waits to be stored, the newest last.

        It is the same object as long as nothing has changed.
        """
        ...

    async def forget_uses(self, *, principal: str | None = None, agent: str | None = None) -> int:
        """Remove what is remembered, and overwrite what a file had of it; return how many uses there were."""
        ...


UNLIKELY: Final = 0.33
"""Below which probability that anything fits an answer says so, and loads nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUse:
    """A tool that was called, and what it was needed for."""

    need: str
    tool: str
    """The id of the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankContext:
    """What the host knows of the conversation (P3).

    Attributes:
        messages: what the user said before, or what was searched for before; the newest last.
        used: what was called after which need, by this principal and agent; the newest last.
    """

    messages: tuple[str, ...] = ()
    used: tuple[PastUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One answer of a search.

    Attributes:
        found: the tool, toolkit or plugin.
        score: its relevance to the need, between 0 and 1.
        need: which of the queries it answers, from 0.
    """

    found: Tool | Group
    score: float
    need: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a ranker knows of its answers to one need.

    Attributes:
        fits: how probable it is that anything found answers the need, between 0 and 1; calibrated per catalog.
        clear: whether the best answer is so far ahead that it can be taken without asking.
        stands_out: whether the best answer is better than what a text about nothing in particular finds here.
        loads: whether it may be loaded without being asked for by its name: it is ahead of the next, and does not write
            where the need does not ask for that.
    """

    fits: float = 1.0
    clear: bool = False
    stands_out: bool = True
    loads: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The answers to all needs, best first, and what is known of each need's."""

    hits: tuple[Ranked, ...] = ()
    needs: tuple[Evidence, ...] = ()


class Ranker(Protocol):
    """An order of tools by how well they answer what is needed."""

    async def prepare(self, among: Searchable) -> None:
        """Index what is not indexed yet; a long build leaves the event loop free."""
        ...

    def rank(
        self,
        queries: Sequence[str],
        among: Searchable,
        context: RankContext,
        *,
        limit: int,
        without: Searchable | None = None,
    ) -> Ranking:
        """Return the best answers, best first, with statistics of only what may be found (P3).

        Args:
            queries: What is needed, in words or names; an exact name comes first.
            among: What may be found: the same object as long as nothing changed, so that an index over it
                can be kept. What was not prepared is indexed here and now.
            context: What the host knows of the conversation.
            limit: How many at most; each need has its share.
            without: What is not to be found, although it counts in the statistics: for operators, never for a model.

        Returns:
            What was found, with scores; what has no relevance at all is not among it.
        """
        ...

    def parts(
        self, query: str, among: Searchable, context: RankContext, found: Sequence[Tool | Group]
    ) -> tuple[tuple[ScorePart, ...], ...]:
        """Return what the scores are made of that :meth:`rank` gives for one need.

        The parts of each score stand in the order of ``found``, the greatest first; none of what is not among it.
        """
        ...
