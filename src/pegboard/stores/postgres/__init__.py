"""A store in a PostgreSQL database that any number of processes on any number of machines share."""

from pegboard.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
