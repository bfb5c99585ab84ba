"""A SQLite database: a file that several processes share, or memory that ends with this one.

Statements run in the thread of the event loop: one takes some ten microseconds, a hop to another thread and back
takes longer; a read that may take long runs in a thread, over a connection of its own. What may last, waiting for
other writers, is done without SQLite's own busy handler: an attempt that finds the file locked fails at once, and the
next one is made after a jittered pause in which the loop is free.
The log is write-ahead, so readers wait for nothing; ``synchronous=NORMAL`` makes a commit survive the end of the
process (S2), not always that of the machine.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from pegboard.errors import StoreBusyError, StoreError, StoreSchemaError
from pegboard.ports import ChangeToken
from pegboard.stores.sql.database import (
    Row,
    Transaction,
    escaped_row,
    escaped_rows,
    insert_many,
    not_open_error,
    unescaped_rows,
)
from pegboard.stores.sql.schema import COUNTERS, VERSION, statements
from pegboard.support.backoff import Backoff
from pegboard.support.own_folder import make_private
from pegboard.support.threads import run_in_thread

T = TypeVar("T")

APPLICATION_ID: Final = 0x50454732  # "PEG2": tells our files from those of other programs
TYPES: Final = {
    "int": "INTEGER NOT NULL",
    "int?": "INTEGER",
    "real": "REAL NOT NULL",
    "real?": "REAL",
    "text": "TEXT NOT NULL",
    "text?": "TEXT",
    "bytes": "BLOB NOT NULL",
    "id": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
PATIENCE: Final = 30.0
FIRST_PAUSE: Final = 0.0005
LONGEST_PAUSE: Final = 0.02
REMEMBERED: Final = 512
"""Of how many sessions a store in memory keeps the text that was read, which is a copy of what the database holds."""

TOGETHER: Final = 10
"""How many rows one statement inserts where there are as many: each takes a third less then."""

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_WRITABLE: Final = "Point `store:` to a file in a folder that can be written, or use `store: memory:`."
_COUNT: Final = "UPDATE main.counter SET value = value + 1 WHERE name = 'permissions'"


@cache
def _insert_together(sql: str) -> str:
    return insert_many(sql, TOGETHER)


class SqliteTransaction:
    """A transaction on the one connection of a file; nothing in it waits."""

    __slots__ = ("_connection", "_file_number", "erased", "permissions", "states")

    def __init__(self, connection: sqlite3.Connection, file_number: int) -> None:
        self._connection = connection
        self._file_number = file_number
        self.states = self.permissions = self.erased = False

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        return _rows(self._connection, sql, values)

    async def run(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        self._connection.execute(sql, escaped_row(values))

    async def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run an insert for each of many rows."""
        found = escaped_rows(rows)
        end = len(found) - len(found) % TOGETHER
        if end:
            groups = [list(chain.from_iterable(found[at : at + TOGETHER])) for at in range(0, end, TOGETHER)]
            self._connection.executemany(_insert_together(sql), groups)
        if rest := found[end:]:
            self._connection.executemany(sql, rest)

    async def changed(self, sql: str, *values: Any) -> int:
        """Run a statement and return how many rows it has changed."""
        return self._connection.execute(sql, escaped_row(values)).rowcount

    async def erase(self, sql: str, *values: Any) -> int:
        """Remove and overwrite rows; return how many there were."""
        self._connection.execute("PRAGMA secure_delete = ON").fetchall()
        self.erased = True
        return await self.changed(sql, *values)

    async def in_order(self) -> None:
        """Do nothing: one transaction writes at a time."""

    async def commits_of_others(self) -> tuple[int, int]:
        """Return which file it is, and at which commit of another connection."""
        return self._file_number, self._connection.execute("PRAGMA data_version").fetchone()[0]

    def announce(
        self,
        *,
        states: Iterable[str] = (),
        uses: Iterable[str] = (),  # noqa: ARG002 - other processes ask the file
        permissions: bool = False,
        others: bool = False,  # noqa: ARG002 - as above
    ) -> None:
        """Note what the token has to show."""
        if states:
            self.states = True
        if permissions:
            self.permissions = True


class SqliteDatabase:
    """One database file, or one in memory (without a ``path``).

    ``patience`` is for how many seconds a locked file is tried again. A file that is removed while it is open is made
    again by the next change.
    """

    answers_get_lost = False

    def __init__(self, path: Path | None, *, patience: float = PATIENCE) -> None:
        self._path: Final = path
        self._patience: Final = patience
        self.file_number = 0
        self.remembers = REMEMBERED if path is None else 0
        self.lasts = path is not None
        self.is_open = path is None
        """Whether the file is open; memory always is."""
        self._open: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._changes = 0  # of what the token shows, through this connection
        self._data_version = 0, 0  # of the commits of others, behind the number of the file
        self._token: ChangeToken | None = None
        self._looked_at = 0.0  # when the data version was read

    @property
    def place(self) -> str:
        """Return the path of the file."""
        return ":memory:" if self._path is None else str(self._path)

    @property
    def hears(self) -> bool:
        """Return whether nothing changes unheard: in memory there are no others."""
        return self._path is None

    async def open(self, forget: Callable[[str, str | None], None]) -> None:  # noqa: ARG002
        """Make the file and its tables where they are missing, and open it.

        Raises ``StoreError`` where it cannot be made, read or written, ``StoreSchemaError`` where it is damaged or not
        ours, ``StoreBusyError`` where it stays locked.
        """
        if self._open is None and self._path is not None:
            self._open, self._identity = await self._connect(self._path)
            self.is_open = True

    async def aclose(self) -> None:
        """Let go of the file; what is in memory stays."""
        if self._open is not None and self._path is not None:
            self._open.close()
            self._open = self._token = None
            self.is_open = False

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        try:
            return _rows(self._open or self._connection, sql, values)
        except sqlite3.Error as error:
            if not is_locked(error):
                raise error_of_file(error, self.place) from error
            return await self._try_patiently(lambda: _rows(self._connection, sql, values))

    async def _number(self, sql: str) -> int:
        """Return the one number that a query finds."""
        try:
            return (self._open or self._connection).execute(sql).fetchone()[0]
        except sqlite3.Error:  # :meth:`rows` waits, or says why it fails
            return (await self.rows(sql))[0][0]

    async def read_together(self, queries: Sequence[str]) -> list[list[Row]]:
        """Return the rows of several queries, one after the other."""
        return [await self.rows(sql) for sql in queries]

    async def slow_rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query, read beside the loop."""
        if (path := self._path) is None:
            return await self.rows(sql, *values)

        def attempt() -> list[Row]:
            address = f"{path.as_uri()}?mode=ro"  # a file that is gone is not made again
            with closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as connection:
                add_clock(connection)
                return _rows(connection, sql, values)

        with suppress(sqlite3.Error):  # what is wrong with the file, the other connection says
            return await run_in_thread(attempt)
        return await self.rows(sql, *values)

    async def write(self, work: Callable[[Transaction], Awaitable[T]], *locks: str) -> T:  # noqa: ARG002 - one writes
        """Return what the work returns once all that it wrote is committed."""
        if self._path is not None and _identity(self._path) != self._identity:
            self._require_open()
            await self._open_again(self._path)
        patience: _RetryPauses | None = None
        while True:
            connection = self._open or self._connection
            transaction = SqliteTransaction(connection, self.file_number)
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = await work(transaction)
                if transaction.permissions:
                    connection.execute(_COUNT)
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if not isinstance(error, sqlite3.Error):
                    raise
                patience = patience or _RetryPauses(self.place, self._patience)
                await patience.wait(error)
            else:
                break
        if transaction.erased:
            connection.execute("PRAGMA secure_delete = OFF").fetchall()
            await self._try_patiently(lambda: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        if transaction.permissions or transaction.states:
            self._changes += 1
            known = None if transaction.permissions else self._token
            self._token = None if known is None else ChangeToken((self._data_version, self._changes), known.permissions)
        return result

    # -- what has changed --------------------------------------------------------------------------

    async def token(self, since: float | None = None) -> ChangeToken:
        """Return what the file is at; one statement where no other connection has committed.

        ``PRAGMA data_version`` tells of commits through other connections only; one that was read after ``since`` is
        not read again.
        """
        if self._path is None and self._token is not None:
            return self._token
        if since is not None and (known := self.known_token(since)) is not None:
            return known
        self._looked_at = time.monotonic()
        if self._path is not None and _identity(self._path) not in (None, self._identity):
            await self._open_again(self._path)
        version = self.file_number, await self._number("PRAGMA data_version")
        if self._token is None or version != self._data_version:
            number = await self._number("SELECT value FROM main.counter WHERE name = 'permissions'")
            self._data_version = version
            self._token = ChangeToken((version, self._changes), (self.file_number, number))
        return self._token

    def certain_until(self) -> float:
        """Return that a file always answers."""
        return math.inf

    def known_token(self, since: float) -> ChangeToken | None:
        """Return what the file was at when it was looked at last, where that was after ``since``."""
        return self._token if (since <= self._looked_at and self._open is not None) or self._path is None else None

    async def wait_for_change(self, token: ChangeToken, timeout: float) -> None:  # noqa: ARG002 - a file tells nothing
        """Wait: the next token has what other processes changed meanwhile."""
        await asyncio.sleep(timeout)

    async def catch_up(self) -> bool:
        """Return that nothing was taken up: each reading of a file has what was stored by then."""
        return False

    async def now(self) -> float:
        """Return the time of this machine, on which all processes are."""
        return time.time()

    def clock(self) -> float:
        """Return the time of this machine."""
        return time.time()

    # -- the file ----------------------------------------------------------------------------------

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._require_open()
            self._open = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            add_clock(self._open)
            _make_tables(self._open)
        return self._open

    def _require_open(self) -> None:
        if not self.is_open:
            raise not_open_error(self.place)

    async def _connect(self, path: Path) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        _make_file(path)
        identity = _identity(path)
        try:
            connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise error_of_file(error, self.place) from error
        try:
            add_clock(connection)
            await self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection, identity

    async def _prepare(self, connection: sqlite3.Connection) -> None:
        """Look before touching: a file that is not ours keeps its journal mode."""

        def is_made() -> bool:
            connection.execute("BEGIN")
            try:
                return schema_version(connection, self.place) == VERSION
            finally:
                connection.execute("ROLLBACK")

        def make() -> None:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if schema_version(connection, self.place) != VERSION:
                    _make_tables(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        made = await self._try_patiently(is_made)
        await self._try_patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        await self._try_patiently(lambda: connection.execute("PRAGMA synchronous = NORMAL"))
        if not made:
            await self._try_patiently(make)

    async def _open_again(self, path: Path) -> None:
        """Open the file that has taken the place of the open one, made where it is gone."""
        connection, identity = await self._connect(path)
        before, self._open, self._identity = self._open, connection, identity
        self.file_number += 1
        if before is not None:
            before.close()

    async def _try_patiently(self, attempt: Callable[[], T]) -> T:
        """Make the attempt, again and again as long as other writers hold the file."""
        patience: _RetryPauses | None = None
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                patience = patience or _RetryPauses(self.place, self._patience)
                await patience.wait(error)


class _RetryPauses:
    """Pauses between attempts on a file that others hold, until there were enough."""

    def __init__(self, place: str, seconds: float) -> None:
        self._place, self._seconds = place, seconds
        self._started = time.monotonic()
        self._backoff = Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE, jitter=0.5)

    async def wait(self, error: sqlite3.Error) -> None:
        """Pause, or raise what the error means where another attempt does not help."""
        if not is_locked(error):
            raise error_of_file(error, self._place) from error
        if time.monotonic() - self._started >= self._seconds:
            raise locked_error(self._place, self._seconds) from error
        await self._backoff.wait()


def _rows(connection: sqlite3.Connection, sql: str, values: Iterable[Any]) -> list[Row]:
    return unescaped_rows(connection.execute(sql, escaped_row(values)).fetchall())


def add_clock(connection: sqlite3.Connection) -> None:
    """Let statements ask for the time by ``clock()``."""
    connection.create_function("clock", 0, lambda: time.time())  # noqa: PLW0108 - tests replace it


def schema_version(connection: sqlite3.Connection, place: str) -> int:
    """Return the version of the file's tables, 0 where it has none; call it inside a transaction.

    Raises ``StoreSchemaError`` for a file of another program or of a newer version.
    """
    version, owner, tables = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if owner != APPLICATION_ID and (owner or version or tables):
        raise StoreSchemaError(
            f"{place} is not a store of this Pegboard: another program or an earlier Pegboard wrote it.",
            hint="Move it away to start with an empty store, or point `store:` to another file; Pegboard makes it.",
        )
    if version > VERSION:
        raise StoreSchemaError(
            f"{place} has schema version {version}; this Pegboard understands versions up to {VERSION}.",
            hint="Use the newer Pegboard that wrote it, or point `store:` to another file.",
        )
    return version


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in statements(TYPES, sqlite=True):
        connection.execute(statement)
    begin = time.time_ns() // 1000
    connection.executemany("INSERT INTO counter VALUES (?, ?)", [(name, begin) for name in COUNTERS])
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def error_of_file(error: sqlite3.Error, place: str) -> StoreError:
    """Return the error that names the file, what is wrong with it and what to do."""
    code = _code(error)
    if code in _DAMAGED:
        return StoreSchemaError(
            f"{place} is damaged or not a database ({error}).",
            hint="Put a copy back, or move it away together with its -wal and -shm files: a new one is then created.",
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(f"{place} cannot be written: it or its folder is read-only.", hint=_WRITABLE)
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(f"{place} cannot be opened ({error}).", hint=_WRITABLE)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{place} cannot be written: the disk is full.", hint="Make room; nothing was changed.")
    return StoreError(f"{place} cannot be read or written ({error}).")


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether others hold the file, so that another attempt may succeed."""
    return _code(error) in _BUSY


def locked_error(place: str, patience: float) -> StoreBusyError:
    """Return the error for a file that others have held for too long."""
    return StoreBusyError(
        f"{place} was kept locked by other writers for {patience:g} seconds.",
        hint="Find the process that holds it open (a backup, a database shell) and end it.",
    )


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; errors of the Python module itself have none (-1)."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from another one at the same path."""
    try:
        found = os.stat(path)  # noqa: PTH116 - quicker
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_file(path: Path) -> None:
    """Make the file (mode 0600) and the folders that are missing (mode 0700).

    A file that exists is not opened here: closing it would drop the locks of every other connection that this
    process has to it (POSIX locks belong to the process).
    """
    try:
        make_private(path.parent)
    except OSError as error:
        raise _not_made_error(path, error) from error
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if fault := _fault_of(path):
            raise StoreError(f"{path} {fault}.", hint=_WRITABLE) from None
    except OSError as error:
        raise _not_made_error(path, error) from error


def _fault_of(path: Path) -> str:
    """Return why what is at this path cannot be the database, or nothing."""
    if path.is_dir():
        return "is a folder, not a file"
    if not path.exists():
        return "is a broken link"
    if not path.is_file():
        return "is not an ordinary file"
    return "" if os.access(path, os.R_OK | os.W_OK) else "cannot be read and written: permission denied"


def _not_made_error(path: Path, error: OSError) -> StoreError:
    reason = (error.strerror or str(error)).lower()
    return StoreError(f"{path} cannot be made ({error.filename}: {reason}).", hint=_WRITABLE)
