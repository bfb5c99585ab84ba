"""A store in one SQLite file that any number of processes share."""

from pegboard.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
