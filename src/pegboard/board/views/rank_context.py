"""What a ranker is given of the conversation, and what its answers add to it (P3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pegboard.board.observability.conversations import cut, newest
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.surface.searchable import searchable
from pegboard.ports import RankContext, Ranking

HARDLY: Final = 0.2
"""Below which probability that anything fits a search leans on earlier ones."""


async def rank_context(
    services: Services, snapshot: Snapshot, queries: Sequence[str], *, messages: Sequence[str] | None = None
) -> RankContext:
    """Return what is known of the conversation before these queries.

    Args:
        services: the services of the board.
        snapshot: the session.
        queries: what is ranked now: needs, or the user's message itself.
        messages: what the host gives of the conversation, the newest last; None takes what it gave with surfaces.

    Returns:
        The newest messages, and what was used of what is within reach (P9).

    Raises:
        StoreError: what was used cannot be read.
    """
    info, permissions = snapshot.info, snapshot.permissions
    if messages is None:
        before = info.conversation.messages_before([services.masker.value(query) for query in queries])
    else:
        before = newest(*(text for message in messages if (text := cut(message))))
    if not permissions.agent.remember:
        return RankContext(messages=before)
    used = await services.uses.within_reach(info.key, permissions, snapshot.state)
    return RankContext(messages=before, used=used)


def ranked(
    services: Services, snapshot: Snapshot, queries: Sequence[str], context: RankContext, *, limit: int
) -> Ranking:
    """Return the best answers to what is searched for, and note both: what is called next is their use."""
    ranking, _ = answered(services, snapshot, queries, context, limit=limit)
    masked = [services.masker.value(query) for query in queries]
    snapshot.info.conversation.add_search(masked, ranking, snapshot.state.turn)
    return ranking


def answered(
    services: Services, snapshot: Snapshot, queries: Sequence[str], context: RankContext, *, limit: int
) -> tuple[Ranking, RankContext]:
    """Return the best answers to what is searched for, and the context that they were ranked with; nothing is noted.

    In a gateway, which sees no message, the session's earlier searches are the context where the queries alone fit
    hardly anything; what is known of the answers is what the queries alone tell. As context of every search they
    would cost more than they bring: most searches say all that they need.
    """
    among = searchable(snapshot.permissions, snapshot.state.loadout)
    ranking = services.ranker.rank(queries, among, context, limit=limit)
    if snapshot.info.host.calls_through and not context.messages and _fits_hardly(ranking):
        masked = [services.masker.value(query) for query in queries]
        earlier = snapshot.info.conversation.searches_before(masked)
        if earlier:
            context = replace(context, messages=earlier)
            helped = services.ranker.rank(queries, among, context, limit=limit)
            ranking = replace(helped, needs=ranking.needs)
    return ranking, context


def _fits_hardly(ranking: Ranking) -> bool:
    return all(known.fits < HARDLY for known in ranking.needs)
