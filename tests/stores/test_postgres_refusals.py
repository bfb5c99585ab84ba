"""A database that cannot be used, and a server that cannot be reached: one clear error each, never a password (X5)."""

import asyncio
import socket
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from relays import Relay, relayed
from test_store_contract import KEY

from acceptance import accept_found
from pegboard import Pegboard
from pegboard.cli import main
from pegboard.errors import StoreError, StoreSchemaError, StoreUnavailableError
from pegboard.ports import StateChange
from pegboard.stores.sql import PostgresStore
from pegboard.stores.sql.schema import VERSION
from pegboard.support.installed import install_hint
from postgres_server import PostgresServer

PASSWORD = "hunter2-and-more"


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> PostgresServer:
    """Return the server with users of all kinds, and a database of another encoding."""
    rules = postgres.folder / "pg_hba.conf"
    rules.write_text(f"local all locked scram-sha-256\nlocal all outsider reject\n{rules.read_text('utf-8')}", "utf-8")
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE locked LOGIN PASSWORD '{PASSWORD}'",
            "CREATE ROLE outsider LOGIN",
            "CREATE ROLE guest LOGIN",
            "CREATE ROLE reader LOGIN SUPERUSER",
            "ALTER ROLE reader SET default_transaction_read_only = on",
            "CREATE ROLE alone LOGIN CONNECTION LIMIT 0",
            "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
            "SELECT pg_reload_conf()",
        ):
            connection.execute(statement)
    return postgres


@pytest.fixture
def database(server: PostgresServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        yield connection


async def refusal(url: str, kind: type[StoreError] = StoreError) -> StoreError:
    """Return why a store does not open; neither it nor its traceback has the password."""
    store = PostgresStore(url)
    with pytest.raises(kind) as caught:
        await store.open()
    assert type(caught.value) is kind
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    await store.aclose()
    return caught.value


@pytest.mark.parametrize(
    ("user", "database", "message", "hint"),
    [
        ("locked", "postgres", "refuses the user or the password", "%40"),
        (f"locked:{PASSWORD}x", "postgres", "refuses the user or the password", "%40"),
        ("nobody", "postgres", "does not know the user", "CREATE ROLE"),
        ("outsider", "postgres", "pg_hba.conf", "Let an administrator of the server permit it"),
        ("postgres", "nowhere", "there is no such database", "CREATE DATABASE"),
        ("guest", "postgres", "the user has no right to the schema", "AUTHORIZATION"),
        ("reader", "postgres", "is read-only", "primary"),
        ("postgres", "ascii", "has the encoding SQL_ASCII", "ENCODING 'UTF8'"),
    ],
)
async def test_a_database_that_cannot_be_used_is_refused_with_what_to_do(
    server: PostgresServer, user: str, database: str, message: str, hint: str
) -> None:
    error = await refusal(server.address(user=user, database=database))
    assert message in error.message
    assert hint in error.hint


async def test_a_user_without_rights_to_what_is_there_is_refused(server: PostgresServer) -> None:
    store = PostgresStore(server.address("owned"))
    await store.open()
    await store.aclose()
    assert "has no right to the schema 'owned'" in (await refusal(server.address("owned", user="guest"))).message


async def test_who_has_no_connection_left_is_told_so_and_tries_again(server: PostgresServer) -> None:
    assert "too many connections" in (await refusal(server.address(user="alone"), StoreUnavailableError)).message


async def test_a_server_that_is_not_there_cannot_be_reached_now(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "no-such-host.invalid", ""):
            url = f"postgresql://ada:{PASSWORD}@{host}/pegboard?host={tmp_path}"
            error = await refusal(url if not host else url.partition("?")[0], StoreUnavailableError)
            assert "cannot be reached now: " in error.message
            assert "ada" not in error.message.partition("cannot be reached")[2]


async def test_a_server_that_is_too_far_away_cannot_be_reached_now(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G14: whoever waits is not kept for longer than a few seconds."""
    monkeypatch.setattr("pegboard.stores.sql.postgres_database.CONNECT_SECONDS", 2)
    async with relayed(Relay(server.folder)) as relay:
        relay.delay = 10
        async with asyncio.timeout(5):
            error = await refusal(relay.address(server.address()), StoreUnavailableError)
    assert "cannot be reached now" in error.message


async def test_a_full_disk_is_named_and_nothing_is_changed(
    server: PostgresServer, database: psycopg.Connection
) -> None:
    store = PostgresStore(server.address())
    await store.open()
    table = f"{store.address.quoted}.session"
    database.execute(
        "CREATE OR REPLACE FUNCTION public.no_room() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
    )
    database.execute(f"CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION public.no_room()".encode())
    with pytest.raises(StoreError) as caught:
        await store.save(KEY, "text", expected=0)
    assert "the disk of the server is full" in caught.value.message
    assert await store.load(KEY) is None
    database.execute(f"DROP TRIGGER no_room ON {table}".encode())
    assert await store.save(KEY, "text", expected=0)
    await store.aclose()


# -- versions --------------------------------------------------------------------------------------


async def test_many_processes_that_begin_at_once_make_the_tables_once(server: PostgresServer) -> None:
    url = server.address()
    stores = [PostgresStore(url) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    assert len({await store.digest_key() for store in stores}) == 1
    for store in stores:
        await store.aclose()


async def test_tables_of_a_newer_version_are_refused_and_left_alone(
    server: PostgresServer, database: psycopg.Connection
) -> None:
    store = PostgresStore(server.address("newer"))
    await store.open()
    await store.aclose()
    database.execute(f"UPDATE newer.pegboard_store SET version = {VERSION + 1}".encode())
    error = await refusal(server.address("newer"), StoreSchemaError)
    assert f"schema version {VERSION + 1}" in error.message
    assert "newer Pegboard" in error.hint


@pytest.mark.parametrize("table", ["orders", "steps"], ids=["another program", "an earlier Pegboard"])
async def test_a_schema_that_is_not_of_this_pegboard_is_refused_and_left_alone(
    server: PostgresServer, database: psycopg.Connection, table: str
) -> None:
    schema = f"with_{table}"
    database.execute(f"CREATE SCHEMA {schema}".encode())
    database.execute(f"CREATE TABLE {schema}.{table} (id int)".encode())
    error = await refusal(server.address(schema), StoreSchemaError)
    assert f"the schema '{schema}' is not a store of this Pegboard" in error.message
    assert f'ALTER SCHEMA "{schema}" RENAME TO' in error.hint
    assert "?schema=" in error.hint
    tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    assert tables == [(table,)]


async def test_tables_that_were_removed_meanwhile_are_named(
    server: PostgresServer, database: psycopg.Connection
) -> None:
    store = PostgresStore(server.address("gone"))
    await store.open()
    database.execute("DROP SCHEMA gone CASCADE")
    with pytest.raises(StoreSchemaError) as caught:
        await store.load(KEY)
    assert "are missing or of another version" in caught.value.message
    await store.aclose()


async def test_more_changes_than_a_message_names_are_told_as_all(server: PostgresServer) -> None:
    """S2: what is told has less than 8,000 bytes."""
    store = PostgresStore(server.address())
    await store.open()
    changes = [StateChange(key=replace(KEY, session=str(number)), text="text", expected=0) for number in range(600)]
    versions = await store.save_together(changes)
    assert versions is not None
    assert len(await store.sessions()) == 600
    await store.aclose()


# -- what is not installed, and what the command says ----------------------------------------------


@pytest.mark.parametrize("package", ["psycopg", "psycopg_pool"])
async def test_a_package_that_is_missing_is_named_with_how_to_install_it(
    server: PostgresServer, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = await refusal(server.address())
    assert error.hint == install_hint(extra="postgres")


async def test_nothing_that_is_written_down_has_the_password(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X5, P10: what was accepted is kept outside of the store, too, with which store it was."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("GRANT CREATE ON DATABASE postgres TO locked")
    config = tmp_path / "pegboard.yaml"
    url = server.address(user=f"locked:{PASSWORD}")
    for agents in ("{a: {}}", "{a: {}, b: {}}"):
        config.write_text(f"reload: ask\nstore: {url}\nagents: {agents}\n", "utf-8")
        async with Pegboard.open(config, cached=True) as board:
            await board.accept()
    written = [file.read_bytes() for folder in ("state", "cache") for file in (tmp_path / folder).rglob("*.json")]
    assert any(server.folder.name.encode() in text for text in written)
    assert not any(PASSWORD.encode() in text for text in written)


@pytest.mark.parametrize("written", ["literal", "variable"])
def test_the_command_says_what_is_wrong_in_one_line_without_the_password(
    server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    written: str,
) -> None:
    """X5."""
    monkeypatch.setenv("DB_PASSWORD", PASSWORD + "y")
    password = PASSWORD + "x" if written == "literal" else "${DB_PASSWORD}"
    url = server.address(user=f"locked:{password}")
    (tmp_path / "pegboard.yaml").write_text(f"store: {url}\nagents: {{a: {{}}}}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    accept_found()
    assert main(["session", "list"]) == 1
    printed = "".join(capfd.readouterr())
    assert "refuses the user or the password" in printed
    assert PASSWORD not in printed
    assert "Traceback" not in printed
