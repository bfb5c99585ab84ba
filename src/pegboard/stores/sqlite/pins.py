"""The pins of servers' tools, in the database (A4, G6)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.core.access.pins import Pin, ServerPins
from pegboard.stores.rows.pin_columns import claims_of, flags_of, pin_of
from pegboard.stores.sqlite.approvals import SqliteApprovals
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

    from pegboard.ports import AuditRecord, PinChange

_NAMES: Final = 500
"""How many names one statement asks for."""
_KEEP: Final = (
    "INSERT INTO pins (plugin, tool, digest, waiting, flags, by, definition) VALUES (?, ?, ?, ?, ?, ?, coalesce(?, ''))"
    " ON CONFLICT DO UPDATE SET digest = excluded.digest, waiting = excluded.waiting, flags = excluded.flags,"
    " by = excluded.by, definition = CASE WHEN ? THEN excluded.definition ELSE definition END"
)


class SqlitePins(SqliteApprovals):
    """The part of a store that keeps pins."""

    async def pins_revision(self) -> Hashable:
        """Return what differs after every change of a pin by any process."""
        query = "SELECT value FROM counters WHERE name = 'pins'"
        return await self._opened().read(lambda connection: connection.execute(query).fetchone())

    async def pins(self) -> Mapping[str, ServerPins]:
        """Return the pins of every server that has been seen, without the definitions (A4)."""

        def both(connection: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
            servers = connection.execute("SELECT plugin, version, revision, claims FROM pinned_servers").fetchall()
            return servers, connection.execute(
                "SELECT plugin, tool, digest, waiting, flags, by FROM pins ORDER BY plugin, tool"
            ).fetchall()

        servers, rows = await self._opened().read(both)
        pins: dict[str | bytes, dict[str, Pin]] = {row[0]: {} for row in servers}
        for plugin, tool, digest, waiting, flags, by in rows:
            pin = pin_of(from_column(tool), digest, waiting, flags, from_column(by))
            pins.setdefault(plugin, {})[pin.tool] = pin
        return {
            from_column(plugin): ServerPins(version, revision, pins[plugin], claims_of(claims))
            for plugin, version, revision, claims in servers
        }

    async def pinned_definitions(self, plugin: str, tools: Collection[str]) -> Mapping[str, str]:
        """Return the definitions that count, as canonical JSON."""
        own, names = to_column(plugin), [to_column(name) for name in tools]

        def texts(connection: sqlite3.Connection) -> list[Any]:
            found: list[Any] = []
            for at in range(0, len(names), _NAMES):
                some = names[at : at + _NAMES]
                found += connection.execute(
                    f"SELECT tool, definition FROM pins WHERE plugin = ? AND tool IN ({', '.join('?' * len(some))})",  # noqa: S608 - question marks
                    (own, *some),
                ).fetchall()
            return found

        return {from_column(tool): text for tool, text in await self._opened().read(texts) if text}

    async def change_pins(
        self,
        plugin: str,
        changes: Sequence[PinChange],
        *,
        expected: int | None,
        version: int,
        anew: bool = False,
        forget: Collection[str] = (),
        audit: Sequence[AuditRecord] = (),
    ) -> int | None:
        """Store pins of a server, with their records, if they are as expected; return the new revision or None."""
        own = to_column(plugin)
        rows = [
            (
                own,
                to_column(pin.tool),
                pin.digest,
                pin.waiting,
                flags_of(pin),
                to_column(pin.by),
                text,
                text is not None,
            )
            for pin, text in changes
        ]
        gone = [(own, to_column(name)) for name in forget]

        def change(connection: sqlite3.Connection) -> int | None:
            row = connection.execute("SELECT revision FROM pinned_servers WHERE plugin = ?", (own,)).fetchone()
            if (row[0] if row else None) != expected:
                return None
            if anew:
                connection.execute("DELETE FROM pins WHERE plugin = ?", (own,))
            connection.executemany(_KEEP, rows)
            connection.executemany("DELETE FROM pins WHERE plugin = ? AND tool = ?", gone)
            revision = count(connection, "pins")
            connection.execute("INSERT OR REPLACE INTO pinned_servers VALUES (?, ?, ?, '')", (own, version, revision))
            count(connection, "permissions")
            self._queue.write(connection, audit)
            return revision

        return await self._write(change, permissions=True)


def count(connection: sqlite3.Connection, counter: str) -> int:
    """Return the next number of a counter."""
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = ?", (counter,))
    return connection.execute("SELECT value FROM counters WHERE name = ?", (counter,)).fetchone()[0]
