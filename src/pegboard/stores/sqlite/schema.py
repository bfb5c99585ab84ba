"""The tables of a SQLite store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pegboard.errors import StoreSchemaError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

APPLICATION_ID = 0x50454731  # "PEG1": tells our files from those of other programs
VERSION = 1

# Counters start at the time in microseconds, which no counter outruns: a file that was removed and made again repeats
# no version either.
TABLES: tuple[str, ...] = (
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters VALUES ('version', microseconds())",
    "INSERT INTO counters VALUES ('permissions', microseconds()), ('pins', microseconds())",
    "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE sessions (
        principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
        version INTEGER NOT NULL, updated_at REAL NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (principal, agent, session)
    )""",
    """CREATE TABLE switches (
        agent TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (agent, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE manifests (
        id INTEGER PRIMARY KEY AUTOINCREMENT, plugin TEXT NOT NULL, fingerprint TEXT NOT NULL, text TEXT NOT NULL,
        UNIQUE (plugin, fingerprint)
    )""",
    """CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, principal TEXT NOT NULL,
        agent TEXT NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, subject TEXT NOT NULL,
        decision TEXT NOT NULL, reason TEXT NOT NULL, duration REAL, outcome TEXT NOT NULL,
        arguments TEXT NOT NULL, by TEXT NOT NULL DEFAULT ''
    )""",
    """CREATE TABLE pinned_servers (
        plugin TEXT PRIMARY KEY, version INTEGER NOT NULL, revision INTEGER NOT NULL, claims TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE pins (
        plugin TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, waiting TEXT NOT NULL,
        flags INTEGER NOT NULL, by TEXT NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (plugin, tool)
    ) WITHOUT ROWID""",
    """CREATE TABLE uses (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL,
        need TEXT NOT NULL, tool TEXT NOT NULL, UNIQUE (principal, agent, need, tool)
    )""",
    "CREATE INDEX uses_by_time ON uses (at)",
    """CREATE TABLE approvals (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
        asked TEXT NOT NULL, status TEXT NOT NULL, lasts TEXT NOT NULL, asked_at REAL NOT NULL, expires_at REAL,
        text TEXT NOT NULL
    )""",
    "CREATE INDEX approvals_by_call ON approvals (principal, agent, tool)",
    "CREATE INDEX approvals_open ON approvals (expires_at) WHERE status IN ('waiting', 'allowed')",
    """CREATE TABLE principal_switches (
        agent TEXT NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,
        PRIMARY KEY (agent, principal, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE switch_actions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT NOT NULL, subject TEXT NOT NULL, at REAL NOT NULL,
        by TEXT NOT NULL, changes TEXT NOT NULL
    )""",
    "CREATE TABLE accepted (configuration TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE bill (
        day TEXT NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
        requests INTEGER NOT NULL, tokens INTEGER NOT NULL, saved INTEGER NOT NULL, unknown INTEGER NOT NULL,
        loads INTEGER NOT NULL, unloads INTEGER NOT NULL, searches INTEGER NOT NULL, calls INTEGER NOT NULL,
        meta_calls INTEGER NOT NULL, denials INTEGER NOT NULL, texts INTEGER NOT NULL, written INTEGER NOT NULL,
        cached INTEGER NOT NULL, saved_written INTEGER NOT NULL, saved_cached INTEGER NOT NULL,
        arguments INTEGER NOT NULL, results INTEGER NOT NULL, estimated INTEGER NOT NULL,
        PRIMARY KEY (day, principal, agent, session)
    ) WITHOUT ROWID""",
    """CREATE TABLE session_data (
        principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (principal, agent, session, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE usage (
        seconds INTEGER NOT NULL, start INTEGER NOT NULL, agent TEXT NOT NULL, server TEXT NOT NULL,
        tool TEXT NOT NULL, outcome TEXT NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
        saved INTEGER NOT NULL, unknown INTEGER NOT NULL, within_1 INTEGER NOT NULL, within_3 INTEGER NOT NULL,
        within_10 INTEGER NOT NULL, within_30 INTEGER NOT NULL, within_100 INTEGER NOT NULL,
        within_300 INTEGER NOT NULL, within_1000 INTEGER NOT NULL, within_3000 INTEGER NOT NULL,
        within_10000 INTEGER NOT NULL, within_30000 INTEGER NOT NULL, longer INTEGER NOT NULL,
        texts INTEGER NOT NULL, written INTEGER NOT NULL, cached INTEGER NOT NULL, saved_written INTEGER NOT NULL,
        saved_cached INTEGER NOT NULL, arguments INTEGER NOT NULL, results INTEGER NOT NULL, estimated INTEGER NOT NULL,
        PRIMARY KEY (seconds, start, agent, server, tool, outcome)
    ) WITHOUT ROWID""",
    """CREATE TABLE sealed (
        kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, expires_at REAL, sealed BLOB NOT NULL,
        place TEXT NOT NULL DEFAULT '', PRIMARY KEY (kind, key)
    ) WITHOUT ROWID""",
    """CREATE TABLE leases (
        name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE replicas (
        id TEXT PRIMARY KEY, address TEXT NOT NULL, version TEXT NOT NULL, seen_at REAL NOT NULL, until REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE calls (id INTEGER PRIMARY KEY, until REAL NOT NULL, size INTEGER NOT NULL, text TEXT)",
    "CREATE INDEX calls_by_end ON calls (until, size)",
    "CREATE INDEX audit_by_session ON audit (session, agent, principal)",
)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file's tables, 0 where it has none; call it inside a transaction.

    Raises ``StoreSchemaError`` for a file of another program or of a newer version.
    """
    version = _number(connection, "PRAGMA user_version")
    owner = _number(connection, "PRAGMA application_id")
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if owner != APPLICATION_ID and (owner or version or tables):
        raise StoreSchemaError(
            f"{path} is not a store of this Pegboard: another program or an earlier Pegboard wrote it.",
            hint="Move it away to start with an empty store, or point `store:` to another file; Pegboard makes it.",
        )
    if version > VERSION:
        raise StoreSchemaError(
            f"{path} has schema version {version}; this Pegboard understands versions up to {VERSION}.",
            hint="Use the newer Pegboard that wrote it, or point `store:` to another file.",
        )
    return version


def make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables unless the file has them; call it inside a writing transaction."""
    if version_of(connection, path) == VERSION:
        return
    connection.create_function("microseconds", 0, lambda: time.time_ns() // 1000)
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
