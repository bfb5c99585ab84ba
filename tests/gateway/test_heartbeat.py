"""What a process knows of the other replicas, whatever its store and its clock do."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from losable_store import LosableStore
from pegboard.gateway.replicas import heartbeat as module
from pegboard.gateway.replicas.heartbeat import Heartbeat, new_replica
from pegboard.ports import Replica, ReplicaStore, Store
from pegboard.stores.sql import MemoryStore, SqliteStore

from .clients import until

HERE, THERE = "http://10.0.0.1:8321", "http://10.0.0.2:8321"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hearts beat faster than those of processes."""
    monkeypatch.setattr(module, "EVERY", 0.02)
    monkeypatch.setattr(module, "SILENT", 0.2)
    monkeypatch.setattr(module, "_LOOK", 0.01)


@asynccontextmanager
async def beating(store: ReplicaStore, address: str) -> AsyncIterator[Heartbeat]:
    heartbeat = Heartbeat(store, new_replica(address))
    await heartbeat.start()
    try:
        yield heartbeat
    finally:
        await heartbeat.close()


class ShiftedStore(MemoryStore):
    """A store whose clock is an hour ahead of that of this machine."""

    async def now(self) -> float:
        return time.time() + 3600

    async def replicas(self) -> list[Replica]:
        return [one._replace(seen_at=one.seen_at + 3600) for one in await super().replicas()]


def test_every_process_has_a_name_of_its_own() -> None:
    """G14: that fits into the id of a session."""
    names = {new_replica(HERE).id for _ in range(100)}
    assert len(names) == 100
    assert all(name.isascii() and name.isalnum() and name == name.lower() and len(name) <= 16 for name in names)


async def test_the_time_is_that_of_the_store() -> None:
    """G14: a machine whose clock is off by an hour has the time of the others."""
    async with beating(ShiftedStore(), HERE) as heartbeat:
        assert abs(heartbeat.now() - (time.time() + 3600)) < 5


async def test_replicas_find_each_other_until_they_end() -> None:
    """G14: also one that has come since, and not itself."""
    store = MemoryStore()
    async with beating(store, HERE) as first:
        assert await first.find("nobody") is None
        assert await first.find(first.own.id) is None
        async with beating(store, THERE) as second:
            found = await first.find(second.own.id)
            assert found is not None
            assert (found.address, found.id) == (THERE, second.own.id)
            await until(lambda: set(second.others) == {first.own.id})
        await until(lambda: not first.others)
        assert await first.find(second.own.id) is None


async def test_one_that_cannot_be_reached_lives_while_its_heart_beats() -> None:
    """G14: one that was killed is known to have ended, until it announces itself again."""
    store = MemoryStore()
    async with beating(store, HERE) as first, beating(store, THERE) as second:
        assert await first.find(second.own.id) is not None
        assert await asyncio.gather(first.lives(second.own.id), first.lives(second.own.id)) == [True, True]
        await store.announce(Replica("killed", "http://10.0.0.3:1", "1"), seconds=60)
        assert await first.find("killed") is not None
        assert await asyncio.gather(*(first.lives("killed") for _ in range(3))) == [False] * 3
        assert await first.find("killed") is None
        await store.announce(Replica("killed", "http://10.0.0.3:1", "1"), seconds=60)
        await until(lambda: "killed" in first.others)

        async def found() -> bool:
            return await first.find("killed") is not None

        await until(found)
        assert not await first.lives("nobody")


async def test_a_store_that_is_lost_loses_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """G14: who was known before counts until they had time to announce themselves again; the log says it once."""
    real: Store = SqliteStore(tmp_path / "state.db")
    await real.open()
    double = LosableStore(real)
    other = Replica("other", THERE, "1")
    await real.announce(other, seconds=60)
    async with beating(double, HERE) as heartbeat:  # type: ignore[arg-type]
        await until(lambda: set(heartbeat.others) == {"other"})
        double.lose()
        await until(lambda: any("cannot see this one" in line for line in caplog.messages))
        await real.withdraw("other")  # as what lasts half a minute has ended in an outage
        assert await heartbeat.find("other") is not None
        double.find()
        before = len(double.asked)
        await until(lambda: len(double.asked) > before + 3)
        assert await heartbeat.find("other") is not None
        await real.announce(other, seconds=60)
        await until(lambda: heartbeat.others["other"].seen_at > 0)
    assert sum("cannot see this one" in line for line in caplog.messages) == 1
    await real.aclose()


async def test_a_process_that_somebody_withdrew_announces_itself_again() -> None:
    """G14: no one else can end it."""
    store = MemoryStore()
    async with beating(store, HERE) as heartbeat:
        await store.withdraw(heartbeat.own.id)

        async def back() -> bool:
            return [one.id for one in await store.replicas()] == [heartbeat.own.id]

        await until(back)
