"""A database file copied out and put in, table by table, and looked over (S2)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pegboard.ports.store_copies import (
    KINDS,
    OF_EVERY_STORE,
    OF_REPLICAS,
    Cell,
    CopiedRecord,
    Rekeyed,
    StoreCheck,
    record_not_valid,
    store_in_use,
    store_missing,
    store_not_empty,
)
from pegboard.stores.rows.sealing import SealedRow, sealed_name
from pegboard.stores.sqlite.codec import from_column, to_column
from pegboard.stores.sqlite.database import Database, explained, is_locked, locked
from pegboard.stores.sqlite.replicas import select_replicas
from pegboard.stores.sqlite.schema import VERSION, version_of
from pegboard.stores.sqlite.sealed import select_mark
from pegboard.support.threads import in_thread

PATIENCE: Final = 30.0
"""For how many seconds a locked file is tried again."""
AT_ONCE: Final = 500
"""How many records make a batch, where they are short."""
CHARACTERS_AT_ONCE: Final = 4 * 1024 * 1024
FAULTS: Final = 20
"""How many faults of a database are named."""


class Table(NamedTuple):
    """Where records of a kind stand; its columns are the fields of the kind, ``order`` that of their making."""

    name: str
    order: str
    blob: int | None = None


TABLES: Final[Mapping[str, Table]] = {
    "counter": Table("counters", "name"),
    "numbering": Table("sqlite_sequence", "name"),
    "secret": Table("secrets", "name", blob=1),
    "session": Table("sessions", "rowid"),
    "session_data": Table("session_data", "principal, agent, session, name"),
    "switch": Table("switches", "agent, name"),
    "principal_switch": Table("principal_switches", "agent, principal, name"),
    "switch_action": Table("switch_actions", "id"),
    "manifest": Table("manifests", "id"),
    "pinned_server": Table("pinned_servers", "plugin"),
    "pin": Table("pins", "plugin, tool"),
    "approval": Table("approvals", "rowid"),
    "accepted": Table("accepted", "configuration"),
    "sealed": Table("sealed", "kind, key", blob=4),
    "use": Table("uses", "id"),
    "bill": Table("bill", "day, principal, agent, session"),
    "usage": Table("usage", "seconds, start, agent, server, tool, outcome"),
    "audit": Table("audit", "id"),
    "call": Table("calls", "id"),
}
NOT_COPIED: Final[Mapping[str, str]] = {
    "leases": "who may do something now: it ends by itself within seconds",
    "replicas": "which processes serve it now",
}
"""Tables that are not copied, and why."""
_KIND_OF: Final = {table.name: kind for kind, table in TABLES.items()}
_COUNT_ON: Final = (
    "INSERT INTO counters (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = max(value + 1, excluded.value)"
)


class SqliteCopies:
    """A database file, for whoever moves it or looks it over."""

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._path: Final = path.absolute()
        self._patience: Final = patience

    @property
    def kind(self) -> str:
        """Return the kind of database."""
        return "sqlite"

    @property
    def place(self) -> str:
        """Return the path of the file."""
        return str(self._path)

    async def export(self) -> AsyncGenerator[Sequence[CopiedRecord]]:
        """Yield every record in batches, all of one reading: other processes go on writing meanwhile."""
        await self._made(missing=True)
        with self._connected("ro") as connection:
            connection.execute("BEGIN")
            for kind in KINDS:
                for batch in _batches(connection, kind):
                    yield batch

    async def import_(self, batches: AsyncIterable[Sequence[CopiedRecord]], *, replace: bool) -> None:
        """Store every record in one transaction, or nothing; other processes wait with what they write meanwhile."""
        await self._made(missing=False)
        with self._connected("rw") as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            _make_room(connection, self._path, replace=replace)
            async for batch in batches:
                for record in batch:
                    _insert(connection, record)
            connection.execute("COMMIT")

    async def rekey(self) -> Rekeyed:
        """Seal every secret with the key that seals now; others wait with what they write meanwhile."""
        from pegboard.stores.sqlite.rekeying import rekey

        await self._made(missing=True)
        return await in_thread(rekey, self._path, lambda: self._connected("rw"))

    async def check(self, *, thorough: bool = True) -> StoreCheck:
        """Return what the file is found to be; it is not brought to the newest version, nor made."""
        self._require()
        return await in_thread(self._check, thorough)

    def _check(self, thorough: bool) -> StoreCheck:
        from pegboard.stores.sqlite.sealing_keys import sealed_state

        with self._connected("rw") as connection:
            read_only = _why_read_only(connection, self._path)
            connection.execute("BEGIN")
            schema = version_of(connection, self._path)
            faults = _faults(connection) if thorough else None
            return StoreCheck(
                kind=self.kind,
                place=self.place,
                engine=f"SQLite {sqlite3.sqlite_version}",
                schema=schema,
                understood=VERSION,
                bytes=_size(self._path),
                read_only=read_only,
                faults=faults,
                counts=_counts(connection),
                sealed=sealed_state(self._path, _sealed(connection), mark=_mark(connection)),
                replicas=select_replicas(connection) if "replicas" in _tables(connection) else [],
                now=time.time(),
            )

    async def _made(self, *, missing: bool) -> None:
        """Bring the file to the newest version; one that is ``missing`` is not made where it is to be read."""
        if missing:
            self._require()
        database = Database(self._path, patience=self._patience)
        await database.open()
        database.close()

    def _require(self) -> None:
        if not self._path.exists():
            raise store_missing(self.place)

    @contextmanager
    def _connected(self, mode: str) -> Generator[sqlite3.Connection]:
        """Open the file while this lasts; what is not committed is not stored."""
        address = f"{self._path.as_uri()}?mode={mode}"
        try:
            with closing(
                sqlite3.connect(
                    address, uri=True, timeout=self._patience, isolation_level=None, check_same_thread=False
                )
            ) as connection:
                yield connection
        except sqlite3.Error as error:
            raise (locked(self._path, self._patience) if is_locked(error) else explained(error, self._path)) from error


def _batches(connection: sqlite3.Connection, kind: str) -> Generator[Sequence[CopiedRecord]]:
    table, batch, size = TABLES[kind], list[CopiedRecord](), 0
    for row in connection.execute(f"SELECT {_columns(kind)} FROM {table.name} ORDER BY {table.order}"):  # noqa: S608 - constants
        if (kind == "numbering" and row[0] not in _KIND_OF) or (kind == "secret" and row[0] == OF_REPLICAS):
            continue
        values = (_KIND_OF[row[0]], row[1]) if kind == "numbering" else _values(row, table.blob)
        batch.append(CopiedRecord(kind, values))
        size += sum(len(value) for value in values if isinstance(value, str | bytes))
        if len(batch) >= AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _columns(kind: str) -> str:
    if kind == "numbering":
        return "name, seq"
    return ", ".join(f'"{name}"' for name in KINDS[kind])


def _values(row: tuple[Cell, ...], blob: int | None) -> Sequence[Cell]:
    """Return a row with its texts as texts, also where SQLite cannot hold them as such."""
    if bytes not in map(type, row):
        return row
    return [_text(cell) if isinstance(cell, bytes) and place != blob else cell for place, cell in enumerate(row)]


def _text(cell: bytes) -> str | bytes:
    """Return the text that stands in bytes; bytes that no text makes, which somebody else wrote, stay."""
    try:
        text = from_column(cell)
    except UnicodeDecodeError:
        return cell
    return text if to_column(text) == cell else cell


def _make_room(connection: sqlite3.Connection, path: Path, *, replace: bool) -> None:
    """Remove what the store has, or refuse where it has something."""
    if replicas := select_replicas(connection):
        raise store_in_use(str(path), replicas)
    held = {kind: count for kind, count in _counts(connection).items() if count and kind not in OF_EVERY_STORE}
    if held and not replace:
        raise store_not_empty(str(path), held)
    for kind, table in TABLES.items():
        if kind not in OF_EVERY_STORE:
            connection.execute(f"DELETE FROM {table.name}")  # noqa: S608 - constants
    connection.execute("DELETE FROM secrets WHERE name <> ?", (OF_REPLICAS,))


def _insert(connection: sqlite3.Connection, record: CopiedRecord) -> None:
    kind, values, _ = record
    cells = [to_column(value) if isinstance(value, str) else value for value in values]
    try:
        match kind:
            case "counter":
                connection.execute(_COUNT_ON, cells)
            case "numbering":
                _number_on(connection, str(values[0]), values[1])
            case _:
                connection.execute(_INSERTS[kind], cells)
    except (sqlite3.IntegrityError, sqlite3.DataError, OverflowError, ValueError) as error:
        raise record_not_valid(record, error) from error


_INSERTS: Final = {
    kind: f"INSERT INTO {table.name} ({_columns(kind)}) VALUES ({', '.join('?' * len(KINDS[kind]))})"  # noqa: S608 - constants
    for kind, table in TABLES.items()
    if kind != "numbering"
}


def _number_on(connection: sqlite3.Connection, kind: str, last: Cell) -> None:
    """Let the numbers of a kind go on behind one."""
    if not isinstance(last, int) or kind not in TABLES:
        raise ValueError("no number")
    name = TABLES[kind].name
    query = "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?"
    if not connection.execute(query, (last, name)).rowcount:
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, last))


# -- what it is found to be ------------------------------------------------------------------------


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many records of each kind there are; an empty file has none."""
    there = _tables(connection)
    return {
        kind: connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] if table.name in there else 0  # noqa: S608 - constants
        for kind, table in TABLES.items()
        if kind not in ("counter", "numbering")
    }


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _why_read_only(connection: sqlite3.Connection, path: Path) -> str:
    """Return why nothing can be written, or nothing."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return "" if is_locked(error) else explained(error, path).message
    connection.execute("ROLLBACK")
    return ""


def _faults(connection: sqlite3.Connection) -> list[str]:
    """Return what is damaged in the file."""
    rows = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({FAULTS})")]
    return [] if rows == ["ok"] else rows


def _sealed(connection: sqlite3.Connection) -> list[SealedRow]:
    if "sealed" not in _tables(connection):
        return []
    rows = connection.execute("SELECT kind, key, sealed, place FROM sealed")
    return [SealedRow(sealed_name(kind, from_column(key)), sealed, place) for kind, key, sealed, place in rows]


def _mark(connection: sqlite3.Connection) -> bytes:
    return select_mark(connection) if "secrets" in _tables(connection) else b""


def _size(path: Path) -> int:
    """Return how many bytes the file and its log have."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
