"""Uses of leases that wait to be stored, since the store is lost (S7)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pegboard.board.session_info import SessionInfo
from pegboard.ports import SessionKey

MOST: Final = 10_000
"""How many uses wait at most; the oldest give way."""


class UnstoredUses:
    """The tools that were used, by session; one that is used again waits once."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._waiting: OrderedDict[tuple[SessionKey, str], SessionInfo] = OrderedDict()

    def __bool__(self) -> bool:
        """Return whether uses wait."""
        return bool(self._waiting)

    def add(self, info: SessionInfo, tool: str) -> None:
        """Note that a session has used a tool."""
        self._waiting[info.key, tool] = info
        if len(self._waiting) > self._most:
            self._waiting.popitem(last=False)

    def take(self) -> tuple[SessionInfo, str]:
        """Return the oldest use, which waits no more."""
        (_, tool), info = self._waiting.popitem(last=False)
        return info, tool
