"""The database that toolkits of Agno keep schedules and memories in: a SQLite file beside the store."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any


class Database:
    """One database for all toolkits that need one, made for the first of them; without a file it is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._made: Any = None

    def get(self) -> Any:
        """Return the database; raises ``ImportError`` where SQLAlchemy is not installed."""
        with self._lock:
            if self._made is None:
                self._made = self._open()
            return self._made

    def _open(self) -> Any:
        sqlite: Any = importlib.import_module("agno.db.sqlite").SqliteDb
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # like the store, for its owner alone
            return sqlite(db_file=str(self._path))
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
        pool: Any = importlib.import_module("sqlalchemy.pool").StaticPool
        shared = sqlalchemy.create_engine("sqlite://", poolclass=pool, connect_args={"check_same_thread": False})
        return sqlite(db_engine=shared)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._made is not None:
                self._made.db_engine.dispose()
                self._made = None
