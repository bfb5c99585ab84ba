"""Short transactions on one SQLite file that several processes share.

Statements run in the thread of the event loop: one takes some ten microseconds, a hop to another thread and back
takes longer; a read that may take long runs in a thread, over a connection of its own. What may last, waiting for
other writers, is done without SQLite's own busy handler: an attempt that finds the file locked fails at once, and the
next one is made after a jittered pause in which the loop is free.
The log is write-ahead, so readers wait for nobody; ``synchronous=NORMAL`` makes a commit survive the end of the
process (S2), not always that of the machine.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from pegboard.errors import StoreBusyError, StoreError, StoreSchemaError
from pegboard.stores.sqlite.schema import VERSION, make_tables, version_of
from pegboard.support.backoff import Backoff
from pegboard.support.own_folder import make_private
from pegboard.support.threads import in_thread

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

FIRST_PAUSE = 0.0005
LONGEST_PAUSE = 0.02

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_WRITABLE = "Point `store:` to a file in a folder that can be written, or use `store: memory:`."


class Database:
    """One open database file.

    ``patience`` is for how many seconds a locked file is tried again. ``generation`` grows when the file was found
    removed or replaced and was opened anew: what was remembered of it no longer counts.
    """

    __slots__ = ("_connection", "_identity", "_path", "_patience", "generation")

    _connection: sqlite3.Connection

    def __init__(self, path: Path, *, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._identity: tuple[int, int] | None = None
        self.generation = 0

    async def open(self) -> None:
        """Make the file and its tables where they are missing, and open it.

        Raises ``StoreError`` where it cannot be made, read or written, ``StoreSchemaError`` where it is damaged,
        newer or not ours, ``StoreBusyError`` where it stays locked.
        """
        self._connection, self._identity = await self._connect()

    async def _connect(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        _make_file(self._path)
        identity = _identity(self._path)
        try:
            connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise explained(error, self._path) from error
        try:
            await self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection, identity

    async def _prepare(self, connection: sqlite3.Connection) -> None:
        """Look before touching: a file that is not ours keeps its journal mode."""

        def ready() -> bool:
            connection.execute("BEGIN")
            try:
                return version_of(connection, self._path) == VERSION
            finally:
                connection.execute("ROLLBACK")

        made = await self._patiently(ready)
        await self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        await self._patiently(lambda: connection.execute("PRAGMA synchronous = NORMAL"))
        if not made:
            await self._patiently(lambda: _transaction(connection, partial(make_tables, path=self._path)))

    async def follow(self) -> None:
        """Open the file that has taken the place of the open one; one that is gone is made anew by the next write."""
        if _identity(self._path) not in (None, self._identity):
            await self._open_anew()

    async def read(self, work: Work[T]) -> T:
        """Return what the work reads; each of its statements sees what is committed by then."""
        return await self._patiently(lambda: work(self._connection))

    async def read_apart(self, work: Work[T]) -> T:
        """Return what the work reads, as :meth:`read` does; it may take long, and nothing else waits for it."""

        def attempt() -> T:
            address = f"{self._path.absolute().as_uri()}?mode=ro"  # a file that is gone is not made anew
            with closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as connection:
                return work(connection)

        with suppress(sqlite3.Error):  # what is wrong with the file, the other connection says
            return await in_thread(attempt)
        return await self.read(work)

    async def write(self, work: Work[T]) -> T:
        """Return what the work returns, once all that it wrote is committed; it may be run several times."""
        if _identity(self._path) != self._identity:
            await self._open_anew()
        return await self._patiently(lambda: _transaction(self._connection, work))

    async def _open_anew(self) -> None:
        connection, identity = await self._connect()
        stale, self._connection, self._identity = self._connection, connection, identity
        self.generation += 1
        stale.close()

    async def _patiently(self, attempt: Callable[[], T]) -> T:
        """Make the attempt, again and again as long as other writers hold the file."""
        started: float | None = None
        backoff: Backoff | None = None
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if not is_locked(error):
                    raise explained(error, self._path) from error
                now = time.monotonic()
                started = now if started is None else started
                if now - started >= self._patience:
                    raise locked(self._path, self._patience) from error
            backoff = backoff or Backoff(first=FIRST_PAUSE, longest=LONGEST_PAUSE, jitter=0.5)
            await backoff.wait()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def _transaction(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Return what the work returns, all or nothing of what it wrote being committed."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


def explained(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error that names the file, what is wrong with it and what to do."""
    code = _code(error)
    if code in _DAMAGED:
        return StoreSchemaError(
            f"{path} is damaged or not a database ({error}).",
            hint="Put a copy back, or move it away together with its -wal and -shm files: a new one is made then.",
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(f"{path} cannot be written: it or its folder is read-only.", hint=_WRITABLE)
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(f"{path} cannot be opened ({error}).", hint=_WRITABLE)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path} cannot be written: the disk is full.", hint="Make room; nothing was changed.")
    return StoreError(f"{path} cannot be read or written ({error}).")


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether others hold the file, so that another attempt may succeed."""
    return _code(error) in _BUSY


def locked(path: Path, patience: float) -> StoreBusyError:
    """Return the error for a file that others have held for too long."""
    return StoreBusyError(
        f"{path} was kept locked by other writers for {patience:g} seconds.",
        hint="Find the process that holds it open (a backup, a database shell) and end it.",
    )


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; errors of the Python module itself have none (-1)."""
    return getattr(error, "sqlite_errorcode", -1) & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells this file from another one at the same path."""
    try:
        found = os.stat(path)  # noqa: PTH116
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
        raise _not_made(path, error) from error
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if fault := _fault_of(path):
            raise StoreError(f"{path} {fault}.", hint=_WRITABLE) from None
    except OSError as error:
        raise _not_made(path, error) from error


def _fault_of(path: Path) -> str:
    """Return why what stands at this path cannot be the database, or nothing."""
    if path.is_dir():
        return "is a folder, not a file"
    if not path.exists():
        return "is a link to nowhere"
    if not path.is_file():
        return "is not an ordinary file"
    return "" if os.access(path, os.R_OK | os.W_OK) else "cannot be read and written: permission denied"


def _not_made(path: Path, error: OSError) -> StoreError:
    reason = (error.strerror or str(error)).lower()
    return StoreError(f"{path} cannot be made ({error.filename}: {reason}).", hint=_WRITABLE)
