"""The processes that serve one database together, by the clock of its server (G14)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pegboard.ports.replicas import Replica
from pegboard.stores.postgres.switches import PostgresSwitches
from pegboard.stores.postgres.texts import from_column, key_of, to_column

_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_ANNOUNCE: Final = (
    f"INSERT INTO {{s}}.replicas (id, address, version, seen_at, until) VALUES (%s, %s, %s, {_NOW}, {_NOW} + %s)"  # noqa: S608
    " ON CONFLICT (id) DO UPDATE SET address = excluded.address, version = excluded.version,"
    " seen_at = excluded.seen_at, until = excluded.until"
)


class PostgresReplicas(PostgresSwitches):
    """The part of a store that keeps its replicas."""

    async def announce(self, replica: Replica, *, seconds: float) -> None:
        """Store that a replica lives, for some seconds; what counts no more is removed."""
        database, _ = self._opened()
        row = to_column(replica.id), to_column(replica.address), to_column(replica.version)
        await database.script(
            (f"DELETE FROM {{s}}.replicas WHERE until <= {_NOW}", ()),  # noqa: S608 - constants
            (_ANNOUNCE, (*row, seconds)),
        )

    async def withdraw(self, replica_id: str) -> None:
        """Remove what a replica announced."""
        database, _ = self._opened()
        await database.script(("DELETE FROM {s}.replicas WHERE id = %s", (to_column(replica_id),)))

    async def replicas(self) -> Sequence[Replica]:
        """Return the replicas whose announcement counts still, by id."""
        rows = await self._rows(
            f"SELECT id, address, version, seen_at FROM {{s}}.replicas WHERE until > {_NOW} ORDER BY id"  # noqa: S608
        )
        return [Replica(*map(from_column, row[:3]), seen_at=row[3]) for row in rows]

    async def now(self) -> float:
        """Return the time of the server."""
        return (await self._rows(f"SELECT {_NOW}"))[0][0]

    def clock(self) -> float:
        """Return the time of the server, by how far this machine's clock was off when it was read last."""
        return time.time() + self._opened()[1].ahead

    async def lease_holder(self, name: str) -> str | None:
        """Return who has a lease now, or None."""
        query = f"SELECT holder FROM {{s}}.leases WHERE key = %s AND until > {_NOW}"  # noqa: S608 - constants
        rows = await self._rows(query, (key_of(name),))
        return from_column(rows[0][0]) if rows else None

    async def replica_key(self) -> bytes:
        """Return the secret of the replicas; made once, kept in the database."""
        return await self._secret("replicas")

    async def _secret(self, name: str) -> bytes:
        """Return a secret of the store that one process has made, and every process uses."""
        if name not in self._secrets:
            async with self._reading_secret:
                if name not in self._secrets:
                    self._secrets[name] = await self._stored_secret(name)
        return self._secrets[name]

    async def _stored_secret(self, name: str) -> bytes:
        import secrets  # every start would pay for it

        rows = await self._opened()[0].script(
            ("INSERT INTO {s}.secrets VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, secrets.token_bytes(32))),
            ("SELECT value FROM {s}.secrets WHERE name = %s", (name,)),
        )
        return rows[-1][0][0]
