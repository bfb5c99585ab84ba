"""Processes that serve one store together: which of them live, where they are reached, and what they know in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Replica(NamedTuple):
    """A process that serves a store with others.

    ``id`` is random and new for every process, at most 16 characters of ``[a-z0-9]``; ``address`` is the URL below
    which the others reach it. ``seen_at`` is when it announced itself last, by the clock of the store, in seconds since
    the epoch.
    """

    id: str
    address: str
    version: str
    seen_at: float = 0.0


class ReplicaStore(Protocol):
    """The replicas of a store (G14). All times are by its clock, whatever those of the replicas say."""

    async def announce(self, replica: Replica, *, seconds: float) -> None:
        """Store that a replica was seen now, in place of what it announced before; it counts for some seconds."""
        ...

    async def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced, if it announced anything."""
        ...

    async def replicas(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        ...

    async def now(self) -> float:
        """Return the time by the clock of the store, in seconds since the epoch."""
        ...

    def clock(self) -> float:
        """Return the time by the clock of the store as it was heard last, without waiting.

        What one process stores and another goes by expires by this clock: that of a machine may be off.
        """
        ...

    async def lease_holder(self, name: str) -> str | None:
        """Return who has the right to do something alone now (``SealedStore.take_lease``), or None."""
        ...

    async def replica_key(self) -> bytes:
        """Return the secret of the replicas: 32 bytes, made once."""
        ...
