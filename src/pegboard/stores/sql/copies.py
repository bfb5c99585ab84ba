"""A store copied out and put in, table by table, and looked over, whichever database it is in (S2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Protocol

from pegboard.ports.replicas import Replica
from pegboard.ports.store_copies import (
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
from pegboard.stores.sql.database import Row, insert
from pegboard.stores.sql.replicas import REPLICAS, SET_BACK
from pegboard.stores.sql.schema import NOT_COPIED, TABLES, VERSION
from pegboard.stores.sql.sealed import SealedRow, sealed_name
from pegboard.support.threads import run_in_thread

if TYPE_CHECKING:
    from pegboard.stores.sql.sealing_keys import SealingKeys

NUMBERING: Final = "numbering"
"""The kind of the last number that records of another kind were given, which counts also where they are gone."""
COPIED: Final = [name for name in TABLES if name not in NOT_COPIED]
KINDS: Final[Mapping[str, Sequence[str]]] = {
    "counter": tuple(TABLES["counter"].columns),
    NUMBERING: ("of", "last"),
    **{name: tuple(TABLES[name].columns) for name in COPIED if name != "counter"},
}
"""The fields of each kind of record, in the order in which kinds are copied."""
_NUMBERED: Final = [name for name in COPIED if TABLES[name].number]
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {"real": (float, int), "text": (str,), "bytes": (bytes,)}
_COUNT_ON: Final = (
    "INSERT INTO main.counter AS old (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
    " SET value = CASE WHEN excluded.value > old.value THEN excluded.value ELSE old.value + 1 END"
)
_MOST: Final = 2**63


class CopyConnection(Protocol):
    """A connection of its own to a database, for a copy or a check."""

    misfits: tuple[type[Exception], ...]
    """What is raised for a row that the database refuses."""

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        ...

    def batches(self, sql: str) -> AsyncGenerator[list[Row]]:
        """Return the rows of a query in batches, in bounded memory."""
        ...

    async def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with each of many rows."""
        ...

    async def begin_reading(self) -> None:
        """Begin a transaction that sees one moment."""
        ...

    async def begin_writing(self) -> None:
        """Begin a transaction alone."""
        ...

    async def commit(self) -> None:
        """End the transaction; without it, nothing is stored."""
        ...

    async def last_number(self, table: str) -> int:
        """Return the last number that rows of a table were given."""
        ...

    async def number_on(self, table: str, last: int) -> None:
        """Let the numbers of a table go on behind one, and behind those that are stored."""
        ...

    async def describe_database(self, *, thorough: bool) -> dict[str, Any]:
        """Return what the database is: ``engine``, ``bytes``, ``read_only`` and ``faults`` of a ``StoreCheck``."""
        ...


class CopyPlace(Protocol):
    """A database that need not be open."""

    kind: str

    @property
    def place(self) -> str:
        """Return where it is; no password is in it."""
        ...

    async def is_there(self) -> bool:
        """Return whether it is a store; raises ``StoreError`` where it is something else."""
        ...

    async def make(self) -> None:
        """Make the tables where they are missing."""
        ...

    def connect(self) -> AbstractAsyncContextManager[CopyConnection]:
        """Return a connection, while this lasts."""
        ...


class SqlCopies:
    """A store, for its export, import and check."""

    def __init__(self, place: CopyPlace, keys: SealingKeys) -> None:
        self._at: Final = place
        self._keys: Final = keys

    @property
    def kind(self) -> str:
        """Return the kind of database."""
        return self._at.kind

    @property
    def place(self) -> str:
        """Return where it is."""
        return self._at.place

    async def export(self) -> AsyncGenerator[Sequence[CopiedRecord]]:
        """Yield every record in batches, all of one reading: other processes go on writing meanwhile."""
        async with self._connect_present() as connection:
            await connection.begin_reading()
            for kind in KINDS:
                if kind == NUMBERING:
                    numbers = [(name, await connection.last_number(name)) for name in _NUMBERED]
                    yield [CopiedRecord(kind, row) for row in numbers if row[1]]
                    continue
                columns = ", ".join(f'"{name}"' for name in KINDS[kind])
                query = f"SELECT {columns} FROM main.{kind} ORDER BY {TABLES[kind].order}"  # noqa: S608 - constants
                async for rows in connection.batches(query):
                    yield [CopiedRecord(kind, row) for row in rows if kind != "secret" or row[0] != OF_REPLICAS]

    async def import_(self, batches: AsyncIterable[Sequence[CopiedRecord]], *, replace: bool) -> None:
        """Store every record in one transaction, or nothing; other processes wait with what they write meanwhile."""
        await self._at.make()
        async with self._at.connect() as connection:
            await connection.begin_writing()
            await self._make_room(connection, replace=replace)
            numbers = {name: await connection.last_number(name) for name in _NUMBERED}
            async for batch in batches:
                for kind, records in groupby(batch, lambda record: record.kind):
                    await _store_records(connection, kind, list(records), numbers)
            for name, last in numbers.items():
                await connection.number_on(name, last)
            await connection.commit()

    async def _make_room(self, connection: CopyConnection, *, replace: bool) -> None:
        """Remove what the store has, or refuse where it has something."""
        if replicas := await _replicas(connection):
            raise store_in_use(self.place, replicas)
        held = {
            kind: count for kind, count in (await _counts(connection)).items() if count and kind not in OF_EVERY_STORE
        }
        if held and not replace:
            raise store_not_empty(self.place, held)
        for name in COPIED:
            if name not in OF_EVERY_STORE:
                await connection.rows(f"DELETE FROM main.{name}")  # noqa: S608 - constants
        await connection.rows("DELETE FROM main.secret WHERE name <> ?", OF_REPLICAS)

    async def rekey(self) -> Rekeyed:
        """Seal every secret with the key that seals now; other processes wait with what they write meanwhile."""
        async with self._connect_present() as connection:
            sealing = await run_in_thread(self._keys.sealing_if_present, await _sealed_rows(connection))
            await connection.begin_writing()
            found, resealed, unopened = await connection.rows("SELECT kind, key, sealed FROM main.sealed"), 0, 0
            for kind, key, sealed in found:
                name = sealed_name(kind, key)
                opened = None if sealing is None else sealing.open_sealed(sealed, name)
                if sealing is None or opened is None:
                    unopened += 1
                elif opened[0].place != sealing.place:
                    change = "UPDATE main.sealed SET sealed = ?, place = ? WHERE kind = ? AND key = ?"
                    await connection.rows(change, sealing.seal(opened[1], name), sealing.place, kind, key)
                    resealed += 1
            await connection.commit()
            return Rekeyed("" if sealing is None else sealing.place, len(found), resealed, unopened)

    async def check(self, *, thorough: bool = True) -> StoreCheck:
        """Return what the store is found to be; it is neither changed nor made."""
        async with self._connect_present() as connection:
            found = await connection.describe_database(thorough=thorough)
            await connection.begin_reading()
            return StoreCheck(
                kind=self.kind,
                place=self.place,
                schema=VERSION,
                understood=VERSION,
                counts=await _counts(connection),
                sealed=self._keys.state(await _sealed_rows(connection)),
                replicas=await _replicas(connection),
                now=(await connection.rows("SELECT clock()"))[0][0],
                **found,
            )

    @asynccontextmanager
    async def _connect_present(self) -> AsyncGenerator[CopyConnection]:
        if not await self._at.is_there():
            raise store_missing(self.place)
        async with self._at.connect() as connection:
            yield connection


async def _counts(connection: CopyConnection) -> dict[str, int]:
    """Return how many records of each kind there are."""
    names = [name for name in COPIED if name != "counter"]
    query = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM main.{name}" for name in names)  # noqa: S608 - constants
    found = dict(await connection.rows(query))
    return {name: found[name] for name in names}


async def _sealed_rows(connection: CopyConnection) -> list[SealedRow]:
    rows = await connection.rows("SELECT kind, key, sealed, place FROM main.sealed")
    return [SealedRow(sealed_name(kind, key), sealed, place) for kind, key, sealed, place in rows]


async def _replicas(connection: CopyConnection) -> list[Replica]:
    return [Replica(*row) for row in await connection.rows(REPLICAS, SET_BACK)]


async def _store_records(
    connection: CopyConnection, kind: str, records: Sequence[CopiedRecord], numbers: dict[str, int]
) -> None:
    """Store records of one kind; raises ``StoreError`` for the one that does not fit."""
    for record in records:
        try:
            _check(record)
        except ValueError as error:
            raise record_not_valid(record, error) from None
    if kind == NUMBERING:
        for record in records:
            name, last = str(record.values[0]), record.values[1]
            if name not in numbers or not isinstance(last, int):
                raise record_not_valid(record, ValueError("there are no such numbers"))
            numbers[name] = max(numbers[name], last)
        return
    statement = _COUNT_ON if kind == "counter" else insert(kind, KINDS[kind])
    await connection.rows("SAVEPOINT batch")
    try:
        await connection.run_many(statement, [record.values for record in records])
    except connection.misfits:
        await connection.rows("ROLLBACK TO SAVEPOINT batch")
        for record in records:  # which one it was
            try:
                await connection.run_many(statement, [record.values])
            except connection.misfits as error:
                raise record_not_valid(record, error) from None
    await connection.rows("RELEASE SAVEPOINT batch")


def _check(record: CopiedRecord) -> None:
    """Raise ``ValueError`` where a value is none of its column."""
    if record.kind == NUMBERING:
        return
    for (name, kind), value in zip(TABLES[record.kind].columns.items(), record.values, strict=True):
        if not _fits_kind(kind, value):
            raise ValueError(f"'{name}' is not of the type {kind}")


def _fits_kind(kind: str, value: Cell) -> bool:
    if value is None:
        return kind.endswith("?")
    if isinstance(value, int) and not -_MOST <= value < _MOST:
        return False
    return isinstance(value, _TYPES.get(kind.rstrip("?"), (int,)))
