"""A database that is restarted while two processes' stores write all the time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from test_store_contract import ENTRY

from pegboard.errors import StoreUnavailableError
from pegboard.ports import AuditFilter, AuditRecord, CountRecord, Counts, SessionKey, Store
from pegboard.ports.counts import SESSION_DAY
from pegboard.stores.grace import GraceStore, with_grace
from pegboard.stores.sql import PostgresStore
from pegboard.support.backoff import wait_until
from postgres_server import PostgresServer

pytestmark = pytest.mark.postgres
AT_ONCE = 6
"""How many work with each of the two stores."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """Return a server of this test alone: it is stopped twice."""
    server = PostgresServer(durable=True)
    yield server
    server.stop()


@dataclass
class Worker:
    """One who writes a session, and leaves a record and a count each time, whether the store is there or not."""

    store: Store
    name: str
    saved: list[int] = field(default_factory=list[int])
    recorded: int = 0

    async def work(self, over: asyncio.Event) -> None:
        key, number = SessionKey(principal=self.name, agent="a", session="s"), 0
        one = CountRecord(3_600_000, self.name, "a", "s", "s", "t", "ok", Counts(calls=1))
        version: int | None = None
        while not over.is_set():
            self.recorded += 1
            self.store.record_later(ENTRY._replace(principal=self.name, subject=str(self.recorded)))
            self.store.count_later(one)
            number += 1
            try:
                if version is None:
                    found = await self.store.load(key)
                    version = 0 if found is None else found.version
                    assert not self.saved or found is not None
                    assert not self.saved or int(found.text) >= self.saved[-1]  # type: ignore[union-attr]
                version = await self.store.save(key, str(number), expected=version)
                if version is not None:
                    self.saved.append(number)
            except StoreUnavailableError:
                version = None
            await asyncio.sleep(0.005)


@asynccontextmanager
async def two_stores(url: str) -> AsyncIterator[Sequence[Store]]:
    stores = [with_grace(PostgresStore(url)) for _ in range(2)]
    for store in stores:
        await store.open()
    yield stores
    for store in stores:
        await store.aclose()


def reachable(stores: Sequence[Store]) -> bool:
    return all(isinstance(store, GraceStore) and store.health.reachable for store in stores)


async def trail(store: Store) -> list[AuditRecord]:
    found: list[AuditRecord] = []
    after: int | None = 0
    while after is not None:
        page = await store.part(AuditFilter(), after=after, limit=5000)
        found += [one.record for one in page.records]
        after = page.next
    return found


@pytest.mark.timeout(180)
async def test_a_database_that_is_restarted_under_load_loses_nothing(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2, X4, F4: what was answered is there, and each record and count once, also those of the outage."""
    monkeypatch.setenv("PEGBOARD_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    async with two_stores(server.address()) as stores:
        workers = [Worker(store, f"{at}-{number}") for at, store in enumerate(stores) for number in range(AT_ONCE)]
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.work(over))
            for _ in range(2):
                before = [len(worker.saved) for worker in workers]
                assert await wait_until(lambda before=before: more(workers, before), 30)
                await asyncio.to_thread(server.down)
                assert await wait_until(lambda: not any(map(reachable, [[store] for store in stores])), 30)
                await asyncio.to_thread(server.up)
                assert await wait_until(lambda: reachable(stores), 30)
            before = [len(worker.saved) for worker in workers]
            assert await wait_until(lambda: more(workers, before), 30)
            over.set()
        assert await wait_until(lambda: not any(store.pending.waiting for store in stores), 30)
        records = await trail(stores[0])
        sums = await stores[1].sums(SESSION_DAY, since=0, until=2**40, by=("principal",))
        states = {key.principal: int(state.text) for key, state in await stores[0].sessions()}
    expected = Counter((one.name, str(number + 1)) for one in workers for number in range(one.recorded))
    found = Counter((one.principal, one.subject) for one in records)
    assert (expected - found, found - expected) == (Counter(), Counter())
    assert {one.principal: one.counts.calls for one in sums.records} == {one.name: one.recorded for one in workers}
    for worker in workers:
        assert states[worker.name] >= worker.saved[-1]


def more(workers: Sequence[Worker], before: Sequence[int]) -> bool:
    """Return whether each has saved some more."""
    return all(len(worker.saved) > count + 5 for worker, count in zip(workers, before, strict=True))
