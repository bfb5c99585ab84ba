"""The secrets of a database file, sealed anew with another key in one transaction (G11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pegboard.ports.store_copies import Rekeyed
from pegboard.stores.rows.sealing import SealedRow, sealed_name
from pegboard.stores.sqlite.codec import from_column
from pegboard.stores.sqlite.sealed import MARK, select_mark


def rekey(path: Path, connected: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> Rekeyed:
    """Seal every secret with the key that is to seal, and return what became of them.

    A new key is kept before anything is sealed with it. That key counts for everybody, and all is sealed with it, once
    the one transaction is committed; only then the old key goes. Whoever writes waits meanwhile.

    Args:
        path: The file.
        connected: Opens it, with tables of the newest version.
    """
    from pegboard.stores.sqlite.sealing_keys import end_old_key, next_sealing, unlock

    with connected() as connection:
        unlock(path, _named(_select(connection)), select_mark(connection))  # nobody waits while a person is asked
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        rows = _select(connection)
        named, mark = _named(rows), select_mark(connection)
        sealing = next_sealing(path, named, mark)
        if sealing is None:
            return Rekeyed("", made=False, there=len(rows), resealed=0, unopened=len(rows))
        resealed = unopened = 0
        for (kind, key, *_), row in zip(rows, named, strict=True):
            if (found := sealing.opened(row.sealed, row.name)) is None:
                unopened += 1
            elif found[0] != sealing.key:
                given = sealing.seal(found[1], row.name), sealing.place, kind, key
                connection.execute("UPDATE sealed SET sealed = ?, place = ? WHERE kind = ? AND key = ?", given)
                resealed += 1
        made = sealing.place != "variable" and unopened < max(1, len(rows))
        if made:
            connection.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?)", (MARK, sealing.key.mark))
        connection.execute("COMMIT")
        if made:
            connection.execute("BEGIN IMMEDIATE")
            end_old_key(path, sealing.place, select_mark(connection))
            connection.execute("COMMIT")
    return Rekeyed(sealing.place, made, len(rows), resealed, unopened)


def _select(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT kind, key, sealed, place FROM sealed").fetchall()


def _named(rows: Sequence[tuple[Any, ...]]) -> list[SealedRow]:
    return [SealedRow(sealed_name(kind, from_column(key)), sealed, place) for kind, key, sealed, place in rows]
