"""The tables, step by step from an empty file to the version that this code understands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pegboard.errors import StoreSchemaError
from pegboard.stores.sqlite.codec import from_column, to_column

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

APPLICATION_ID = 0x50454742  # "PEGB": tells our files from those of other programs

Step = tuple[str, ...]

# Step n takes a file from version n to n + 1. A step that has been released is never edited.
# Counters start at the time in microseconds, which no counter outruns: a file that was removed and made anew repeats
# no version either.
MIGRATIONS: tuple[Step, ...] = (
    (
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO counters VALUES ('version', microseconds()), ('permissions', microseconds())",
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
            arguments TEXT NOT NULL
        )""",
    ),
    ("CREATE TABLE claims (plugin TEXT PRIMARY KEY, tools TEXT NOT NULL) WITHOUT ROWID",),
    (
        """CREATE TABLE pinned_servers (
            plugin TEXT PRIMARY KEY, version INTEGER NOT NULL, revision INTEGER NOT NULL, claims TEXT NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE pins (
            plugin TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL, waiting TEXT NOT NULL,
            flags INTEGER NOT NULL, by TEXT NOT NULL, definition TEXT NOT NULL, PRIMARY KEY (plugin, tool)
        ) WITHOUT ROWID""",
        # What counted as read-only and as destroying nothing; version 0 has no pins, and the first list makes them.
        """INSERT INTO pinned_servers SELECT plugin, 0, 0, '[' || tools || ',' || coalesce((SELECT other.tools
            FROM claims AS other WHERE other.plugin = harmless_key(claims.plugin)), '[]') || ']'
            FROM claims WHERE NOT is_harmless_key(plugin)""",
        "DROP TABLE claims",
        "INSERT INTO counters VALUES ('pins', microseconds())",
    ),
)
HARMLESS: str = "\0destroys nothing"
"""What stood behind the name of a server where it was kept which of its tools destroy nothing."""

# What was added without a new version: a Pegboard that does not know it opens the file as before, and keeps it.
ADDED: Step = (
    """CREATE TABLE IF NOT EXISTS uses (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL,
        need TEXT NOT NULL, tool TEXT NOT NULL, UNIQUE (principal, agent, need, tool)
    )""",
    "CREATE INDEX IF NOT EXISTS uses_by_time ON uses (at)",
    """CREATE TABLE IF NOT EXISTS approvals (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
        asked TEXT NOT NULL, status TEXT NOT NULL, lasts TEXT NOT NULL, asked_at REAL NOT NULL, expires_at REAL,
        text TEXT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS approvals_by_call ON approvals (principal, agent, tool)",
    "CREATE INDEX IF NOT EXISTS approvals_open ON approvals (expires_at) WHERE status IN ('waiting', 'allowed')",
    """CREATE TABLE IF NOT EXISTS principal_switches (
        agent TEXT NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL,
        PRIMARY KEY (agent, principal, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS switch_actions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, mark TEXT NOT NULL, subject TEXT NOT NULL, at REAL NOT NULL,
        by TEXT NOT NULL, changes TEXT NOT NULL
    )""",
    "CREATE TABLE IF NOT EXISTS accepted (configuration TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS bill (
        day TEXT NOT NULL, principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
        requests INTEGER NOT NULL, tokens INTEGER NOT NULL, saved INTEGER NOT NULL, unknown INTEGER NOT NULL,
        loads INTEGER NOT NULL, unloads INTEGER NOT NULL, searches INTEGER NOT NULL, calls INTEGER NOT NULL,
        meta_calls INTEGER NOT NULL, denials INTEGER NOT NULL, PRIMARY KEY (day, principal, agent, session)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS session_data (
        principal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (principal, agent, session, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS usage (
        seconds INTEGER NOT NULL, start INTEGER NOT NULL, agent TEXT NOT NULL, server TEXT NOT NULL,
        tool TEXT NOT NULL, outcome TEXT NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
        saved INTEGER NOT NULL, unknown INTEGER NOT NULL, within_1 INTEGER NOT NULL, within_3 INTEGER NOT NULL,
        within_10 INTEGER NOT NULL, within_30 INTEGER NOT NULL, within_100 INTEGER NOT NULL,
        within_300 INTEGER NOT NULL, within_1000 INTEGER NOT NULL, within_3000 INTEGER NOT NULL,
        within_10000 INTEGER NOT NULL, within_30000 INTEGER NOT NULL, longer INTEGER NOT NULL,
        PRIMARY KEY (seconds, start, agent, server, tool, outcome)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS sealed (
        kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, expires_at REAL, sealed BLOB NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS leases (
        name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS replicas (
        id TEXT PRIMARY KEY, address TEXT NOT NULL, version TEXT NOT NULL, seen_at REAL NOT NULL, until REAL NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, until REAL NOT NULL, size INTEGER NOT NULL, text TEXT)",
    "CREATE INDEX IF NOT EXISTS calls_by_end ON calls (until, size)",
    "CREATE INDEX IF NOT EXISTS audit_by_session ON audit (session, agent, principal)",
)
_TOKENS = ("texts", "written", "cached", "saved_written", "saved_cached", "arguments", "results", "estimated")
# Columns of tables that there may be already, behind those that they had; what is stored has the default.
ADDED_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("audit", "by", "TEXT NOT NULL DEFAULT ''"),
    ("sealed", "place", "TEXT NOT NULL DEFAULT ''"),
    *(("bill", name, "INTEGER NOT NULL DEFAULT 0") for name in _TOKENS),
    *(("usage", name, "INTEGER NOT NULL DEFAULT 0") for name in _TOKENS),
)


def version_of(connection: sqlite3.Connection, path: Path, migrations: tuple[Step, ...]) -> int:
    """Return how many steps the file has been through; call it inside a transaction.

    Raises ``StoreSchemaError`` for a file of another program or of a newer version.
    """
    version = _number(connection, "PRAGMA user_version")
    owner = _number(connection, "PRAGMA application_id")
    tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if owner != APPLICATION_ID and (owner or version or tables):
        raise StoreSchemaError(
            f"{path} is a database of another program.",
            hint="Point `store:` to a file of its own; Pegboard makes it.",
        )
    if version > len(migrations):
        raise StoreSchemaError(
            f"{path} has schema version {version}; this Pegboard understands versions up to {len(migrations)}.",
            hint="Use the newer Pegboard that wrote it, or point `store:` to another file.",
        )
    return version


def is_complete(connection: sqlite3.Connection) -> bool:
    """Return whether the file has what was added without a new version."""
    names = [statement.partition(" IF NOT EXISTS ")[2].split()[0] for statement in ADDED]
    query = f"SELECT count(*) FROM sqlite_master WHERE name IN ({', '.join(map(repr, names))})"  # noqa: S608 - constants
    return _number(connection, query) == len(names) and not list(_missing_columns(connection))


def _missing_columns(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the added columns that the file has not."""
    tables = dict.fromkeys(table for table, _, _ in ADDED_COLUMNS)
    there = {
        table: {row[0] for row in connection.execute(f"SELECT name FROM pragma_table_info('{table}')")}  # noqa: S608 - constants
        for table in tables
    }
    yield from (added for added in ADDED_COLUMNS if added[1] not in there[added[0]])


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[Step, ...]) -> None:
    """Take the file through the steps that it lacks; call it inside a writing transaction."""
    connection.create_function("microseconds", 0, lambda: time.time_ns() // 1000)
    connection.create_function("harmless_key", 1, _harmless_key)
    connection.create_function("is_harmless_key", 1, _is_harmless_key)
    for step in (*migrations[version_of(connection, path, migrations) :], ADDED):
        for statement in step:
            connection.execute(statement)
    for table, column, kind in list(_missing_columns(connection)):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _harmless_key(name: str | bytes) -> str | bytes:
    return to_column(f"{from_column(name)}{HARMLESS}")


def _is_harmless_key(name: str | bytes) -> bool:
    return from_column(name).endswith(HARMLESS)


def _number(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]
