"""Which tools of a server count as read-only, in the database (G6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pegboard.stores.sqlite.approvals import SqliteApprovals
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3


class SqliteClaims(SqliteApprovals):
    """The part of a store that keeps claims."""

    async def claims(self) -> Mapping[str, frozenset[str]]:
        """Return the tools that count as read-only, of every server that has been seen (G6)."""
        rows = await self._opened().read(
            lambda connection: connection.execute("SELECT plugin, tools FROM claims").fetchall()
        )
        return {from_column(plugin): frozenset(json.loads(tools)) for plugin, tools in rows}

    async def keep_first_claims(self, plugin: str, tools: Iterable[str]) -> frozenset[str]:
        """Store what counts for a server of which nothing is stored; return what counts now."""
        row = (to_column(plugin), json.dumps(sorted(set(tools))))

        def keep(connection: sqlite3.Connection) -> str:
            if connection.execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", row).rowcount:
                count(connection, "permissions")
            return connection.execute("SELECT tools FROM claims WHERE plugin = ?", row[:1]).fetchone()[0]

        counted = await self._write(keep, permissions=True)
        return frozenset(json.loads(counted))

    async def change_claims(self, plugin: str, *, accept: Iterable[str] = (), retract: Iterable[str] = ()) -> None:
        """Add tools to those that count, and take others away."""
        name = to_column(plugin)
        added, removed = frozenset(accept), frozenset(retract)

        def change(connection: sqlite3.Connection) -> None:
            row = connection.execute("SELECT tools FROM claims WHERE plugin = ?", (name,)).fetchone()
            tools = frozenset(json.loads(row[0]) if row else ()) | added
            text = json.dumps(sorted(tools - removed))
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (name, text))
            count(connection, "permissions")

        await self._write(change, permissions=True)


def count(connection: sqlite3.Connection, counter: str) -> int:
    """Return the next number of a counter."""
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = ?", (counter,))
    return connection.execute("SELECT value FROM counters WHERE name = ?", (counter,)).fetchone()[0]
