"""What plugins keep for sessions, in the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pegboard.ports import SessionKey
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3

_OF_SESSION: Final = "principal = ? AND agent = ? AND session = ?"


def _columns(key: SessionKey) -> tuple[str | bytes, ...]:
    return to_column(key.principal), to_column(key.agent), to_column(key.session)


def select(connection: sqlite3.Connection, key: SessionKey) -> Mapping[str, str]:
    """Return the texts of a session by name."""
    query = f"SELECT name, text FROM session_data WHERE {_OF_SESSION}"  # noqa: S608 - constants
    return {from_column(name): from_column(text) for name, text in connection.execute(query, _columns(key))}


def write(connection: sqlite3.Connection, key: SessionKey, changes: Mapping[str, str | None]) -> None:
    """Write the texts of a session, and remove those that are None, inside the caller's transaction."""
    gone = [(*_columns(key), to_column(name)) for name, text in changes.items() if text is None]
    kept = [(*_columns(key), to_column(name), to_column(text)) for name, text in changes.items() if text is not None]
    connection.executemany(f"DELETE FROM session_data WHERE {_OF_SESSION} AND name = ?", gone)  # noqa: S608 - constants
    connection.executemany("INSERT OR REPLACE INTO session_data VALUES (?, ?, ?, ?, ?)", kept)


def remove(connection: sqlite3.Connection, key: SessionKey) -> bool:
    """Remove the texts of a session inside the caller's transaction; return whether there were any."""
    query = f"DELETE FROM session_data WHERE {_OF_SESSION}"  # noqa: S608 - constants
    return connection.execute(query, _columns(key)).rowcount > 0
