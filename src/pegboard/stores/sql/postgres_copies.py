"""The way to a PostgreSQL database for its export, import and check."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from pegboard.stores.sql.address import SCHEMA
from pegboard.stores.sql.copies import SqlCopies
from pegboard.stores.sql.database import Row
from pegboard.stores.sql.notifications import PostgresConnection
from pegboard.stores.sql.postgres_database import PostgresDatabase, with_rows
from pegboard.stores.sql.refusals import error_of_database, require_packages, runs_again
from pegboard.stores.sql.schema import TABLES
from pegboard.stores.sql.sealing_keys import SealingKeys
from pegboard.support.backoff import Backoff

AT_ONCE: Final = 500
"""How many rows make a batch."""
PATIENCE: Final = 30.0
_INDEXES: Final = (
    "SELECT 'the index ' || CAST(CAST(indexrelid AS regclass) AS text) || ' is not valid' FROM pg_index JOIN pg_class"
    " ON oid = indrelid WHERE NOT indisvalid AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?)"
)
_STATE: Final = (
    "SELECT current_setting('server_version'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',"
    " (SELECT CAST(sum(pg_total_relation_size(oid)) AS bigint) FROM pg_class WHERE relkind IN ('r', 'S')"
    " AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = ?))"
)


class PostgresCopyConnection:
    """A connection to a database that others use meanwhile."""

    misfits: tuple[type[Exception], ...]

    def __init__(self, database: PostgresDatabase, connection: PostgresConnection) -> None:
        import psycopg

        self.misfits = (psycopg.DataError, psycopg.IntegrityError)
        self._database: Final = database
        self._connection: Final = connection

    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a query."""
        return (await self._database.send(self._connection, [(sql, values)], locks=True))[-1][0]

    async def batches(self, sql: str) -> AsyncGenerator[list[Row]]:
        """Yield the rows of a query in batches."""
        await self.rows(f"DECLARE copied NO SCROLL CURSOR FOR {sql}")
        while rows := await self.rows(f"FETCH FORWARD {AT_ONCE} FROM copied"):
            yield rows
        await self.rows("CLOSE copied")

    async def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run an insert with many rows."""
        if message := with_rows(sql, list(rows)):
            await self._database.send(self._connection, [message], locks=True)

    async def begin_reading(self) -> None:
        """Begin a transaction that sees one moment."""
        await self.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    async def begin_writing(self) -> None:
        """Begin a transaction while no other writes; again where it was undone for the sake of one that did."""
        import psycopg

        deadline = time.monotonic() + PATIENCE
        backoff = Backoff(first=0.01, longest=0.5, jitter=0.5)
        while True:
            await self.rows("BEGIN")
            await self.rows(f"SET LOCAL lock_timeout = '{PATIENCE:g}s'")
            try:
                await self.rows(f"LOCK TABLE {', '.join(f'main.{name}' for name in TABLES)} IN EXCLUSIVE MODE")
            except psycopg.Error as error:
                if not runs_again(error) or time.monotonic() >= deadline:
                    raise
                await self.rows("ROLLBACK")
                await backoff.wait()
            else:
                return

    async def commit(self) -> None:
        """End the transaction."""
        await self.rows("COMMIT")

    async def last_number(self, table: str) -> int:
        """Return the last number that rows of a table were given, 0 where none was."""
        sequence = f"main.{table}_{TABLES[table].number}_seq"
        query = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"  # noqa: S608 - constants
        return (await self.rows(query))[0][0]

    async def number_on(self, table: str, last: int) -> None:
        """Let the numbers of a table go on behind one, and behind those that are stored."""
        number = TABLES[table].number
        stored = (await self.rows(f"SELECT max({number}) FROM main.{table}"))[0][0] or 0  # noqa: S608 - constants
        if newest := max(last, stored):
            await self.rows(f"SELECT setval('main.{table}_{number}_seq', ?)", newest)

    async def describe_database(self, *, thorough: bool) -> dict[str, Any]:
        """Return what the database is."""
        engine, read_only, size = (await self.rows(_STATE, self._database.address.schema))[0]
        return {
            "engine": f"PostgreSQL {engine.split()[0]}",
            "bytes": size or 0,
            "read_only": "a standby, or a database or user that only reads" if read_only else "",
            "faults": await self._faults() if thorough else None,
        }

    async def _faults(self) -> list[str]:
        """Read every value of every table, and return what is damaged."""
        import psycopg

        faults = [row[0] for row in await self.rows(_INDEXES, self._database.address.schema)]
        for name, table in TABLES.items():
            try:
                await self.rows(f"SELECT sum(octet_length(CAST(t AS text))) FROM main.{name} AS t")  # noqa: S608
                newest = (await self.rows(f"SELECT max({table.number or 1}) FROM main.{name}"))[0][0]  # noqa: S608
            except psycopg.Error as error:
                faults.append(
                    f"records of the kind '{name}': {error_of_database(error, self._database.address).message}"
                )
                continue
            if table.number and (newest or 0) > await self.last_number(name):
                faults.append(f"numbers of the kind '{name}' would be given twice")
        return faults


class PostgresCopyPlace:
    """A schema of a database."""

    kind = "postgresql"

    def __init__(self, url: str) -> None:
        self._database: Final = PostgresDatabase(url, patience=PATIENCE)

    @property
    def place(self) -> str:
        """Return the address without user and password."""
        schema = self._database.address.schema
        return self._database.place + (f"?schema={schema}" if schema != SCHEMA else "")

    async def is_there(self) -> bool:
        """Return whether the schema has tables of ours."""
        require_packages()
        try:
            return await self._database.look(writing=False)
        finally:
            await self._database.close()

    async def make(self) -> None:
        """Make the schema and its tables where they are missing."""
        require_packages()
        try:
            await self._database.prepare()
        finally:
            await self._database.close()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[PostgresCopyConnection]:
        """Keep a connection while this lasts; what is not committed then is not stored."""
        import psycopg

        connection = await self._database.connect()
        try:
            yield PostgresCopyConnection(self._database, connection)
        except psycopg.Error as error:
            raise error_of_database(error, self._database.address) from None
        finally:
            await connection.close()


class PostgresCopies(SqlCopies):
    """A store in a PostgreSQL database, for its export, import and check."""

    def __init__(self, url: str) -> None:
        place = PostgresCopyPlace(url)
        super().__init__(place, SealingKeys(place.place))
