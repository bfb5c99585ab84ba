"""What an open database must be, and its tables: made, or taken through the steps that they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.errors import StoreError, StoreSchemaError
from pegboard.stores.postgres.refusals import other_encoding, read_only

if TYPE_CHECKING:
    from pegboard.stores.postgres.address import PostgresAddress
    from pegboard.stores.postgres.database import Database, Row, Transaction
    from pegboard.stores.postgres.schema import Step

_OLDEST = 130_000
_LOOK = (
    "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),"
    " pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',"
    " to_regclass('{s}.steps') IS NOT NULL, EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)"
)
_DONE = "SELECT number, breaks FROM {s}.steps ORDER BY number"
_FOREIGN = "SELECT count(*) FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"


async def prepare(database: Database, steps: tuple[Step, ...]) -> None:
    """Make the schema and the tables where they are missing.

    Raises ``StoreError`` where the database cannot be used, ``StoreSchemaError`` where it is newer or not ours.
    """
    address = database.address
    version, encoding, refuses, ours, there = (await database.read(_LOOK, (address.schema,)))[0]
    if version < _OLDEST:
        raise StoreError(f"{address.shown} is PostgreSQL {version // 10_000}; it must be 13 or newer.")
    if encoding != "UTF8":
        raise other_encoding(address, encoding)
    if ours and _lacks(address, await database.read(_DONE), steps) == len(steps):
        if refuses:
            raise read_only(address)
        return
    if refuses:
        raise read_only(address)

    async def migrate(transaction: Transaction) -> None:
        await transaction.run("SELECT pg_advisory_xact_lock(%s)", (address.number,))
        if not there:
            await transaction.run("CREATE SCHEMA IF NOT EXISTS {s}")
        elif not ours and (await transaction.run(_FOREIGN, (address.schema,)))[0][0]:
            await _require_ours(transaction, address)
        await transaction.run(
            "CREATE TABLE IF NOT EXISTS {s}.steps (number integer PRIMARY KEY, breaks boolean NOT NULL,"
            " at timestamptz NOT NULL DEFAULT now())"
        )
        for number in range(_lacks(address, await transaction.run(_DONE), steps), len(steps)):
            for statement in steps[number].statements:
                await transaction.run(statement)
            await transaction.run(
                "INSERT INTO {s}.steps (number, breaks) VALUES (%s, %s)", (number + 1, steps[number].breaks)
            )

    await database.transact(migrate)


async def _require_ours(transaction: Transaction, address: PostgresAddress) -> None:
    """Raise where the tables are not ours: another process may have made them meanwhile."""
    if not (await transaction.run("SELECT to_regclass('{s}.steps') IS NOT NULL"))[0][0]:
        raise StoreSchemaError(
            f"{address.shown}: the schema '{address.schema}' has tables of another program.",
            hint="Name a schema of its own behind the database: `?schema=NAME`; Pegboard makes it.",
        )


def _lacks(address: PostgresAddress, done: list[Row], steps: tuple[Step, ...]) -> int:
    """Return the first step that is not done; raise where one is that this code cannot work with."""
    if breaking := [number for number, breaks in done if breaks and number > len(steps)]:
        raise StoreSchemaError(
            f"{address.shown} has schema version {breaking[0]}; this Pegboard understands versions up to {len(steps)}.",
            hint="Use the newer Pegboard that wrote it, or point `store:` to another schema (`?schema=NAME`).",
        )
    return min(max((number for number, _ in done), default=0), len(steps))
