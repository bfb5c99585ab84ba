"""Remembered use in the database: written in batches, read anew only where it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pegboard.ports import USE_LIFETIME, USES_KEPT, UseRecord
from pegboard.stores.rows.waiting_uses import MOST_READ, MOST_WAITING, joined
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

Key = tuple[str, str]
Stamp = tuple[int, int | None, int]
"""The generation of the file, the newest id (never used twice) and how many there are."""
Read = tuple[Stamp, tuple[UseRecord, ...]]


class UseQueue:
    """The uses that are not written yet, and those that were read last."""

    __slots__ = ("_read", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[UseRecord] = []
        self._read: dict[Key, Read] = {}

    def __bool__(self) -> bool:
        """Return whether uses wait."""
        return bool(self._waiting)

    def add(self, uses: Iterable[UseRecord]) -> None:
        """Take uses; the caller flushes. Where they cannot be written for long, the oldest give way."""
        self._waiting.extend(uses)
        del self._waiting[:-MOST_WAITING]

    def insert(self, connection: sqlite3.Connection) -> int:
        """Write what waits, and remove what is surplus or too old, inside the caller's transaction.

        Returns how many uses were written.
        """
        if not self._waiting:
            return 0
        connection.executemany(
            "INSERT OR REPLACE INTO uses (at, principal, agent, need, tool) VALUES (?, ?, ?, ?, ?)",
            [(use.at, *map(to_column, use[1:])) for use in self._waiting],
        )
        newest = max(use.at for use in self._waiting)
        connection.execute("DELETE FROM uses WHERE at < ?", (newest - USE_LIFETIME,))
        for key in {(use.principal, use.agent) for use in self._waiting}:
            _trim(connection, key)
        return len(self._waiting)

    def drop(self, taken: int) -> None:
        """Forget the oldest that wait: they are committed."""
        del self._waiting[:taken]

    def read(self, connection: sqlite3.Connection, key: Key, *, generation: int) -> Sequence[UseRecord]:
        """Return what is stored of a principal and agent and what waits, the newest last."""
        stamp = generation, *_extent(connection, key)
        known = self._read.get(key)
        if known is None or known[0] != stamp:
            if len(self._read) >= MOST_READ:
                self._read.clear()
            known = self._read[key] = stamp, _changed(connection, key, known, stamp)
        waiting = [use for use in self._waiting if (use.principal, use.agent) == key]
        return joined(known[1], waiting) if waiting else known[1]

    def delete(self, connection: sqlite3.Connection, wanted: dict[str, str | None]) -> int:
        """Remove and overwrite the rows whose columns have these values (None: any); return how many there were."""
        self._read.clear()
        connection.execute("PRAGMA secure_delete = ON").fetchall()
        filters = {name: to_column(value) for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in filters) or "1"
        return connection.execute(f"DELETE FROM uses WHERE {where}", tuple(filters.values())).rowcount  # noqa: S608


def _extent(connection: sqlite3.Connection, key: Key) -> tuple[int | None, int]:
    """Return the newest id of a principal and agent, and how many there are."""
    query = "SELECT max(id), count(*) FROM uses WHERE principal = ? AND agent = ?"
    return connection.execute(query, tuple(map(to_column, key))).fetchone()


def _changed(connection: sqlite3.Connection, key: Key, known: Read | None, stamp: Stamp) -> tuple[UseRecord, ...]:
    """Return what is stored, of which the stamp is: what is known and what is newer, where nothing else has changed."""
    if known is not None and known[0][0] == stamp[0]:
        found = joined(known[1], _select(connection, key, after=known[0][1] or 0))
        if len(found) == stamp[2]:
            return found
    return _select(connection, key)


def _select(connection: sqlite3.Connection, key: Key, *, after: int = 0) -> tuple[UseRecord, ...]:
    query = "SELECT at, need, tool FROM uses WHERE principal = ? AND agent = ? AND id > ? ORDER BY id"
    rows = connection.execute(query, (*map(to_column, key), after)).fetchall()
    return tuple([use for row in rows if (use := _use(key, *row)) is not None])


def _use(key: Key, at: Any, need: Any, tool: Any) -> UseRecord | None:
    """Return a use, or None where the columns hold something else: then nothing is known of it."""
    if type(at) is not float:
        return None
    try:
        return UseRecord(at, *key, from_column(need), from_column(tool))
    except UnicodeDecodeError:
        return None


def _trim(connection: sqlite3.Connection, key: Key) -> None:
    if (surplus := _extent(connection, key)[1] - USES_KEPT) > 0:
        mine = "SELECT id FROM uses WHERE principal = ? AND agent = ? ORDER BY id LIMIT ?"
        connection.execute(f"DELETE FROM uses WHERE id IN ({mine})", (*map(to_column, key), surplus))  # noqa: S608
