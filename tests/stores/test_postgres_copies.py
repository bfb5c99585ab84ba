"""A database copied out and put in: every record, in one reading, all or nothing, from and to a file as well."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from copied_samples import answers, fill, record
from kinds import KEY
from test_store_copies import batches_of, copied, lines_of, put_in

from pegboard.errors import StoreError
from pegboard.ports import SessionKey
from pegboard.ports.replicas import Replica
from pegboard.ports.store_copies import CopiedRecord
from pegboard.stores.sql import PostgresStore, SqliteStore
from pegboard.stores.sql.copies import KINDS
from pegboard.stores.sql.postgres_copies import PostgresCopies
from pegboard.stores.sql.schema import TABLES
from pegboard.stores.sql.sqlite_copies import SqliteCopies
from pegboard.support.installed import install_line
from postgres_server import PostgresServer

OWN = SessionKey(principal="ada", agent="agent", session="own")


@pytest.fixture(autouse=True)
def given_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_KEY", KEY)


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.address()


@pytest.fixture
async def filled(url: str) -> AsyncIterator[PostgresStore]:
    """Return a store with something of every kind in it."""
    store = PostgresStore(url)
    await store.open()
    await fill(store)
    yield store
    await store.aclose()


def rows(postgres: PostgresServer, url: str, query: str) -> list[Any]:
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        return connection.execute(query.replace("{s}", schema).encode()).fetchall()


async def test_s2_from_a_file_to_a_server_and_back_every_answer_is_the_same(url: str, tmp_path: Path) -> None:
    """S2: hostile texts, numbers, versions, revisions, secrets sealed as they were; no line differs afterwards."""
    first = SqliteStore(tmp_path / "first.db")
    await first.open()
    await fill(first)
    before, lines = await answers(first), await copied(SqliteCopies(first.path))
    server = PostgresCopies(url)
    await put_in(server, lines)
    between = PostgresStore(url)
    await between.open()
    assert await answers(between) == before
    await between.aclose()
    await put_in(SqliteCopies(tmp_path / "last.db"), await copied(server))
    last = SqliteStore(tmp_path / "last.db")
    await last.open()
    assert await answers(last) == before
    again = await copied(SqliteCopies(last.path))
    assert plain(again) == plain(lines)
    for store in (first, last):
        await store.aclose()


def plain(lines: bytes) -> list[bytes]:
    """Return the lines between the first and the last, without counters, which go on, and sums."""
    return [line[:-19] for line in lines.splitlines()[1:-1] if not line.startswith(b'{"counter"')]


async def test_s2_a_copy_of_a_server_is_of_one_moment(url: str, filled: PostgresStore) -> None:
    """S2: what is written meanwhile is in none of it, and whoever writes does not wait."""
    async with aclosing(PostgresCopies(url).export()) as batches:
        records = [*await anext(batches)]
        await filled.save(OWN, "written meanwhile", expected=0, audit=[record(1, "written meanwhile")])
        records += [one async for batch in batches for one in batch]
    assert {one.kind for one in records} == set(KINDS)
    assert "written meanwhile" not in [value for one in records for value in one.values]


@pytest.mark.parametrize(
    "fault",
    [
        CopiedRecord("switch", ["agent", "new", 1], 8),
        CopiedRecord("request", [1, 1, 1, *[None] * 13], 8),
        CopiedRecord("session", ["a", "b", "c", 2**70, 1.0, ""], 8),
        CopiedRecord("session", ["a", "b", b"\xff", 1, 1.0, ""], 8),
        CopiedRecord("numbering", ["nothing", 1], 8),
        CopiedRecord("counter", ["version", "many"], 8),
    ],
)
async def test_s2_a_record_that_does_not_fit_is_named_and_a_server_stays_as_it_was(
    url: str, filled: PostgresStore, fault: CopiedRecord
) -> None:
    """S2: with --replace too."""
    before = await answers(filled)
    good = CopiedRecord("switch", ["agent", "new", 1], 7)
    with pytest.raises(StoreError, match="Line 8 of the copy") as caught:
        await PostgresCopies(url).import_(batches_of(good, fault), replace=True)
    assert caught.value.code == "copy_not_valid"
    assert await answers(filled) == before


async def test_s2_a_server_that_has_something_or_is_served_takes_no_copy(url: str, filled: PostgresStore) -> None:
    """S2, G14: it goes on behind the numbers that were given in it; its replicas keep their secret."""
    copies, secret = PostgresCopies(url), await filled.replica_key()
    before, lines = await answers(filled), await copied(copies)  # in this order: what waits is written first
    with pytest.raises(StoreError, match="session: 10") as caught:
        await put_in(copies, lines)
    assert caught.value.code == "store_not_empty"
    await filled.announce(Replica("a1", "http://10.0.0.7:8400", "0.1.0"), seconds=60)
    assert [one.id for one in (await copies.check()).replicas] == ["a1"]
    with pytest.raises(StoreError) as caught:
        await put_in(copies, lines, replaced=True)
    assert caught.value.code == "store_in_use"
    await filled.withdraw("a1")
    await filled.save(OWN, "since", expected=0, audit=[record(1, "since")])
    await put_in(copies, lines, replaced=True)
    anew = PostgresStore(url)
    await anew.open()
    assert await answers(anew) == before
    assert await anew.replica_key() == secret
    numbers = [one.number for one in (await anew.part(wanted(), limit=1)).records]
    await anew.record(record(2, "after"))
    newest = (await anew.part(wanted(), limit=1)).records[0]
    assert newest.number > numbers[0] + 1  # that of the record which was removed is not given again
    version = await anew.save(OWN, "after", expected=0)
    assert version is not None
    assert version > max(state.version for key, state in before["sessions"])
    await anew.aclose()


def wanted() -> Any:
    from pegboard.ports.requests import AuditFilter

    return AuditFilter()


async def test_a_server_is_looked_over(url: str, filled: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: and whether the key of the variable opens what is sealed, since a server has no other."""
    found = await PostgresCopies(url).check()
    assert (found.kind, found.sound, found.faults, found.read_only) == ("postgresql", True, [], "")
    assert (found.counts["session"], found.counts["sealed"]) == (10, 9)
    assert found.engine.startswith("PostgreSQL ")
    assert found.bytes > 0
    assert "@" not in found.place
    monkeypatch.delenv("PEGBOARD_KEY")
    assert (await PostgresCopies(url).check()).sealed == replace(found.sealed, place="", unopened=9, opened={})
    monkeypatch.setenv("PEGBOARD_KEY", "none")
    assert "is not a key" in (await PostgresCopies(url).check()).sealed.problem


async def test_numbers_that_would_be_given_twice_are_a_fault(
    postgres: PostgresServer, url: str, filled: PostgresStore
) -> None:
    rows(postgres, url, "SELECT setval('{s}.request_id_seq', 1)")
    found = await PostgresCopies(url).check()
    assert (found.sound, found.faults) == (False, ["numbers of the kind 'request' would be given twice"])
    assert (await PostgresCopies(url).check(thorough=False)).sound


async def test_a_server_without_tables_of_ours_has_no_store(url: str) -> None:
    for asked in (PostgresCopies(url).check(), anext(PostgresCopies(url).export())):
        with pytest.raises(StoreError, match="There is no store at postgresql://") as caught:
            await asked
        assert caught.value.code == "store_missing"


async def test_a_copy_of_a_server_without_its_package_says_what_to_install(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for asked in (
        PostgresCopies(url).check(),
        anext(PostgresCopies(url).export()),
        put_in(PostgresCopies(url), lines_of()),
    ):
        with pytest.raises(StoreError, match="needs the package psycopg") as caught:
            await asked
        assert install_line(extra="postgres") in caught.value.hint


async def test_a_server_that_is_not_reached_is_said(url: str) -> None:
    away = url.replace("host=", "host=/nowhere")
    with pytest.raises(StoreError) as caught:
        await PostgresCopies(away).check()
    assert caught.value.code == "store_unavailable"


@pytest.mark.parametrize("first", ["rekey", "import"])
async def test_s2_what_the_server_undoes_for_the_sake_of_another_writer_is_tried_again(
    postgres: PostgresServer, url: str, first: str
) -> None:
    """S2, G11: a writer that has one table wants another, which is held: the server ends the waiting of one of both."""
    store = PostgresStore(url)
    await store.open()
    await store.aclose()
    copies, schema = PostgresCopies(url), url.rpartition("schema=")[2]
    lines = await copied(copies)
    early, late = ([f"{schema}.{name}" for name in TABLES][at] for at in (0, -1))
    async with await psycopg.AsyncConnection.connect(postgres.conninfo) as other:
        await other.execute("SET deadlock_timeout = '60s'")  # the server ends what looks first
        await other.execute(f"LOCK TABLE {late} IN ROW EXCLUSIVE MODE".encode())
        started = asyncio.create_task(copies.rekey() if first == "rekey" else put_in(copies, lines))
        query = f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{late}'::regclass"
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(rows, postgres, url, query):  # noqa: ASYNC110 - a database tells of no lock
                await asyncio.sleep(0.01)
            await other.execute(f"LOCK TABLE {early} IN ROW EXCLUSIVE MODE".encode())
            await other.commit()
            await started
