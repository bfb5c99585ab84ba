"""The processes that serve one database together (G14). All of them are on one machine, and so is its clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pegboard.ports.replicas import Replica
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.switches import SqliteSwitches

if TYPE_CHECKING:
    import sqlite3

_SET_BACK: Final = 1.0
"""How far ahead of now an announcement may be, in seconds: beyond that the clock was set back since."""


class SqliteReplicas(SqliteSwitches):
    """The part of a store that keeps its replicas."""

    _replica_key: tuple[int, bytes] | None = None  # with the generation of the file

    async def announce(self, replica: Replica, *, seconds: float) -> None:
        """Store that a replica lives, for some seconds; what counts no more is removed."""
        row = to_column(replica.id), to_column(replica.address), to_column(replica.version)

        def put(connection: sqlite3.Connection) -> None:
            now = time.time()
            connection.execute("DELETE FROM replicas WHERE until <= ? OR seen_at > ?", (now, now + _SET_BACK))
            connection.execute("INSERT OR REPLACE INTO replicas VALUES (?, ?, ?, ?, ?)", (*row, now, now + seconds))

        await self._write(put)

    async def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced."""
        own = (to_column(replica_id),)
        await self._write(lambda connection: connection.execute("DELETE FROM replicas WHERE id = ?", own))

    async def replicas(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        return await self._opened().read(select_replicas)

    async def now(self) -> float:
        """Return the time of this machine."""
        return time.time()

    def clock(self) -> float:
        """Return the time of this machine."""
        return time.time()

    async def lease_holder(self, name: str) -> str | None:
        """Return who has a lease now, or None."""
        query, given = "SELECT holder FROM leases WHERE name = ? AND until > ?", (to_column(name), time.time())
        row = await self._opened().read(lambda connection: connection.execute(query, given).fetchone())
        return None if row is None else from_column(row[0])

    async def replica_key(self) -> bytes:
        """Return the secret of the replicas; made once, kept in the file."""
        database = self._opened()
        if self._replica_key is None or self._replica_key[0] != database.generation:
            key = await self._write(_replica_key)
            self._replica_key = database.generation, key
        return self._replica_key[1]


def select_replicas(connection: sqlite3.Connection) -> list[Replica]:
    """Return the replicas whose announcement counts still, by id."""
    now = time.time()
    query = "SELECT id, address, version, seen_at FROM replicas WHERE until > ? AND seen_at <= ? ORDER BY id"
    rows = connection.execute(query, (now, now + _SET_BACK)).fetchall()
    return [
        Replica(from_column(replica_id), from_column(address), from_column(version), seen_at)
        for replica_id, address, version, seen_at in rows
    ]


def _replica_key(connection: sqlite3.Connection) -> bytes:
    import secrets  # every start would pay for it

    connection.execute("INSERT OR IGNORE INTO secrets VALUES ('replicas', ?)", (secrets.token_bytes(32),))
    return connection.execute("SELECT value FROM secrets WHERE name = 'replicas'").fetchone()[0]
