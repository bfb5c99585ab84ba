"""What the tests of the SQLite store share."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from pegboard.ports import AuditRecord, SessionKey

KEY = SessionKey(principal="ada", agent="assistant", session="thread-42")
ENTRY = AuditRecord(
    at=datetime.now(UTC),
    kind="call",
    principal="ada",
    agent="assistant",
    session="thread-42",
    turn=1,
    subject="git/log",
    decision="allowed",
)


def in_file(path: Path, query: str) -> list[tuple[object, ...]]:
    """Return what another connection finds in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()
