"""A process among the replicas of its store: its heartbeat, its credentials and its way to the others."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.gateway.replicas.credential import Credentials
    from pegboard.gateway.replicas.forwarding import Forwarder
    from pegboard.gateway.replicas.heartbeat import Heartbeat
    from pegboard.gateway.replicas.request_state import StateSeal
    from pegboard.ports import Store


def require_address(address: str) -> str:
    """Return the URL below which the others reach this process; raises ``UsageError`` for what is none.

    >>> require_address("http://10.0.0.5:8321/")
    'http://10.0.0.5:8321'
    """
    hint = "Write it like http://10.0.0.5:8321: what the other replicas reach, without a path to an agent."
    try:
        parts = urlsplit(address)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    else:
        fits = fits and not (parts.username or parts.password or parts.query or parts.fragment)
    if not fits or not address.isascii() or not address.isprintable() or " " in address or len(address) > 500:
        raise UsageError("The address of this replica is no URL of http or https.", hint=hint)
    return address.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPeers:
    """What a replica has for the sake of the others."""

    heartbeat: Heartbeat
    credentials: Credentials
    forwarder: Forwarder
    seal: StateSeal
    store: Store

    @property
    def own(self) -> str:
        """Return the id of this replica."""
        return self.heartbeat.own.id

    async def has_ended(self, replica: str) -> bool:
        """Return whether a replica has ended; raises ``StoreError`` where that cannot be known."""
        return await self.heartbeat.find(replica) is None

    async def claim(self, call: str, seconds: float) -> bool:
        """Return whether this process goes on with a call of a replica that has ended; one alone does, once.

        Raises ``StoreError`` where that cannot be settled.
        """
        return await self.store.take_lease(f"waiting call {call}", secrets.token_hex(8), seconds=seconds)


@asynccontextmanager
async def among_replicas(store: Store, address: str) -> AsyncGenerator[ReplicaPeers | None]:
    """Announce this process at an address while the context lasts; None where no other can have its store.

    Raises ``StoreError`` where the store does not give its secret.
    """
    if not store.lasts:
        yield None
        return
    from pegboard.gateway.replicas.credential import Credentials
    from pegboard.gateway.replicas.forwarding import Forwarder
    from pegboard.gateway.replicas.heartbeat import Heartbeat, new_replica
    from pegboard.gateway.replicas.request_state import StateSeal

    heartbeat = Heartbeat(store, new_replica(address))
    await heartbeat.start()
    given = heartbeat.key, heartbeat.own.id, heartbeat.now
    credentials = Credentials(*given)
    forwarder = Forwarder(heartbeat, credentials)
    peers = ReplicaPeers(
        heartbeat=heartbeat, credentials=credentials, forwarder=forwarder, seal=StateSeal(*given), store=store
    )
    try:
        yield peers
    finally:
        await heartbeat.close()
        await forwarder.close()
