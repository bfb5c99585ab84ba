"""What was called after which need, as a store remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

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
