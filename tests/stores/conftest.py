"""Stores in a file of their own."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pegboard.stores.sql import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "pegboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
async def peer(store: SqliteStore) -> AsyncIterator[SqliteStore]:
    """Return a second store on the file of the first, as another process would have it."""
    peer = SqliteStore(store.path)
    await peer.open()
    yield peer
    await peer.aclose()


@pytest.fixture
def blocker(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Return a connection that holds the file locked for writing."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
