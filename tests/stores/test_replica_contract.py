"""What every store promises of the replicas that share it, asked of each of them."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kinds import KINDS, make
from test_store_contract import STRANGE

from pegboard.ports import Replica, Store
from pegboard.stores.sql import SqliteStore

pytestmark = pytest.mark.cover(1)

FIRST = Replica("a1b2c3", "http://10.0.0.1:8321", "1.2.0")
SECOND = Replica("zz99", "http://[::1]:8321", "1.3.0")
LONG = 3600.0


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def announced(store: Store) -> list[Replica]:
    return [replica._replace(seen_at=0.0) for replica in await store.replicas()]


async def test_a_store_that_nobody_serves_has_no_replicas(store: Store) -> None:
    """G14."""
    assert await announced(store) == []


async def test_what_was_announced_is_found_by_id_until_it_is_withdrawn(store: Store) -> None:
    """G14."""
    await store.announce(SECOND, seconds=LONG)
    await store.announce(FIRST, seconds=LONG)
    assert await announced(store) == [FIRST, SECOND]
    await store.withdraw(FIRST.id)
    await store.withdraw(FIRST.id)
    assert await announced(store) == [SECOND]


async def test_an_announcement_ends_by_itself(store: Store) -> None:
    """G14: a replica that was killed withdraws nothing."""
    await store.announce(FIRST, seconds=0)
    await store.announce(SECOND, seconds=LONG)
    assert await announced(store) == [SECOND]
    await store.announce(SECOND, seconds=0)
    assert await announced(store) == []


async def test_the_newest_announcement_of_a_replica_counts(store: Store) -> None:
    """G14: it is seen when the store says so, whatever the replica's own clock has."""
    await store.announce(FIRST._replace(seen_at=4e9), seconds=LONG)
    (before,) = await store.replicas()
    assert abs(before.seen_at - await store.now()) < 60
    moved = FIRST._replace(address="http://10.0.0.9:1")
    await store.announce(moved, seconds=LONG)
    (after,) = await store.replicas()
    assert after.address == moved.address
    assert after.seen_at >= before.seen_at


@pytest.mark.parametrize("text", STRANGE)
async def test_odd_texts_come_back_as_they_were(store: Store, text: str) -> None:
    """G14: who reads them judges them."""
    odd = Replica(text, text, text)
    await store.announce(odd, seconds=LONG)
    assert await announced(store) == [odd]


async def test_the_clock_of_the_store_goes_forward(store: Store) -> None:
    """G14."""
    first = await store.now()
    assert first <= await store.now()
    assert abs(first - time.time()) < 60  # it runs on this machine


async def test_a_lease_names_its_holder_while_it_lasts(store: Store) -> None:
    """G14: whoever wants something of the one who does it alone finds them."""
    assert await store.lease_holder("tidy") is None
    assert await store.take_lease("tidy", "ada", seconds=LONG)
    assert not await store.take_lease("tidy", "bob", seconds=LONG)
    assert await store.lease_holder("tidy") == "ada"
    await store.end_lease("tidy", "ada")
    assert await store.lease_holder("tidy") is None
    assert await store.take_lease("tidy", "bob", seconds=0)
    assert await store.lease_holder("tidy") is None


async def test_the_secret_of_the_replicas_is_made_once_and_is_no_other_secret(store: Store) -> None:
    """G14."""
    key = await store.replica_key()
    assert len(key) == 32
    assert key == await store.replica_key()
    assert key != await store.digest_key()


async def test_another_process_knows_the_replicas_and_their_secret(tmp_path: Path) -> None:
    """G14."""
    first, second = SqliteStore(tmp_path / "pegboard.db"), SqliteStore(tmp_path / "pegboard.db")
    await first.open()
    await second.open()
    await first.announce(FIRST, seconds=LONG)
    await second.announce(SECOND, seconds=LONG)
    assert await announced(first) == await announced(second) == [FIRST, SECOND]
    assert await first.replica_key() == await second.replica_key()
    await first.aclose()
    assert await second.replica_key() == await second.replica_key()
    await second.aclose()


async def test_another_secret_is_made_where_the_file_was_replaced(tmp_path: Path) -> None:
    """G14: as with every secret of a file."""
    path = tmp_path / "pegboard.db"
    store = SqliteStore(path)
    await store.open()
    before = await store.replica_key()
    for name in ("pegboard.db", "pegboard.db-wal", "pegboard.db-shm"):
        (tmp_path / name).unlink()
    await store.announce(FIRST, seconds=LONG)
    assert await store.replica_key() != before
    await store.aclose()


async def test_announcements_of_before_the_clock_was_set_back_do_not_count(tmp_path: Path) -> None:
    """G14: else the killed would live on for as long as it was set back."""
    store = SqliteStore(tmp_path / "pegboard.db")
    await store.open()
    ahead = time.time() + 3600
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "time", lambda: ahead)
        await store.announce(FIRST, seconds=10)
    assert await announced(store) == []
    await store.announce(SECOND, seconds=10)
    assert await announced(store) == [SECOND]
    await store.aclose()
