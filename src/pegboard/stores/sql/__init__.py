"""The store in a SQL database: SQLite, in a file or in memory, or PostgreSQL."""

from pegboard.stores.sql.store import MemoryStore, PostgresStore, SqliteStore, SqlStore

__all__ = ["MemoryStore", "PostgresStore", "SqlStore", "SqliteStore"]
