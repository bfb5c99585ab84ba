"""What a ranker is given of the conversation, and what is noted of its answer (P3)."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.board.observability.conversations import cut, newest
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.ports import RankContext, Ranking


async def rank_context(
    services: Services, snapshot: Snapshot, queries: Sequence[str], *, messages: Sequence[str] | None = None
) -> RankContext:
    """Return what is known of the conversation before these queries.

    Args:
        services: the services of the board.
        snapshot: the session.
        queries: what is ranked now: needs, or the user's message itself.
        messages: what the host gives of the conversation, the newest last; None takes what the session remembers.

    Returns:
        The newest messages, and what was used of what is within reach (P9).

    Raises:
        StoreError: what was used cannot be read.
    """
    info, access = snapshot.info, snapshot.access
    if messages is None:
        before = info.conversation.before([services.masker.value(query) for query in queries])
    else:
        before = newest(*(text for message in messages if (text := cut(message))))
    if not access.agent.remember:
        return RankContext(messages=before)
    used = await services.uses.within_reach(info.key, access, snapshot.state)
    return RankContext(messages=before, used=used)


def note_search(services: Services, snapshot: Snapshot, queries: Sequence[str], ranking: Ranking) -> None:
    """Note what was searched for and found: the context of later searches, and what is called next is its use."""
    masked = [services.masker.value(query) for query in queries]
    snapshot.info.conversation.searched(masked, ranking, snapshot.state.turn)
