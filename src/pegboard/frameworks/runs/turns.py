"""The end of turns, and what the tools of a run came to."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from pegboard.board.session import Session

_COSTS: Final = logging.getLogger("pegboard")


@dataclass(slots=True)
class ReportedUsage:
    """What a provider has reported of a run: its answers, and their input tokens, all and those read from its cache."""

    answers: int = 0
    of: int = 0
    read: int = 0

    def add(self, of: int, read: int) -> None:
        """Take in the numbers of one more answer."""
        self.answers, self.of, self.read = self.answers + 1, self.of + of, self.read + read


async def end_turns(session: Session, turns: int, reported: ReportedUsage | None = None) -> None:
    """End turns of a session with a run; where the log has lines of information, one says what its tools came to.

    Args:
        session: the session.
        turns: how many; none where another run of the session goes on.
        reported: what the provider has said of the run; numbers that are not of all its requests do not count.
    """
    for _ in range(turns):
        await session.end_turn()
    if not turns:
        return
    if not _COSTS.isEnabledFor(logging.INFO):
        return
    cost = await session.run_cost()
    if reported is not None and reported.answers == cost.requests and 0 <= reported.read <= reported.of:
        cost = await session.run_cost(read=reported.read, of=reported.of)
    if cost.requests:
        _COSTS.info("session %r of %s: %s", session.key.session, session.key.agent, cost.line())
