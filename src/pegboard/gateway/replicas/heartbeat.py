"""The heartbeat of a process that serves a store with others, and who the others are (G14)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from math import inf
from time import monotonic
from typing import Any, Final

from pegboard.errors import StoreError
from pegboard.ports import Replica, ReplicaStore
from pegboard.support.tasks import start_detached
from pegboard.support.version import full_version

log = logging.getLogger("pegboard")

EVERY: Final = 1.0
"""How often it is looked who the others are, and what is announced where there are any, in seconds."""
ALONE: Final = 10.0
"""How often a process announces itself that sees no other, in seconds."""
LASTS: Final = 30.0
"""For how long an announcement counts, in seconds."""
SILENT: Final = 2.5 * EVERY
"""After how long without a heartbeat one that cannot be reached is taken to have ended, in seconds."""
_LOOK: Final = 0.1
"""How often a heartbeat is looked for that is waited for, in seconds."""
_FAREWELL: Final = 2.0
"""How long the store may take to be told of the end, in seconds."""


def new_replica(address: str) -> Replica:
    """Return this process as a replica, under an id that no other has or had."""
    return Replica(secrets.token_hex(6), address, full_version())


class Heartbeat:
    """What this process announces, and the replicas beside it as of the last second.

    A store that cannot be reached changes nothing of what is known.
    """

    def __init__(self, store: ReplicaStore, own: Replica) -> None:
        self.own: Final = own
        self.key = b""
        self._store = store
        self._others: Mapping[str, Replica] = {}
        self._ended: dict[str, float] = {}  # which have ended without a word, and when they were seen last
        self._watched: dict[str, asyncio.Task[bool]] = {}
        self._announced = -inf
        self._ahead = time.time() - monotonic()
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self._kept_until = -inf

    async def start(self) -> None:
        """Announce this process, and go on doing so until it is closed.

        Raises ``StoreError`` where the secret of the replicas cannot be had.
        """
        self.key = await self._store.replica_key()
        await self._beat()
        self._task = asyncio.create_task(self._beat_on(), name="heartbeat")

    async def close(self) -> None:
        """Withdraw this process: the others send it nothing more."""
        tasks: set[asyncio.Task[Any]] = {*self._watched.values()}
        if self._task is not None:
            tasks.add(self._task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_FAREWELL):
                await self._store.withdraw(self.own.id)

    def now(self) -> float:
        """Return the time by the clock of the store, which all replicas share."""
        return monotonic() + self._ahead

    @property
    def others(self) -> Mapping[str, Replica]:
        """Return the replicas beside this one, by id."""
        return self._others

    async def find(self, replica_id: str) -> Replica | None:
        """Return another replica, or None where it has ended or there never was one.

        Raises ``StoreError`` where that cannot be known.
        """
        found = self._others.get(replica_id)
        if found is None:
            self._note_replicas(await self._store.replicas())
            found = self._others.get(replica_id)
        return None if found is None or found.seen_at <= self._ended.get(replica_id, -inf) else found

    async def lives(self, replica_id: str) -> bool:
        """Return whether a replica that cannot be reached goes on announcing itself; that takes one heartbeat.

        Raises ``StoreError`` where that cannot be known.
        """
        watch = self._watched.get(replica_id)
        if watch is None:
            watch = self._watched[replica_id] = start_detached(
                self._watch(replica_id), done=lambda _: self._watched.pop(replica_id)
            )
        return await asyncio.shield(watch)

    async def _watch(self, replica_id: str) -> bool:
        self._note_replicas(await self._store.replicas())
        last = found = self._others.get(replica_id)
        while last is not None and found is not None:
            if found.seen_at > last.seen_at:
                return True
            if self.now() - found.seen_at > SILENT:
                self._ended[replica_id] = found.seen_at
                return False
            await asyncio.sleep(_LOOK)
            self._note_replicas(await self._store.replicas())
            found = self._others.get(replica_id)
        return False

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._beat()
            except Exception:  # whatever a store does, a replica that lives is not given up
                log.exception("a heartbeat failed")

    async def _beat(self) -> None:
        try:
            began = monotonic()
            due = bool(self._others) or began - self._announced >= ALONE
            if due:
                await self._store.announce(self.own, seconds=LASTS)
            mine = self._note_replicas(await self._store.replicas())
        except StoreError as error:
            if not self._failing:
                log.warning("the other replicas cannot see this one: %s", error.message)
            self._failing = True
            self._kept_until = monotonic() + SILENT
            return
        self._failing = False
        if mine is None:
            self._announced = -inf  # someone else removed it
        elif due:
            self._announced, self._ahead = began, mine.seen_at - began

    def _note_replicas(self, found: Iterable[Replica]) -> Replica | None:
        """Note who there is; return this process as it was announced."""
        replicas = {replica.id: replica for replica in found}
        mine = replicas.pop(self.own.id, None)
        if monotonic() < self._kept_until:  # they have not announced themselves either, and do so again now
            replicas = {**self._others, **replicas}
        self._others = replicas
        self._ended = {replica_id: seen for replica_id, seen in self._ended.items() if replica_id in replicas}
        return mine
