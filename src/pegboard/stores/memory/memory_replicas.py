"""The processes that serve one store together, in the memory of this one: there are no others (G14)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Final

from pegboard.ports.replicas import Replica


class MemoryReplicas:
    """The replicas by id, each until when it counts, and their secret."""

    def __init__(self) -> None:
        self.key: Final = secrets.token_bytes(32)
        self._announced: Final[dict[str, tuple[Replica, float]]] = {}

    def announce(self, replica: Replica, *, seconds: float) -> None:
        """Note that a replica lives, for some seconds."""
        now = time.time()
        self._announced[replica.id] = replica._replace(seen_at=now), now + seconds

    def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced."""
        self._announced.pop(replica_id, None)

    def all(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        now = time.time()
        return sorted(replica for replica, until in self._announced.values() if until > now)
