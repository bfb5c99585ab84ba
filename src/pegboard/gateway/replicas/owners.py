"""Who runs the servers of which there is one over all replicas, as this replica knows it (G9, G14).

What it takes is imported when such a server is first needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from pegboard.errors import StoreError
from pegboard.gateway.replicas.credential import ASKING, Credentials
from pegboard.ports import Replica
from pegboard.ports.owned_servers import OwnedServer, ServerElsewhere, SingleOwnerSource
from pegboard.support.tasks import BackgroundTasks

if TYPE_CHECKING:
    from httpx2 import Response

    from pegboard.board.services import Services
    from pegboard.gateway.replicas.peers import ReplicaPeers
    from pegboard.gateway.replicas.served_servers import ServedServers
    from pegboard.gateway.replicas.server_leases import ServerLeases
    from pegboard.gateway.replicas.server_messages import ServerQuestion

TOLD_WITHIN = 3.0
"""How long another replica may take to be told that the tools of a server have changed, in seconds."""


class ReplicaOwners:
    """The owners of servers, of one replica; it is one of them."""

    def __init__(self, services: Services, peers: ReplicaPeers, source: SingleOwnerSource) -> None:
        self.source = source
        self._services = services
        self._peers = peers
        heartbeat = peers.heartbeat
        self.credentials = Credentials(heartbeat.key, peers.own, heartbeat.now, purpose=ASKING)
        self._tasks = BackgroundTasks()
        self._closed = False

    @cached_property
    def leases(self) -> ServerLeases:
        """Return the leases of this replica."""
        from pegboard.gateway.replicas.server_leases import ServerLeases

        leases = ServerLeases(self._services.store, self._peers.heartbeat, self.source)
        leases.start()
        return leases

    @cached_property
    def served_servers(self) -> ServedServers:
        """Return what others ask of the servers of this replica."""
        from pegboard.gateway.replicas.served_servers import ServedServers

        return ServedServers(self._services, self.leases)

    async def elsewhere(self, server: OwnedServer) -> ServerElsewhere | None:
        """Return a server where another replica runs it; None where this one does, from now on."""
        from pegboard.gateway.replicas.served_servers import HERE

        if HERE.get():
            return None
        replica = await self.leases.owner(server)
        if replica is None:
            return None
        from pegboard.gateway.replicas.server_calls import ServerAtItsOwner

        return ServerAtItsOwner(server, replica, self.ask, self.leases)

    async def ask(self, replica: Replica, question: ServerQuestion) -> Response:
        """Return the response of another replica to a question; raises ``httpx2.TransportError``."""
        from pegboard.gateway.replicas.server_messages import PATH, document_line, question_to_json

        body, target = document_line(question_to_json(question)), PATH.encode()
        credential = self.credentials.issue(replica.id, "POST", target, body)
        return await self._peers.forwarder.ask(replica, target, body, credential)

    def tools_changed(self, name: str) -> None:
        """Tell the others that the tools of a server have changed, where this replica runs it."""
        if not self._closed and "leases" in self.__dict__ and self.leases.is_running(name):
            self._tasks.start(self._tell_owners(name))

    async def _tell_owners(self, name: str) -> None:
        from pegboard.gateway.replicas.server_messages import ServerQuestion

        question = ServerQuestion(OwnedServer(name, "", ""), "changed")
        with suppress(StoreError):
            others = [one for one in await self._services.store.replicas() if one.id != self._peers.own]
            await asyncio.gather(*(self._tell_replica(replica, question) for replica in others))

    async def _tell_replica(self, replica: Replica, question: ServerQuestion) -> None:
        import httpx2

        with suppress(httpx2.TransportError, TimeoutError):  # whoever does not hear of it asks when it is asked
            async with asyncio.timeout(TOLD_WITHIN):
                await (await self.ask(replica, question)).aclose()

    async def close(self) -> None:
        """Stop the servers of this replica, and let others take them."""
        self._closed = True
        await self._tasks.aclose()
        if "leases" in self.__dict__:
            await self.leases.close()


@asynccontextmanager
async def owning_servers(services: Services, peers: ReplicaPeers | None) -> AsyncGenerator[ReplicaOwners | None]:
    """Let servers with ``instance: store`` have one owner over all replicas while the context lasts."""
    source = next((one for one in services.loader.sources if isinstance(one, SingleOwnerSource)), None)
    if peers is None or source is None:
        yield None
        return
    owners = ReplicaOwners(services, peers, source)
    source.on_changed(owners.tools_changed)
    source.own_by(owners)
    try:
        yield owners
    finally:
        source.own_by(None)
        await owners.close()
