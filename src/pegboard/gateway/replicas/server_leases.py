"""Which replica runs a server of which there is one: whoever has its lease, and keeps it by a heartbeat (G9, G14).

A server begins where it is first needed. Its owner lets go of it where it is not used, or this process ends; one that
died loses it with the end of its lease, or as soon as it is sure that no one is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from time import monotonic
from typing import Final, Protocol
from weakref import WeakValueDictionary

from pegboard.errors import StoreError, ToolUnavailableError
from pegboard.gateway.replicas.heartbeat import Heartbeat
from pegboard.ports import Replica, Store
from pegboard.ports.owned_servers import OwnedServer
from pegboard.support.backoff import Backoff

log = logging.getLogger("pegboard")

LASTS: Final = 30.0
"""For how long a lease counts, in seconds: as long as calls go on without the store, in which no one can take it."""
EVERY: Final = 3.0
"""How often an owner makes its leases last on, in seconds."""
STOPS_WITHIN: Final = 10.0
"""For how long a replica that lives may be unreachable before that is an error: it stops, and its servers move."""
_AGAIN: Final = 0.2
MOST: Final = 10_000
"""Of how many servers it is known who runs them."""
MARGIN: Final = 2.0
"""How long before the end of a lease its owner stops the server, in seconds."""


class RunsServers(Protocol):
    """What runs servers of this process."""

    async def stop_owned(self, server: OwnedServer, /) -> None:
        """Stop one."""
        ...

    def runs(self, server: OwnedServer, /) -> bool:
        """Return whether one is up, or is starting."""
        ...


class ServerLeases:
    """The leases of one replica, and which other replica has those that it has asked for."""

    def __init__(self, store: Store, heartbeat: Heartbeat, servers: RunsServers) -> None:
        self._store = store
        self._heartbeat = heartbeat
        self._servers = servers
        self._mine: dict[OwnedServer, float] = {}  # since when each lease lasts, by the monotonic clock
        self._used: dict[OwnedServer, float] = {}  # when each was asked for last
        self._theirs: dict[OwnedServer, str] = {}
        self._unreached: dict[str, float] = {}  # since when replicas cannot be reached
        self._gone: set[str] = set()  # replicas that have surely ended
        self._taking: WeakValueDictionary[OwnedServer, asyncio.Lock] = WeakValueDictionary()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Keep what is taken from now on."""
        self._task = asyncio.create_task(self._keep_on(), name="leases of servers")

    async def close(self) -> None:
        """Stop the servers of this process, and let others take them."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for server in list(self._mine):
            await self._let_go(server)

    def may_run(self, server: OwnedServer) -> bool:
        """Return whether this process may run a server now."""
        since = self._mine.get(server)
        return since is not None and monotonic() - since < LASTS - MARGIN

    def is_running(self, name: str) -> bool:
        """Return whether this process runs a server of this name."""
        return any(server.name == name for server in self._mine)

    async def owner(self, server: OwnedServer, *, within: float = LASTS + 2 * MARGIN) -> Replica | None:
        """Return the replica that runs a server; None is this process, from now on.

        What is known is not asked again. Where its owner has ended without a word, that takes until its lease ends.
        Raises ``StoreError`` where that cannot be known, ``ToolUnavailableError`` where it takes too long.
        """
        if self.may_run(server):
            self._used[server] = monotonic()
            return None
        known = self._heartbeat.others.get(self._theirs.get(server, ""))
        if known is not None:
            return known
        lock = self._taking.setdefault(server, asyncio.Lock())
        async with lock:
            return await self._find_owner(server, monotonic() + within)

    async def _find_owner(self, server: OwnedServer, until: float) -> Replica | None:
        backoff = Backoff(first=0.05, longest=0.5, jitter=0.3)
        name = lease_name(server)
        while True:
            began = monotonic()
            if self.may_run(server) or await self._store.take_lease(name, self._heartbeat.own.id, seconds=LASTS):
                self._mine[server] = max(began, self._mine.get(server, began))
                self._used[server] = monotonic()
                self._theirs.pop(server, None)
                return None
            holder = await self._store.lease_holder(name)
            if holder is not None and (replica := await self._heartbeat.find(holder)) is not None:
                if len(self._theirs) >= MOST:
                    self._theirs.clear()
                self._theirs[server] = holder
                return replica
            if holder is not None and (holder in self._gone or self._was_here(holder)):
                await self._store.end_lease(name, holder)
                continue
            if monotonic() > until:
                raise ToolUnavailableError(
                    f"Server {server.name} runs in another process that does not answer.",
                    hint="Another one takes its place when its lease has ended; call it again then.",
                )
            await backoff.wait()

    def _was_here(self, replica: str) -> bool:
        """Return whether a replica had the address that this process has: then it is no more."""
        found = self._heartbeat.others.get(replica)
        return found is not None and found.address == self._heartbeat.own.address

    def note_moved(self, server: OwnedServer, replica: str) -> None:
        """Note that a replica does not run a server any longer."""
        if self._theirs.get(server) == replica:
            del self._theirs[server]

    def forget_replica(self, replica: str) -> None:
        """Note that a replica has surely ended: no one has to wait until its leases end."""
        if len(self._gone) >= MOST:
            self._gone.clear()
        self._gone.add(replica)
        self._theirs = {server: other for server, other in self._theirs.items() if other != replica}

    async def is_unreachable(self, server: OwnedServer, replica: str, *, refused: bool) -> bool:
        """Return whether a replica that cannot be reached lives for long, by its heartbeat; it is asked for again else.

        One that is stopping lives for a while. ``refused`` says that its machine is there and no one listens: one that
        has no heartbeat then runs nothing, and others take its servers.
        """
        since = self._unreached.setdefault(replica, monotonic())
        self.note_moved(server, replica)
        if await self._heartbeat.lives(replica):
            await asyncio.sleep(_AGAIN)
            return monotonic() - since > STOPS_WITHIN
        if refused:
            self.forget_replica(replica)
        return False

    def note_answer_of(self, replica: str) -> None:
        """Note that a replica answers."""
        self._unreached.pop(replica, None)

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            for server in list(self._mine):
                await self._keep_lease(server)

    async def _keep_lease(self, server: OwnedServer) -> None:
        """Let a lease last on; where it cannot, the server is stopped before another replica may start it."""
        unused = monotonic() - self._used.get(server, 0.0) > LASTS and not self._servers.runs(server)
        if unused:
            await self._let_go(server)
            return
        began = monotonic()
        try:
            kept = await self._store.take_lease(lease_name(server), self._heartbeat.own.id, seconds=LASTS)
        except StoreError as error:
            log.debug("the lease of server %s could not be renewed: %s", server.name, error)
            kept = None
        if kept:
            self._mine[server] = began
        elif kept is False or not self.may_run(server):
            log.warning("server %s is stopped here: its lease could not be kept", server.name)
            await self._stop(server)

    async def _stop(self, server: OwnedServer) -> None:
        self._mine.pop(server, None)
        self._used.pop(server, None)
        await self._servers.stop_owned(server)

    async def _let_go(self, server: OwnedServer) -> None:
        await self._stop(server)
        try:
            await self._store.end_lease(lease_name(server), self._heartbeat.own.id)
        except StoreError as error:
            log.debug("the lease of server %s was not released, it expires: %s", server.name, error)


def lease_name(server: OwnedServer) -> str:
    """Return the name of a lease; what a server is made of does not show in it.

    >>> lease_name(OwnedServer("git", "1f", "shared"))
    'server git 4818292975da89b6'
    """
    text = json.dumps([*server]).encode()
    return f"server {server.name} {hashlib.blake2b(text, digest_size=8).hexdigest()}"
