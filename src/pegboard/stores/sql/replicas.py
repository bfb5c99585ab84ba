"""The processes that serve one database together (G14). All times are by the clock of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pegboard.ports.replicas import Replica
from pegboard.stores.sql.base import StoreBase
from pegboard.stores.sql.database import Transaction, insert

SET_BACK: Final = 1.0
"""How far ahead of now an announcement may be, in seconds: beyond that the clock was set back since."""
REPLICAS: Final = (
    "SELECT id, address, version, seen_at FROM main.replica WHERE until > clock() AND seen_at <= clock() + ?"
    " ORDER BY id"
)
_ANNOUNCE: Final = insert("replica", ("id", "address", "version", "seen_at", "until"), key=("id",)).replace(
    "VALUES (?, ?, ?, ?, ?)", "VALUES (?, ?, ?, clock(), clock() + ?)"
)


class Replicas(StoreBase):
    """The part of the store that keeps its replicas."""

    async def announce(self, replica: Replica, *, seconds: float) -> None:
        """Store that a replica lives, for some seconds; what counts no longer is removed."""

        async def put_replica(transaction: Transaction) -> None:
            ended = "DELETE FROM main.replica WHERE until <= clock() OR seen_at > clock() + ?"
            await transaction.run(ended, SET_BACK)
            await transaction.run(_ANNOUNCE, replica.id, replica.address, replica.version, seconds)

        await self._write(put_replica)

    async def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced."""

        async def remove(transaction: Transaction) -> None:
            await transaction.run("DELETE FROM main.replica WHERE id = ?", replica_id)

        await self._write(remove)

    async def replicas(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        return [Replica(*row) for row in await self._db.rows(REPLICAS, SET_BACK)]

    async def now(self) -> float:
        """Return the time by the clock of the database."""
        return await self._db.now()

    def clock(self) -> float:
        """Return the same as it was heard last, without waiting."""
        self._require_open()
        return self._db.clock()

    async def lease_holder(self, name: str) -> str | None:
        """Return who has a lease now, or None."""
        rows = await self._db.rows("SELECT holder FROM main.lease WHERE name = ? AND until > clock()", name)
        return rows[0][0] if rows else None

    async def replica_key(self) -> bytes:
        """Return the secret of the replicas; made once, kept in the database."""
        return await self._secret("replicas")
