"""A database copied out and put in, table by table, and looked over (S2)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pegboard.errors import StoreError
from pegboard.ports.replicas import Replica
from pegboard.ports.store_copies import (
    KINDS,
    OF_EVERY_STORE,
    OF_REPLICAS,
    Cell,
    CopiedRecord,
    Rekeyed,
    SealedState,
    StoreCheck,
    record_not_valid,
    store_in_use,
    store_missing,
    store_not_empty,
)
from pegboard.stores.postgres.address import SCHEMA, address_of
from pegboard.stores.postgres.database import Database
from pegboard.stores.postgres.opening import prepare
from pegboard.stores.postgres.refusals import explained, require_packages
from pegboard.stores.postgres.schema import STEPS, Step
from pegboard.stores.postgres.texts import from_column, key_of, to_column

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from pegboard.stores.postgres.address import PostgresAddress

AT_ONCE: Final = 500
"""How many records make a batch."""
_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_WAITS: Final = "SET LOCAL lock_timeout = '30s'"
_PLACE: Final = re.compile(r"line (\d+)")
Values = Mapping[str, Any]


class Table(NamedTuple):
    """Where records of a kind stand: the columns that are made of others, and the order of their making."""

    name: str
    order: str
    keys: tuple[str, ...] = ()
    made: Callable[[Values], Sequence[Any]] = lambda _: ()
    source: str = ""
    """What is selected from, where that is more than the table."""
    elsewhere: frozenset[str] = frozenset()
    """Fields that have no column of their own."""


def _names(*names: str) -> Callable[[Values], bytes]:
    return lambda values: key_of(*(values[name] for name in names))


def _keys(*keys: Callable[[Values], Any]) -> Callable[[Values], Sequence[Any]]:
    return lambda values: [key(values) for key in keys]


_SESSION: Final = _names("principal", "agent", "session")
TABLES: Final[Mapping[str, Table]] = {
    "secret": Table("secrets", "name"),
    "session": Table("sessions", "version, principal, agent, session", ("key",), _keys(_SESSION)),
    "session_data": Table(
        "session_data", "principal, agent, session, name", ("of", "key"), _keys(_SESSION, _names("name"))
    ),
    "switch": Table("switches", "agent, name", ("key",), _keys(_names("agent", "name"))),
    "principal_switch": Table(
        "principal_switches", "agent, principal, name", ("key",), _keys(_names("agent", "principal", "name"))
    ),
    "switch_action": Table("switch_actions", "id"),
    "manifest": Table(
        "manifests", "id", ("key", "of"), _keys(_names("plugin", "fingerprint"), _names("plugin"))
    ),
    "pinned_server": Table("pinned_servers", "plugin", ("key",), _keys(_names("plugin"))),
    "pin": Table(
        "pins", "plugin, tool", ("server", "key"), _keys(_names("plugin"), _names("tool")),
        "{s}.pins JOIN (SELECT key AS server, plugin FROM {s}.pinned_servers) AS servers USING (server)",
        frozenset({"plugin"}),
    ),
    "approval": Table("approvals", "number", ("call",), _keys(_names("principal", "agent", "tool"))),
    "accepted": Table("accepted", "configuration", ("key",), _keys(_names("configuration"))),
    "sealed": Table("sealed", "kind, key", ("id",), _keys(_names("kind", "key"))),
    "use": Table(
        "uses", "id", ("key", "of"),
        _keys(_names("principal", "agent", "need", "tool"), _names("principal", "agent")),
    ),
    "bill": Table(
        "bill", "day, principal, agent, session", ("key",), _keys(_names("day", "principal", "agent", "session"))
    ),
    "usage": Table(
        "usage", "seconds, start, agent, server, tool, outcome", ("key",),
        _keys(_names("agent", "server", "tool", "outcome")),
    ),
    "audit": Table(
        "audit", "id", ("of", "moment"), _keys(_SESSION, lambda values: datetime.fromisoformat(values["at"]))
    ),
    "call": Table("calls", "id"),
}  # fmt: skip
NOT_COPIED: Final[Mapping[str, str]] = {
    "steps": "the version of the tables, which those that it is put into have",
    "flushes": "which batches of which processes are stored",
    "leases": "who may do something now: it ends by itself within seconds",
    "replicas": "which processes serve it now",
}
"""Tables that are not copied, and why."""
_COUNTERS: Final = {"version": "versions", "pins": "versions", "permissions": "permissions_told"}
"""The sequence that stands for each counter; of two, the one with the greater number counts."""
_NUMBERED: Final = ("switch_action", "manifest", "use", "audit")
_SWITCHES: Final = frozenset({"switch", "principal_switch"})
_FAULTS: Final = (
    "SELECT format('the index %%s is not valid', indexrelid::regclass) FROM pg_index JOIN pg_class ON oid = indrelid"
    " WHERE NOT indisvalid AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
)


class PostgresCopies:
    """A database, for whoever moves it or looks it over."""

    def __init__(self, url: str, *, steps: tuple[Step, ...] = STEPS) -> None:
        self._address: Final[PostgresAddress] = address_of(url)
        self._steps: Final = steps

    @property
    def kind(self) -> str:
        """Return the kind of database."""
        return "postgresql"

    @property
    def place(self) -> str:
        """Return the address without user and password."""
        schema = self._address.schema
        return self._address.shown + (f"?schema={schema}" if schema != SCHEMA else "")

    async def export(self) -> AsyncGenerator[Sequence[CopiedRecord]]:
        """Yield every record in batches, all of one reading: other processes go on writing meanwhile."""
        async with self._connected() as connection:
            await self._require(connection)
            await self._prepared()
            await self._run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield await self._counted(connection)
            for kind, table in TABLES.items():
                fields = ", ".join(f'"{name}"' for name in KINDS[kind])
                source = table.source or f"{{s}}.{table.name}"
                query = f"SELECT {fields} FROM {source} ORDER BY {table.order}"  # noqa: S608 - constants
                await self._run(connection, f"DECLARE copied NO SCROLL CURSOR FOR {query}")
                while rows := await self._run(connection, f"FETCH FORWARD {AT_ONCE} FROM copied"):
                    yield [
                        CopiedRecord(kind, _values(kind, row))
                        for row in rows
                        if kind != "secret" or row[0] != OF_REPLICAS
                    ]
                await self._run(connection, "CLOSE copied")
            await self._run(connection, "COMMIT")

    async def _counted(self, connection: AsyncConnection[Any]) -> list[CopiedRecord]:
        """Return the counters, and the last number of each kind that has numbers."""
        found: list[CopiedRecord] = []
        for name, sequence in _COUNTERS.items():
            found.append(CopiedRecord("counter", [name, await self._last(connection, sequence)]))
        for kind in _NUMBERED:
            last = await self._last(connection, _sequence(kind))
            found += [CopiedRecord("numbering", [kind, last])] if last else []
        return found

    async def import_(self, batches: AsyncIterable[Sequence[CopiedRecord]], *, replace: bool) -> None:
        """Store every record in one transaction, or nothing; other processes wait with what they write meanwhile."""
        await self._prepared()
        async with self._connected() as connection:
            await self._run(connection, "BEGIN")
            await self._run(connection, _WAITS)
            await self._run(connection, f"SELECT pg_advisory_xact_lock({self._address.number + 1})")
            names = ", ".join(f"{{s}}.{table.name}" for table in TABLES.values())
            await self._run(connection, f"LOCK TABLE {names} IN EXCLUSIVE MODE")
            await self._make_room(connection, replace=replace)
            last: dict[str, int] = {}
            async for batch in batches:
                for kind, records in groupby(batch, lambda record: record.kind):
                    if kind in ("counter", "numbering"):
                        _take_numbers(last, list(records))
                    else:
                        await self._put(connection, kind, list(records))
            await self._go_on(connection, last)
            await self._run(connection, "COMMIT")

    async def _make_room(self, connection: AsyncConnection[Any], *, replace: bool) -> None:
        """Remove what the store has, or refuse where it has something."""
        if replicas := await self._replicas(connection):
            raise store_in_use(self.place, replicas)
        counts = await self._counts(connection)
        held = {kind: count for kind, count in counts.items() if count and kind not in OF_EVERY_STORE}
        if held and not replace:
            raise store_not_empty(self.place, held)
        for kind, table in TABLES.items():
            if kind != "secret":
                await self._run(connection, f"DELETE FROM {{s}}.{table.name}")  # noqa: S608 - constants
        await self._run(connection, f"DELETE FROM {{s}}.secrets WHERE name <> '{OF_REPLICAS}'")  # noqa: S608 - a constant

    async def _put(self, connection: AsyncConnection[Any], kind: str, records: Sequence[CopiedRecord]) -> None:
        import psycopg

        table = TABLES[kind]
        own = [name for name in KINDS[kind] if name not in table.elsewhere]
        columns = ", ".join(f'"{name}"' for name in (*table.keys, *own))
        rows = [_row(kind, table, own, record) for record in records]
        query = f"COPY {self._address.quoted}.{table.name} ({columns}) FROM STDIN"
        try:
            async with connection.cursor() as cursor, cursor.copy(query.encode()) as copy:
                for row in rows:
                    await copy.write_row(row)
        except psycopg.DataError as error:
            raise self._misfit(records, error) from None
        except psycopg.IntegrityError as error:
            raise self._misfit(records, error) from None

    def _misfit(self, records: Sequence[CopiedRecord], error: Any) -> StoreError:
        """Return the error for the record that the server refused, which it tells by its place in what was sent."""
        found = _PLACE.search(error.diag.context or "")
        place = min(int(found[1]), len(records)) - 1 if found else len(records) - 1
        return record_not_valid(records[place], ValueError(error.diag.message_primary or type(error).__name__))

    async def _go_on(self, connection: AsyncConnection[Any], last: Mapping[str, int]) -> None:
        """Let numbers go on behind those that were put in and those that were given here before.

        Whoever has the store open finds the newest of them within seconds, and reads everything anew.
        """
        greatest = {
            "versions": "(SELECT max(version) FROM {s}.sessions), (SELECT max(version) FROM {s}.sealed),"
            " (SELECT max(revision) FROM {s}.pinned_servers)",
            **{_sequence(kind): f"(SELECT max(id) FROM {{s}}.{TABLES[kind].name})" for kind in _NUMBERED},  # noqa: S608
        }
        for name in {*greatest, *_COUNTERS.values(), "states_told"}:
            stored = greatest.get(name, "NULL")
            ahead = await self._last(connection, name) + (name not in map(_sequence, _NUMBERED))
            query = f"SELECT greatest({last.get(name, 0)}, {ahead}, {stored})"
            number = (await self._run(connection, query))[0][0]
            if number:
                await self._run(connection, f"SELECT setval('{{s}}.{name}', {number})")

    async def rekey(self) -> Rekeyed:
        """Seal every secret with the key of the variable, row by row while others go on."""
        from pegboard.stores.postgres.rekeying import rekey

        async with self._connected() as connection:
            await self._require(connection)
            await self._prepared()

            async def run(query: str, values: Sequence[Any] = ()) -> list[Any]:
                return await self._run(connection, query, values)

            return await rekey(run)

    # -- what it is found to be --------------------------------------------------------------------

    async def check(self, *, thorough: bool = True) -> StoreCheck:
        """Return what the database is found to be; its tables are neither brought to the newest version nor made."""
        async with self._connected() as connection:
            await self._require(connection)
            schema = (await self._run(connection, "SELECT coalesce(max(number), 0) FROM {s}.steps"))[0][0]
            engine, read_only, size = (
                await self._run(
                    connection,
                    "SELECT current_setting('server_version'),"
                    " pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',"
                    " (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind IN ('r', 'S')"
                    " AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s))",
                    (self._address.schema,),
                )
            )[0]
            return StoreCheck(
                kind=self.kind,
                place=self.place,
                engine=f"PostgreSQL {engine.split()[0]}",
                schema=schema,
                understood=len(self._steps),
                bytes=size or 0,
                read_only="a standby, or a database or user that only reads" if read_only else "",
                faults=await self._faults(connection) if thorough else None,
                counts=await self._counts(connection),
                sealed=_sealed_state(await self._run(connection, "SELECT kind, key, sealed FROM {s}.sealed")),
                replicas=await self._replicas(connection),
                now=(await self._run(connection, f"SELECT {_NOW}"))[0][0],
            )

    async def _faults(self, connection: AsyncConnection[Any]) -> list[str]:
        """Read every value of every table, and return what is damaged."""
        faults = [row[0] for row in await self._run(connection, _FAULTS, (self._address.schema,))]
        for kind, table in TABLES.items():
            query = f"SELECT sum(octet_length(t::text)) FROM {{s}}.{table.name} AS t"  # noqa: S608 - constants
            try:
                await self._run(connection, query)
            except StoreError as error:
                faults.append(f"records of the kind '{kind}': {error.message}")
        for kind in _NUMBERED:
            query = f"SELECT max(id) FROM {{s}}.{TABLES[kind].name}"  # noqa: S608 - constants
            newest = (await self._run(connection, query))[0][0] or 0
            if newest > await self._last(connection, _sequence(kind)):
                faults.append(f"numbers of the kind '{kind}' would be given twice")
        return faults

    async def _counts(self, connection: AsyncConnection[Any]) -> dict[str, int]:
        query = " UNION ALL ".join(f"SELECT count(*) FROM {{s}}.{table.name}" for table in TABLES.values())  # noqa: S608
        return dict(zip(TABLES, (row[0] for row in await self._run(connection, query)), strict=True))

    async def _replicas(self, connection: AsyncConnection[Any]) -> list[Replica]:
        query = f"SELECT id, address, version, seen_at FROM {{s}}.replicas WHERE until > {_NOW} ORDER BY id"  # noqa: S608
        rows = await self._run(connection, query)
        return [Replica(*map(from_column, row[:3]), seen_at=row[3]) for row in rows]

    # -- the way to it -----------------------------------------------------------------------------

    async def _prepared(self) -> None:
        """Bring the tables to the newest version; they are made where they are missing."""
        require_packages()
        database = Database(self._address, patience=30.0)
        try:
            await prepare(database, self._steps)
        finally:
            await database.close()

    async def _require(self, connection: AsyncConnection[Any]) -> None:
        """Refuse a database without our tables."""
        if not (await self._run(connection, "SELECT to_regclass('{s}.steps') IS NOT NULL"))[0][0]:
            raise store_missing(self.place)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncConnection[Any]]:
        """Keep a connection while this lasts; what is not committed then is not stored."""
        require_packages()
        import psycopg

        database = Database(self._address, patience=30.0)
        connection = await database.connect()
        try:
            yield connection
        except psycopg.Error as error:
            raise explained(error, self._address) from None
        finally:
            await connection.close()

    async def _run(self, connection: AsyncConnection[Any], query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement; of one that has none, nothing."""
        import psycopg

        try:
            async with connection.cursor() as cursor:
                await cursor.execute(query.replace("{s}", self._address.quoted).encode(), values or None)
                return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise explained(error, self._address) from None

    async def _last(self, connection: AsyncConnection[Any], sequence: str) -> int:
        """Return the last number that a sequence gave, 0 where it gave none yet."""
        query = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {{s}}.{sequence}"  # noqa: S608 - constants
        return (await self._run(connection, query))[0][0]


def _sequence(kind: str) -> str:
    return f"{TABLES[kind].name}_id_seq"


def _values(kind: str, row: Sequence[Any]) -> list[Cell]:
    """Return a row as the values of a record."""
    return [_value(cell) for cell in row] if kind not in _SWITCHES else [*map(_value, row[:-1]), int(row[-1])]


def _value(cell: Any) -> Cell:
    return from_column(cell) if isinstance(cell, str) else cell


def _row(kind: str, table: Table, own: Sequence[str], record: CopiedRecord) -> list[Any]:
    """Return a record as a row; raises ``StoreError`` where it does not fit."""
    values = dict(zip(KINDS[kind], record.values, strict=True))
    try:
        if kind in _SWITCHES:
            values["value"] = _boolean(values["value"])
        blobs = {"secret": {"value"}, "sealed": {"sealed"}}.get(kind, set[str]())
        if any(isinstance(value, bytes) and name not in blobs for name, value in values.items()):
            raise ValueError("a text that is none")
        cells = [values[name] for name in own]
        return [*table.made(values), *(to_column(cell) if isinstance(cell, str) else cell for cell in cells)]
    except (ValueError, TypeError, KeyError) as error:
        raise record_not_valid(record, error) from None


def _boolean(value: Cell) -> bool:
    if value not in (0, 1):
        raise ValueError("a switch is 0 or 1")
    return value == 1


def _take_numbers(last: dict[str, int], records: Sequence[CopiedRecord]) -> None:
    """Note the greatest number for each sequence."""
    for record in records:
        kind, (name, number, *_), _ = record
        sequence = (
            _COUNTERS.get(str(name)) if kind == "counter" else _sequence(str(name)) if name in _NUMBERED else None
        )
        if sequence is None or not isinstance(number, int) or not 0 <= number < 2**62:
            raise record_not_valid(record, ValueError("no number of anything here"))
        last[sequence] = max(last.get(sequence, 0), number)


def _sealed_state(rows: Sequence[tuple[str, str, bytes]]) -> SealedState:
    """Return how secrets stand to the key of the environment variable; there is no other."""
    from pegboard.stores.rows.key_texts import key_of_variable, with_second
    from pegboard.stores.rows.sealing import SealedRow, Sealing, sealed_name

    try:
        key = key_of_variable()
        if key is None:
            return SealedState(place="", there=len(rows), unopened=len(rows))
        keys = with_second(key)
        if rows:
            names = [sealed_name(from_column(kind), from_column(name)) for kind, name, _ in rows]
            return Sealing(*keys).state(SealedRow(name, row[2], "") for name, row in zip(names, rows, strict=True))
    except StoreError as error:
        return SealedState(place="variable", there=len(rows), unopened=len(rows), problem=error.message)
    except ImportError:
        problem = "The extra mcp is missing, which has what opens it."
        return SealedState(place="variable", there=len(rows), unopened=len(rows), problem=problem)
    return SealedState(place=key.place, there=0, unopened=0)
