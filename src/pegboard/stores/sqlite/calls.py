"""What is kept of calls in the database, under the number of their records, and the records of one session (X4)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from pegboard.ports import MOST_DETAILS, CallDetails, NumberedRecord, SessionKey
from pegboard.stores.sqlite.codec import (
    AUDIT_COLUMNS,
    from_column,
    intact_entry_from_row,
    to_column,
)

if TYPE_CHECKING:
    import sqlite3

    from pegboard.ports import AuditRecord

ENDED_AT_ONCE: Final = 1_000
"""How many details whose days are over go with one batch."""
_COLUMNS: Final = ", ".join(AUDIT_COLUMNS)
_OF_SESSION: Final = "session = ? AND agent = ? AND principal = ?"


def write(connection: sqlite3.Connection, first: int, details: Mapping[int, CallDetails]) -> None:
    """Write details inside the caller's transaction, and remove those whose days are over.

    Args:
        connection: that of the transaction.
        first: the number of the record that the details at 0 belong to.
        details: by place behind ``first``.
    """
    rows = [(first + at, until, len(text), to_column(text)) for at, (text, until) in details.items()]
    connection.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?)", rows)
    connection.execute(
        "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE until <= ? LIMIT ?)", (time.time(), ENDED_AT_ONCE)
    )


def trim(connection: sqlite3.Connection, gone: int, most: int = MOST_DETAILS) -> None:
    """Remove the details of records that are removed, and the oldest where all of them are too large."""
    connection.execute("DELETE FROM calls WHERE id <= ?", (gone,))
    if (connection.execute("SELECT sum(size) FROM calls").fetchone()[0] or 0) <= most:
        return
    newest_first = "SELECT id, sum(size) OVER (ORDER BY id DESC) AS behind FROM calls"
    (last,) = connection.execute(f"SELECT max(id) FROM ({newest_first}) WHERE behind > ?", (most,)).fetchone()  # noqa: S608
    connection.execute("DELETE FROM calls WHERE id <= ?", (last,))


def select_details(connection: sqlite3.Connection, number: int) -> str | None:
    """Return what is kept of a call, or None where nothing is, or it cannot be read."""
    row = connection.execute("SELECT text FROM calls WHERE id = ? AND until > ?", (number, time.time())).fetchone()
    if row is None or not isinstance(row[0], str | bytes):
        return None
    try:
        return from_column(row[0])
    except ValueError:
        return None


def select_numbered(connection: sqlite3.Connection, number: int) -> AuditRecord | None:
    """Return a record by its number, or None."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM audit WHERE id = ?", (number,)).fetchone()  # noqa: S608 - constants
    return None if row is None else intact_entry_from_row(row)


def select_session(
    connection: sqlite3.Connection,
    key: SessionKey,
    before: int | None,
    after: int | None,
    kinds: Collection[str],
    limit: int,
) -> list[NumberedRecord]:
    """Return records of a session that can be read, newest first, or behind ``after`` oldest first."""
    where, order = _OF_SESSION, "DESC" if after is None else "ASC"
    values: list[str | bytes | int] = [to_column(key.session), to_column(key.agent), to_column(key.principal)]
    for number, condition in ((before, "id < ?"), (after, "id > ?")):
        if number is not None:
            where += f" AND {condition}"
            values.append(number)
    if kinds:
        where += f" AND kind IN ({', '.join('?' * len(kinds))})"
        values += kinds
    query = f"SELECT id, {_COLUMNS} FROM audit INDEXED BY audit_by_session WHERE {where} ORDER BY id {order} LIMIT ?"  # noqa: S608
    rows = connection.execute(query, (*values, max(limit, 0))).fetchall()
    intact = ((number, intact_entry_from_row(tuple(cells))) for number, *cells in rows)
    return [NumberedRecord(number, record) for number, record in intact if record is not None]
