"""A store in a database that other processes share: what each hears of the others, and what that costs (S2, G14)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import psycopg
import pytest
from relays import Pooler, Relay, relayed
from test_store_contract import ENTRY, KEY, USE, pin

from pegboard.errors import StoreBusyError, StoreUnavailableError
from pegboard.ports import AuditFilter, CountRecord, Counts, PinChange, StateChange
from pegboard.ports.counts import HOUR
from pegboard.stores.sql import PostgresStore
from pegboard.stores.sql.postgres_database import CONNECTIONS, PostgresDatabase
from pegboard.support.backoff import wait_until
from postgres_server import PostgresServer

CALLED = CountRecord(3_600_000, "ada", "a", "thread", "s", "t", "ok", Counts(calls=1))


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.address()


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    async with opened(url) as store:
        yield store


@pytest.fixture
async def peer(store: PostgresStore, url: str) -> AsyncIterator[PostgresStore]:
    """Return a second store on the database of the first, as another process would have it."""
    async with opened(url) as peer:
        yield peer


@asynccontextmanager
async def opened(url: str, *, hearing: bool = True) -> AsyncIterator[PostgresStore]:
    """Return a store that is open and hears what others change, unless it cannot."""
    store = PostgresStore(url)
    await store.open()
    assert not hearing or await hears(store)
    yield store
    await store.aclose()


@asynccontextmanager
async def opened_behind(pooler: Pooler, url: str) -> AsyncIterator[PostgresStore]:
    """Return a store that hears nothing."""
    async with opened(pooler.address(url), hearing=False) as store:
        yield store


async def hears(store: PostgresStore) -> bool:
    return await wait_until(lambda: store._db.hears, 5)


async def moved(store: PostgresStore, before: object) -> bool:
    """Return whether a store comes to stand at something else soon."""
    for _ in range(200):
        if await store.change_token() != before:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_what_another_process_changes_is_heard_within_a_moment(store: PostgresStore, peer: PostgresStore) -> None:
    """P4, G14: switches move the permissions, states only the states, and records neither."""
    token = await store.change_token()
    await peer.set_switch("a", "look", False)
    await store.changed(token, 5)
    after = await store.change_token()
    assert after.permissions != token.permissions
    assert (await store.stored_permissions()).switches == {"a": {"look": False}}
    await peer.save(KEY, "text", expected=0)
    await store.changed(after, 5)
    saved = await store.change_token()
    assert (saved.permissions == after.permissions, saved.states == after.states) == (True, False)
    await peer.record(ENTRY)
    await store.changed(saved, 5)
    recorded = await store.change_token()
    assert recorded[:2] == saved[:2]
    assert recorded.others != saved.others


async def test_what_was_read_of_a_session_stays_until_another_process_changes_it(
    store: PostgresStore, peer: PostgresStore
) -> None:
    """S2, P4: a change of another session leaves it."""
    token = await peer.change_token()
    version = await store.save(KEY, "one", expected=0)
    assert version
    assert await moved(peer, token)
    read = await peer.load(KEY)
    token = await peer.change_token()
    await store.save(replace(KEY, session="other"), "text", expected=0)
    assert await moved(peer, token)
    assert await peer.load(KEY) is read
    token = await peer.change_token()
    await store.save(KEY, "two", expected=version)
    assert await moved(peer, token)
    found = await peer.load(KEY)
    assert found is not None
    assert found.text == "two"


async def test_a_session_that_another_process_removes_is_gone(store: PostgresStore, peer: PostgresStore) -> None:
    """S2, S4."""
    version = await store.save(KEY, "one", expected=0)
    assert version
    assert await peer.load(KEY)
    token = await peer.change_token()
    await store.save(KEY, None, expected=version)
    assert await moved(peer, token)
    assert await peer.load(KEY) is None


async def test_a_writer_that_came_second_reads_what_the_first_has_written(
    store: PostgresStore, peer: PostgresStore
) -> None:
    """S2: at once, whatever has been told by then."""
    version = await store.save(KEY, "one", expected=0)
    assert version
    assert await peer.load(KEY)
    second = await store.save(KEY, "two", expected=version)
    assert await peer.save(KEY, "late", expected=version) is None
    found = await peer.load(KEY)
    assert found is not None
    assert (found.text, found.version) == ("two", second)


async def test_of_many_writers_in_two_processes_none_loses_anything(store: PostgresStore, peer: PostgresStore) -> None:
    """S2: states of one session, of two sessions that change together, counts and records."""
    other = replace(KEY, session="other")

    async def add(mine: PostgresStore, name: str) -> None:
        for one, two in ((KEY, other), (other, KEY)):
            while True:
                states = [await mine.load(key) for key in (one, two)]
                changes = [
                    StateChange(
                        key=key,
                        text=f"{state.text if state else ''} {name}",
                        expected=state.version if state else 0,
                    )
                    for key, state in zip((one, two), states, strict=True)
                ]
                if await mine.save_together(changes, audit=[ENTRY]) is not None:
                    break
        mine.count_later(CALLED)

    await asyncio.gather(*(add(mine, f"n{number}") for number in range(10) for mine in (store, peer)))
    await store.record()
    await peer.record()
    state = await peer.load(KEY)
    assert state is not None
    assert len(state.text.split()) == 40
    (usage,) = (await store.sums(HOUR, since=0, until=2**40, by=("agent",))).records
    assert usage.counts.calls == 20
    assert len(await store.entries(limit=1000)) == 40


async def test_no_record_of_the_trail_comes_behind_one_that_was_read(store: PostgresStore, peer: PostgresStore) -> None:
    """X4: the person who reads on behind a number misses nothing, whichever process writes."""
    seen: list[str] = []

    async def write(mine: PostgresStore, name: str) -> None:
        for number in range(50):
            await mine.record(ENTRY._replace(subject=f"{name}{number}"))

    async def read() -> None:
        after = 0
        while len(seen) < 100:
            page = await store.part(AuditFilter(), after=after, limit=7)
            seen.extend(one.record.subject for one in page.records)
            after = page.next or page.newest

    async with asyncio.timeout(30):
        await asyncio.gather(write(store, "a"), write(peer, "b"), read())
    assert sorted(seen) == sorted(f"{name}{number}" for name in "ab" for number in range(50))


async def test_uses_and_pins_of_another_process_are_read_anew(store: PostgresStore, peer: PostgresStore) -> None:
    """P3, A4."""
    assert list(await store.uses("ada", "assistant")) == []
    peer.remember_later(USE)
    await peer.record()
    assert await wait_for(lambda: store.uses("ada", "assistant"), [USE])
    before = await store.pins_revision()
    await peer.change_pins("git", [pin("log")], expected=None, version=1)
    assert await store.pins_revision() != before
    assert (await store.change_pins("git", [cast("PinChange", pin("log"))], expected=None, version=1)) is None
    await peer.forget_uses()
    assert await wait_for(lambda: store.uses("ada", "assistant"), [])


async def wait_for(read: object, wanted: list[object]) -> bool:
    for _ in range(200):
        if list(await read()) == wanted:  # type: ignore[operator]
            return True
        await asyncio.sleep(0.01)
    return False


async def test_what_somebody_else_sends_on_the_channel_does_no_harm(
    store: PostgresStore, peer: PostgresStore, postgres: PostgresServer
) -> None:
    """S2: any user of the database may."""
    version = await store.save(KEY, "one", expected=0)
    assert version
    async with await psycopg.AsyncConnection.connect(postgres.conninfo, autocommit=True) as other:
        for payload in ("", " ", "x sxyz", "x S=", "x S=x", "x  P=9", "x u*", "\u00e9 ?", "x s" + "00" * 3_000):
            await other.execute("SELECT pg_notify(%s, %s)", (store.address.channel, payload))
    token = await peer.change_token()
    await store.save(KEY, "two", expected=version)
    assert await moved(peer, token)
    found = await peer.load(KEY)
    assert found is not None
    assert found.text == "two"
    assert store._db.hears


# -- what is between the store and its server ------------------------------------------------------


async def test_what_was_read_costs_no_statement_until_the_token_moves(postgres: PostgresServer, url: str) -> None:
    """S2, G14: neither the token, nor a session, nor uses."""
    async with relayed(Relay(postgres.folder)) as relay, opened(relay.address(url)) as store:
        await store.save(KEY, "text", expected=0)
        await store.uses("ada", "assistant")
        await store.uses("ada", "assistant")
        relay.asked.clear()
        for _ in range(50):
            await store.change_token()
            await store.load(KEY)
            await store.uses("ada", "assistant")
        assert [one for one in relay.asked if b".counter" not in one] == []


async def test_all_that_was_set_at_run_time_is_read_with_one_message(postgres: PostgresServer, url: str) -> None:
    """P4, G14: a change is at every replica as soon as that is answered."""
    async with relayed(Relay(postgres.folder)) as relay, opened(relay.address(url)) as store, opened(url) as peer:
        await peer.set_switch("a", "look", False)
        await peer.set_switch("a", "find", True, principal="ada")
        relay.asked.clear()
        stored = await store.stored_permissions()
        assert (stored.switches, stored.principal_switches) == ({"a": {"look": False}}, {"a": {"ada": {"find": True}}})
        assert len([one for one in relay.asked if b".switch" in one]) == 1
        assert [one for one in relay.asked if b".switch" not in one and b".counter" not in one] == []


async def test_what_many_wait_for_at_once_is_written_in_two_messages(postgres: PostgresServer, url: str) -> None:
    """S2: what comes while the first batch is underway is in the second."""
    async with relayed(Relay(postgres.folder)) as relay, opened(relay.address(url)) as store:
        relay.asked.clear()
        relay.delay = 0.02
        await asyncio.gather(*(store.record(ENTRY._replace(subject=f"{number}")) for number in range(30)))
        assert len([one for one in relay.asked if b"INTO" in one and b".request" in one]) == 2
        assert len(await store.entries(limit=100)) == 30


async def test_a_change_that_was_not_told_is_found_within_seconds(
    url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2, G14: the numbers are read as a net; then listening begins again."""
    monkeypatch.setattr("pegboard.stores.sql.notifications.NET_SECONDS", 0.3)
    async with opened(url) as store, opened(url) as peer:
        await find_what_was_not_told(store, peer, postgres)


async def find_what_was_not_told(store: PostgresStore, peer: PostgresStore, postgres: PostgresServer) -> None:
    await store.save(KEY, "one", expected=0)
    assert await peer.load(KEY)
    token = await peer.change_token()
    schema = peer.address.quoted
    async with await psycopg.AsyncConnection.connect(postgres.conninfo, autocommit=True) as other:
        await other.execute(f"UPDATE {schema}.session SET text = 'silent'".encode())
        await other.execute(f"UPDATE {schema}.counter SET value = value + 1 WHERE name = 'states'".encode())
    for _ in range(80):
        await peer.changed(token, 0.1)
        if await peer.change_token() != token:
            break
    found = await peer.load(KEY)
    assert found is not None
    assert found.text == "silent"


async def test_whoever_is_about_to_refuse_takes_up_what_was_not_heard_yet(
    store: PostgresStore, peer: PostgresStore, postgres: PostgresServer
) -> None:
    """G14: what another process did counts, also before it is told; where nothing was done, nothing is read again."""
    await store.save(KEY, "told", expected=0)
    assert await hears(peer)
    assert await peer.load(KEY)
    await peer.catch_up()
    token = await peer.change_token()
    assert not await peer.catch_up()
    assert await peer.change_token() == token
    schema = peer.address.quoted
    async with await psycopg.AsyncConnection.connect(postgres.conninfo, autocommit=True) as other:
        await other.execute(f"UPDATE {schema}.session SET text = 'silent', version = version + 1".encode())
        await other.execute(f"UPDATE {schema}.counter SET value = value + 1 WHERE name = 'states'".encode())
    assert await peer.catch_up()
    found = await peer.load(KEY)
    assert found is not None
    assert found.text == "silent"


async def test_a_connection_that_is_lost_costs_no_change(postgres: PostgresServer, url: str) -> None:
    """S2, G14: what was changed meanwhile is there at once, and what comes is heard again."""
    async with relayed(Relay(postgres.folder)) as relay, opened(url) as peer, opened(relay.address(url)) as store:
        version = await peer.save(KEY, "one", expected=0)
        assert version
        assert await store.load(KEY)
        token = await store.change_token()
        relay.cut()
        version = await peer.save(KEY, "two", expected=version)
        assert await moved(store, token)
        found = await store.load(KEY)
        assert found is not None
        assert (found.text, found.version) == ("two", version)
        assert await hears(store)
        assert await store.save(KEY, "three", expected=found.version)


async def test_what_waited_is_stored_once_where_the_answer_to_it_was_lost(postgres: PostgresServer, url: str) -> None:
    """X4, F4: neither lost nor counted twice."""
    async with relayed(Relay(postgres.folder)) as relay, opened(url) as peer, opened(relay.address(url)) as store:
        relay.delay = 0.3
        store.count_later(CALLED)
        writing = asyncio.create_task(store.record(ENTRY))
        assert await wait_for_entries(peer)
        relay.cut()
        with pytest.raises(StoreUnavailableError):
            await writing
        relay.delay = 0
        await store.record(ENTRY._replace(subject="later"))
        assert [entry.subject for entry in await peer.entries()] == ["later", ENTRY.subject]
        (usage,) = (await peer.sums(HOUR, since=0, until=2**40, by=("agent",))).records
        assert usage.counts.calls == 1


async def asked_to_record(relay: Relay) -> bool:
    """Return whether records are on their way to the server soon."""
    return await wait_until(lambda: any(b".request" in one for one in relay.asked), 5)


async def wait_for_entries(store: PostgresStore) -> bool:
    for _ in range(200):
        if await store.entries():
            return True
        await asyncio.sleep(0.005)
    return False


async def test_a_record_is_written_although_the_task_that_writes_it_is_cancelled(
    postgres: PostgresServer, url: str
) -> None:
    """S2: and nothing comes after it that would write it as well; a client that leaves cancels its request."""
    async with relayed(Relay(postgres.folder)) as relay, opened(url) as peer, opened(relay.address(url)) as store:
        relay.passes.clear()
        writing = asyncio.create_task(store.record(ENTRY))
        assert await asked_to_record(relay)
        writing.cancel()
        await asyncio.wait([writing])
        relay.cut()
        relay.passes.set()
        assert await wait_for_entries(peer)


async def test_a_record_is_written_although_the_connection_was_lost_with_it(postgres: PostgresServer, url: str) -> None:
    """S2: and nothing comes after it that would write it as well."""
    async with relayed(Relay(postgres.folder)) as relay, opened(url) as peer, opened(relay.address(url)) as store:
        relay.passes.clear()
        store.record_later(ENTRY)
        assert await asked_to_record(relay)
        relay.cut()
        relay.passes.set()
        assert await wait_for_entries(peer)
        assert len(await peer.entries()) == 1


async def test_who_is_cancelled_as_a_connection_becomes_free_is_cancelled(store: PostgresStore) -> None:
    """Else a process that ends waits for ever for what listens; at whichever moment that is."""
    database = store._db
    assert isinstance(database, PostgresDatabase)
    await store.now()
    pool = database._pool
    assert pool is not None
    for moments in range(12):
        held = [await pool.getconn() for _ in range(CONNECTIONS)]
        waiting = asyncio.create_task(store.now())
        await asyncio.sleep(0.01)
        await pool.putconn(held.pop())
        for _ in range(moments):
            await asyncio.sleep(0)
        too_late = not waiting.cancel()
        await asyncio.wait([waiting], timeout=10)
        assert waiting.cancelled() or too_late, moments
        for connection in held:
            await pool.putconn(connection)
    assert await store.now() > 0


async def test_a_store_that_could_not_be_opened_whole_is_opened_the_next_time(
    postgres: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2: the tables are there by then, and the newest numbers do not come."""
    monkeypatch.setattr("pegboard.stores.sql.postgres_database.ANSWER_SECONDS", 0.3)
    async with opened(url, hearing=False):
        pass
    store = PostgresStore(url, patience=0.1)
    async with await psycopg.AsyncConnection.connect(postgres.conninfo) as other:
        await other.execute(f"LOCK TABLE {store.address.quoted}.counter".encode())
        with pytest.raises(StoreUnavailableError):
            await store.open()
        await other.rollback()
    await store.open()
    assert await hears(store)
    await store.aclose()


async def test_behind_a_pooler_every_change_is_asked_for(postgres: PostgresServer, url: str) -> None:
    """S2, G14: nothing can be heard there, and everything else works."""
    pooler = Pooler(postgres.folder)
    async with relayed(pooler), opened(url) as peer, opened_behind(pooler, url) as store:
        token = await store.change_token()
        version = await store.save(KEY, "one\0", expected=0, audit=[ENTRY])
        assert version
        await peer.set_switch("a", "look", False)
        after = await store.change_token()
        assert after.permissions != token.permissions
        assert await store.change_token() == after
        await peer.save(KEY, "two", expected=version)
        assert (await store.change_token()).states != after.states
        found = await store.load(KEY)
        assert found is not None
        assert found.text == "two"
        await asyncio.gather(*(store.record(ENTRY) for _ in range(20)))
        assert len(await store.entries()) == 21
        assert not store._db.hears


async def test_a_server_that_does_not_answer_is_left(
    postgres: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G14: as one that is split off; when it is back, everything goes on."""
    monkeypatch.setattr("pegboard.stores.sql.postgres_database.ANSWER_SECONDS", 0.5)
    async with relayed(Relay(postgres.folder)) as relay, opened(relay.address(url)) as store:
        relay.passes.clear()
        with pytest.raises(StoreUnavailableError) as caught:
            await store.sessions()
        assert "cannot be reached now" in str(caught.value)
        relay.passes.set()
        assert await store.sessions() == []
        assert await store.save(KEY, "text", expected=0)


async def test_a_lock_that_somebody_keeps_is_waited_for_as_long_as_patience_lasts(
    postgres: PostgresServer, url: str
) -> None:
    """S2: then it is said who keeps what."""
    store = PostgresStore(url, patience=0.3)
    await store.open()
    version = await store.save(KEY, "text", expected=0)
    assert version
    async with await psycopg.AsyncConnection.connect(postgres.conninfo) as other:
        await other.execute(f"SELECT 1 FROM {store.address.quoted}.session FOR UPDATE".encode())
        with pytest.raises(StoreBusyError) as caught:
            await store.save(KEY, "more", expected=version)
        assert "kept locked" in str(caught.value)
    assert await store.save(KEY, "more", expected=version)
    await store.aclose()
