"""A store that was read goes on for a while without its server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import cast

import pytest

from losable_store import LosableStore
from pegboard.errors import StoreUnavailableError, store_unavailable
from pegboard.ports import (
    MOST_UNWRITTEN,
    AuditRecord,
    CallDetails,
    SessionKey,
    Store,
    SwitchAction,
    SwitchChange,
    UseRecord,
)
from pegboard.stores.grace import GraceStore, reachability
from pegboard.stores.sql import request_rows
from pegboard.support.backoff import wait_until
from pegboard.testing import ManualClock, MemoryStore

KEY = SessionKey(principal="ada", agent="helper", session="s")
OTHER = SessionKey(principal="bob", agent="helper", session="s")


def call(subject: str) -> AuditRecord:
    return AuditRecord(datetime.now(UTC), "call", "ada", "helper", "s", 1, subject, "allowed")


@pytest.fixture
def double() -> LosableStore:
    return LosableStore(MemoryStore())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def store(double: LosableStore, clock: ManualClock) -> AsyncIterator[Store]:
    store = cast("Store", GraceStore(cast("Store", double), grace=30, clock=clock))
    await store.open()
    yield store
    double.find()
    await store.aclose()


async def test_what_was_read_last_counts_for_the_grace_since_it_was_known_to_be_so(
    store: Store, double: LosableStore, clock: ManualClock
) -> None:
    version = await store.save(KEY, "one", expected=0)
    await store.load(OTHER)
    token = await store.change_token()
    clock.advance(10)
    await store.change_token()
    double.lose()
    clock.advance(30)
    assert await store.change_token() == token
    one = await store.load(KEY)
    assert one is not None
    assert (one.text, one.version) == ("one", version)
    assert await store.load(OTHER) is None
    clock.advance(0.1)
    for read in (store.change_token, lambda: store.load(KEY), lambda: store.load(OTHER)):
        with pytest.raises(StoreUnavailableError, match="the server has gone away"):
            await read()


async def test_a_request_that_fails_alone_is_no_loss(store: Store, double: LosableStore) -> None:
    """A pool that is exhausted for a moment refuses one request."""
    await store.save(KEY, "one", expected=0)
    double.lose("load", "save_together")
    found = await store.load(KEY)
    assert found is not None
    assert found.text == "one"
    with pytest.raises(StoreUnavailableError):
        await store.load(OTHER)
    with pytest.raises(StoreUnavailableError):
        await store.save(OTHER, "two", expected=0)
    assert cast("GraceStore", store).health.reachable
    await store.set_switch("helper", "notes", value=True)


async def test_a_server_that_is_silent_is_not_waited_for(
    double: LosableStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections may stand for long when the network is cut."""
    monkeypatch.setattr(reachability, "PATIENCE", 0.05)
    store = cast("Store", GraceStore(cast("Store", double), grace=30, clock=clock))
    await store.open()
    await store.save(KEY, "one", expected=0)
    token = await store.change_token()
    double.answers.clear()
    found = await store.load(KEY)
    assert found is not None
    assert found.text == "one"
    assert await store.change_token() == token
    health = cast("GraceStore", store).health
    assert health.why == "The store cannot be reached now: it did not answer within 0.05 s."
    clock.advance(31)
    for read in (store.change_token, lambda: store.load(KEY), lambda: store.save(OTHER, "two", expected=0)):
        with pytest.raises(StoreUnavailableError):
            await read()
    waiting = asyncio.create_task(store.changed(token, 60))
    await asyncio.sleep(0)
    double.answers.set()
    await asyncio.wait_for(waiting, 20)
    assert await store.save(OTHER, "two", expected=0)
    await store.aclose()


async def test_what_this_process_has_changed_is_not_what_was_read_before(store: Store, double: LosableStore) -> None:
    """P4: between a change and the next look at the store it may be lost."""
    before = await store.change_token()
    await store.save(KEY, "one", expected=0)
    double.lose()
    after = await store.change_token()
    assert after.states != before.states
    assert after.permissions == before.permissions


@pytest.mark.parametrize("lost", [False, True])
async def test_after_a_switch_of_this_process_no_permissions_count_that_were_read_before(
    store: Store, double: LosableStore, *, lost: bool
) -> None:
    """P4: also where it is not known whether it was stored."""
    before = await store.change_token()
    change = SwitchChange(agent="helper", name="mail", value=False, expected=None)
    action = SwitchAction(mark="m", subject="mail", at=0.0, by="ada", changes=[change])
    for write in (
        lambda: store.set_switch("helper", "notes", value=False),
        lambda: store.set_together(action),
        lambda: store.accept("pegboard.yaml", "text", expected=None),
        lambda: store.change_pins("mail", [], expected=None, version=1),
    ):
        double.lose(*("set_switch", "set_together", "accept", "change_pins") if lost else ("load",))
        try:
            await write()
        except StoreUnavailableError:
            assert lost
        double.lose()
        after = await store.change_token()
        assert after.permissions != before.permissions
        await back(store, double)
        before = await store.change_token()


async def test_whoever_waits_for_a_change_waits_on_while_the_store_is_lost(store: Store, double: LosableStore) -> None:
    """It is not asked over and over; what was lost comes back as a change."""
    token = await store.change_token()
    double.lose()
    await store.change_token()
    waiting = asyncio.create_task(store.changed(token, 60))
    await asyncio.sleep(0)
    assert not waiting.done()
    double.find()
    await asyncio.wait_for(waiting, 20)


async def test_a_grant_is_kept_for_calls_and_no_other_secret(store: Store, double: LosableStore) -> None:
    for kind in ("grant", "identity"):
        await store.seal(kind, "own", "secret", expected=0)
    await store.seal("grant", "gone", "secret", expected=0)
    await store.seal("grant", "gone", None, expected=None)
    await store.sealed("identity", "own")
    double.lose()
    with pytest.raises(StoreUnavailableError):
        await store.seal("grant", "own", None, expected=None)
    found = await store.sealed("grant", "own")
    await store.change_token()
    assert found is not None
    assert found.text == "secret"
    assert await store.sealed("grant", "own") == found
    assert await store.sealed("grant", "gone") is None
    with pytest.raises(StoreUnavailableError):
        await store.sealed("identity", "own")


async def test_a_reading_that_a_writing_has_overtaken_is_not_the_last(store: Store, double: LosableStore) -> None:
    await store.load(KEY)
    double.answers.clear()
    reading = asyncio.create_task(store.load(OTHER))
    await asyncio.sleep(0)
    double.answers.set()
    await store.save(OTHER, "new", expected=0)
    await reading
    double.lose()
    found = await store.load(OTHER)
    assert found is not None
    assert found.text == "new"


async def test_pending_records_are_bounded_and_the_oldest_are_dropped(
    store: Store, double: LosableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2: what is dropped is counted; what may have been stored already is kept."""
    monkeypatch.setattr(request_rows, "MOST_PENDING", 3)
    double.lose()
    await store.change_token()
    store.record_later(call("0"))
    assert await wait_until(lambda: "write" in double.asked, 5)
    for number in range(1, 6):
        store.record_later(call(str(number)))
    store.remember_later(UseRecord(1.0, "ada", "helper", "need", "a"), UseRecord(1.0, "ada", "helper", "need", "b"))
    assert await wait_until(lambda: cast("GraceStore", store).health[-2:] == (6, 2), 5)
    await back(store, double)
    assert [one.subject for one in await store.entries()] == ["5", "4", "3", "0"]
    assert [use.tool for use in await store.uses("ada", "helper")] == ["a", "b"]


async def test_of_calls_whose_details_have_no_room_the_records_alone_are_kept(
    store: Store, double: LosableStore
) -> None:
    details = CallDetails(text="x" * (MOST_UNWRITTEN // 2 + 1))
    double.lose()
    await store.change_token()
    for number in range(3):
        store.record_later(call(str(number)), details)
    await back(store, double)
    kept = [await store.call_details(number) for number in (1, 2, 3)]
    assert [one is not None and bool(one.text) for one in kept] == [True, False, False]


async def back(store: Store, double: LosableStore) -> None:
    """Find the store, and wait until that is known."""
    double.find()
    async with asyncio.timeout(20):
        while not cast("GraceStore", store).health.reachable:  # noqa: ASYNC110 - it looks by itself
            await asyncio.sleep(0.01)


async def test_a_store_that_is_lost_at_the_end_says_how_many_records_are_lost(
    double: LosableStore, caplog: pytest.LogCaptureFixture
) -> None:
    class Gone(MemoryStore):
        async def aclose(self) -> None:
            raise store_unavailable("The store of the test", "the server has gone away")

    double.real = Gone()
    store = GraceStore(cast("Store", double))
    await store.open()
    double.lose()
    await store.change_token()
    store.record_later(call("one"))
    await store.aclose()
    assert "Records of calls that could not be written: 1. The store of the test cannot be reached now" in caplog.text
