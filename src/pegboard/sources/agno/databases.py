"""The database that toolkits of Agno keep schedules and memories in: a SQLite file beside the store."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pegboard.support.own_folder import make_private


class SharedDatabase:
    """One database for all toolkits that need one, made for the first of them.

    Without a file it is one of its own that is deleted at the end: calls run in threads, and a database in memory is
    one connection, where the end of one user's transaction would undo what another's has just written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._made: Any = None
        self._folder: TemporaryDirectory[str] | None = None

    def get(self) -> Any:
        """Return the database; raises ``ImportError`` where SQLAlchemy is not installed."""
        with self._lock:
            if self._made is None:
                self._made = self._open()
            return self._made

    def _open(self) -> Any:
        sqlite: Any = importlib.import_module("agno.db.sqlite").SqliteDb
        path = self._path
        if path is None:
            self._folder = TemporaryDirectory(prefix="pegboard-", ignore_cleanup_errors=True)
            path = Path(self._folder.name) / "agno.db"
        else:
            make_private(path.parent)
        path.touch(mode=0o600)  # like the store, for its owner alone
        return sqlite(db_file=str(path))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._made is not None:
                self._made.db_engine.dispose()
                self._made = None
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None
