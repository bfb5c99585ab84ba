"""How many streams of notifications may be open: each holds a connection for as long as its client wants (G2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pegboard.gateway.http.auth import HttpRefusal
from pegboard.support.mcp_constants import INTERNAL_ERROR

MOST_OF_ONE: Final = 256
"""How many streams one principal may have open, where there are files enough."""


class OpenStreams:
    """The streams that are open, by principal: a quarter of all connections is one's, half of them are everyone's."""

    def __init__(self, most_connections: int) -> None:
        self._most_of_one = min(MOST_OF_ONE, max(1, most_connections // 4))
        self._most = max(1, most_connections // 2)
        self._open: Counter[str] = Counter()

    @contextmanager
    def count_stream(self, principal: str) -> Generator[None]:
        """Count a stream while the context lasts; raises ``Refusal`` where there is no room for it."""
        if self._open[principal] >= self._most_of_one:
            text = f"There are {self._most_of_one} streams of this principal, which is the limit. Close some first."
            raise HttpRefusal(429, text, code=INTERNAL_ERROR, Retry_After="1")
        if self._open.total() >= self._most:
            raise HttpRefusal(
                503,
                "The gateway has reached its limit of open streams. Try again later.",
                code=INTERNAL_ERROR,
                Retry_After="1",
            )
        self._open[principal] += 1
        try:
            yield
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]
