"""A store of each kind that there is, empty, for what every one of them promises."""

import base64
from pathlib import Path
from typing import Any

import pytest

from pegboard.ports import Store
from pegboard.stores.grace import with_grace
from pegboard.stores.sql import MemoryStore, PostgresStore, SqliteStore

KINDS = ("memory", "sqlite", "postgres")
KEY = base64.b64encode(bytes(range(32))).decode()


def make(request: pytest.FixtureRequest, kind: str, folder: Path, **more: Any) -> Store:
    """Return a new store of a kind, which the caller opens and closes."""
    match kind:
        case "memory":
            return MemoryStore(**more)
        case "grace":
            return with_grace(make(request, "sqlite", folder, **more))
        case "sqlite":
            return SqliteStore(folder / "pegboard.db", **more)
        case _:
            request.getfixturevalue("monkeypatch").setenv("PEGBOARD_KEY", KEY)
            return PostgresStore(request.getfixturevalue("postgres").address(), **more)
