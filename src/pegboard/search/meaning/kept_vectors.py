"""The vectors that a transformer made of texts, in a file for the next start: they are dear."""

from __future__ import annotations

import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from pegboard.search.meaning.word_vectors import Steps

log = logging.getLogger("pegboard")

FILE: Final = "vectors-1.db"
"""Its name has the form: a file of another form is not read."""
MOST: Final = 100_000
"""So many vectors are kept, about 90 MiB: those that were used last."""
_TOGETHER: Final = 500
_BUSY_SECONDS: Final = 5.0
_DAY: Final = 86_400
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS vectors (
    model TEXT NOT NULL, key BLOB NOT NULL, vector BLOB NOT NULL, checksum INTEGER NOT NULL, used INTEGER NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID
"""
_OLDEST: Final = """
DELETE FROM vectors WHERE (model, key) IN (
    SELECT model, key FROM vectors ORDER BY used LIMIT max(0, (SELECT count(*) FROM vectors) - ?)
)
"""


class KeptVectors:
    """The vectors of one model, by key; several processes may use the file at once.

    A damaged file is removed and begun anew. Where it cannot be written, the vectors are kept in memory; it is to be
    used in one thread alone.
    """

    def __init__(self, folder: Path | None, model: str, *, most: int = MOST) -> None:
        self._file = Path(":memory:") if folder is None else folder / FILE
        self._model = model
        self._most = most
        self._today = int(time.time()) // _DAY
        try:
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = _opened(str(self._file))
        except (OSError, sqlite3.Error) as error:
            self._connection = self._anew(error)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def of(self, keys: Sequence[bytes], columns: int) -> dict[bytes, Steps]:
        """Return the vectors of these keys that are there and not damaged."""
        found: dict[bytes, Steps] = {}
        try:
            for key, vector, checksum in self._rows(list(dict.fromkeys(keys))):
                if len(vector) == 2 * columns and zlib.crc32(vector) == checksum:
                    found[key] = np.frombuffer(vector, np.int16)
        except sqlite3.Error as error:
            self._begin_anew(error)
        return found

    def add(self, made: Mapping[bytes, Steps]) -> None:
        """Keep vectors: all of these, or, where it is interrupted, none."""
        rows = [(key, vector.tobytes()) for key, vector in made.items()]
        values = [(self._model, key, vector, zlib.crc32(vector), self._today) for key, vector in rows]
        try:
            self._write(values)
        except sqlite3.Error as error:
            self._begin_anew(error)
            with suppress(sqlite3.Error):
                self._write(values)

    def _write(self, values: Sequence[tuple[str, bytes, bytes, int, int]]) -> None:
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", values)
            self._connection.execute(_OLDEST, (self._most,))

    def _rows(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes, int]]:
        for start in range(0, len(keys), _TOGETHER):
            part = keys[start : start + _TOGETHER]
            these = f"model = ? AND key IN ({', '.join('?' * len(part))})"
            with self._connection:
                touched = f"UPDATE vectors SET used = ? WHERE used < ? AND {these}"  # noqa: S608
                self._connection.execute(touched, (self._today, self._today, self._model, *part))
                sql = f"SELECT key, vector, checksum FROM vectors WHERE {these}"  # noqa: S608
                yield from self._connection.execute(sql, (self._model, *part)).fetchall()

    def _begin_anew(self, error: sqlite3.Error) -> None:
        self._connection.close()
        self._connection = self._anew(error)

    def _anew(self, error: Exception) -> sqlite3.Connection:
        """Return where vectors are kept after the file failed: in a new one where it is damaged, else in memory."""
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError, sqlite3.Error):
                self._file.unlink()
                return _opened(str(self._file))
        log.warning("%s cannot keep the vectors of tools, so the next start makes them anew: %s", self._file, error)
        return _opened(":memory:")


def _opened(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=_BUSY_SECONDS)
    try:
        with connection:
            connection.execute(_TABLE)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
