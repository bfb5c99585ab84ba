"""The way to a database file for its export, import and check."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

from pegboard.stores.sql.copies import SqlCopies
from pegboard.stores.sql.database import Row, escaped_row, escaped_rows, unescaped_rows
from pegboard.stores.sql.sealing_keys import SealingKeys
from pegboard.stores.sql.sqlite_database import (
    PATIENCE,
    SqliteDatabase,
    add_clock,
    error_of_file,
    is_locked,
    locked_error,
    schema_version,
)
from pegboard.support.threads import run_in_thread

AT_ONCE: Final = 500
"""How many rows make a batch, where they are short."""
CHARACTERS_AT_ONCE: Final = 4 * 1024 * 1024
FAULTS: Final = 20
"""How many faults of a database are named."""


class SqliteCopyConnection:
    """A connection to a file that others use meanwhile."""

    misfits: tuple[type[Exception], ...] = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection: Final = connection
        self._path: Final = path

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        return unescaped_rows(self._connection.execute(sql, escaped_row(values)))

    async def batches(self, sql: str) -> AsyncGenerator[list[Row]]:
        """Yield the rows of a query in batches."""
        batch: list[Row] = []
        size = 0
        for row in self._connection.execute(sql):
            batch += unescaped_rows([row])
            size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            if len(batch) >= AT_ONCE or size >= CHARACTERS_AT_ONCE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    async def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with each of many rows."""
        self._connection.executemany(sql, escaped_rows(rows))

    async def begin_reading(self) -> None:
        """Begin a transaction that sees one moment."""
        self._connection.execute("BEGIN")

    async def begin_writing(self) -> None:
        """Begin a transaction alone; once it is committed, it is on the disk."""
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("BEGIN IMMEDIATE")

    async def commit(self) -> None:
        """End the transaction."""
        self._connection.execute("COMMIT")

    def is_made(self) -> bool:
        """Return whether the tables are there; raises ``StoreSchemaError`` where they are not ours."""
        self._connection.execute("BEGIN")
        try:
            return schema_version(self._connection, str(self._path)) > 0
        finally:
            self._connection.execute("ROLLBACK")

    async def last_number(self, table: str) -> int:
        """Return the last number that rows of a table were given."""
        rows = await self.rows("SELECT seq FROM sqlite_sequence WHERE name = ?", table)
        return rows[0][0] if rows else 0

    async def number_on(self, table: str, last: int) -> None:
        """Let the numbers of a table go on behind one."""
        update = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
        if last and not self._connection.execute(update, (last, table)).rowcount:
            self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))

    async def describe_database(self, *, thorough: bool) -> dict[str, Any]:
        """Return what the file is."""
        return {
            "engine": f"SQLite {sqlite3.sqlite_version}",
            "bytes": _size(self._path),
            "read_only": self._why_read_only(),
            "faults": await run_in_thread(self._faults) if thorough else None,
        }

    def _why_read_only(self) -> str:
        """Return why nothing can be written, or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return "" if is_locked(error) else error_of_file(error, str(self._path)).message
        self._connection.execute("ROLLBACK")
        return ""

    def _faults(self) -> list[str]:
        rows = [str(row[0]) for row in self._connection.execute(f"PRAGMA integrity_check({FAULTS})")]
        return [] if rows == ["ok"] else rows


class SqliteCopyPlace:
    """A database file."""

    kind = "sqlite"

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._path: Final = path.absolute()
        self._patience: Final = patience

    @property
    def place(self) -> str:
        """Return the path of the file."""
        return str(self._path)

    async def is_there(self) -> bool:
        """Return whether the file has tables of ours."""
        if not self._path.exists():
            return False
        async with self.connect() as connection:
            return connection.is_made()

    async def make(self) -> None:
        """Make the file and its tables where they are missing."""
        database = SqliteDatabase(self._path, patience=self._patience)
        await database.open(lambda *_: None)
        await database.aclose()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[SqliteCopyConnection]:
        """Open the file while this lasts; what is not committed is not stored."""
        address = f"{self._path.as_uri()}?mode=rw"
        try:
            with closing(
                sqlite3.connect(
                    address, uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False
                )
            ) as connection:
                add_clock(connection)
                yield SqliteCopyConnection(connection, self._path)
        except sqlite3.Error as error:
            if is_locked(error):
                raise locked_error(self.place, self._patience) from error
            raise error_of_file(error, self.place) from error


def _size(path: Path) -> int:
    """Return how many bytes the file and its log have."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


class SqliteCopies(SqlCopies):
    """A store in a file, for its export, import and check."""

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        place = SqliteCopyPlace(path, patience=patience)
        super().__init__(place, SealingKeys(place.place, path.absolute()))
