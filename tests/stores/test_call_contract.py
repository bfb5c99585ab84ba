"""What every store promises of what is kept of calls, asked of each of them (X4)."""

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kinds import KINDS, make

from pegboard.ports import AuditRecord, CallDetails, SessionKey, Store
from pegboard.stores.sql import SqliteStore, audit_records

KEY = SessionKey(principal="ada", agent="assistant", session="thread-42")
LATER = 4e9
KEEP = 20


def entry(subject: str, kind: str = "call", session: str = "thread-42") -> AuditRecord:
    return AuditRecord(datetime.now(UTC), kind, "ada", "assistant", session, 1, subject, "allowed", outcome="ok")


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made = make(request, request.param, tmp_path, audit_keep=KEEP)
    await made.open()
    yield made
    await made.aclose()


async def newest(store: Store) -> int:
    (found,) = await store.session_trail(KEY, limit=1)
    return found.number


@pytest.mark.parametrize("text", ["{}", "ключ 🧰", "NUL\0 and \ud800", "x" * 100_000])
async def test_what_is_kept_of_a_call_is_found_under_the_number_of_its_record(store: Store, text: str) -> None:
    store.record_later(entry("a"))
    store.record_later(entry("b"), CallDetails(text, LATER))
    await store.record(entry("c"), entry("d"), details=CallDetails("of d", LATER))
    found = {one.record.subject: one.number for one in await store.session_trail(KEY)}
    assert [await store.call_details(found[name]) for name in "abcd"] == [None, text, None, "of d"]
    record = await store.numbered(found["b"])
    assert record is not None
    assert record.subject == "b"
    assert [await store.numbered(number) for number in (0, -1, found["d"] + 1, 2**62)] == [None] * 4


async def test_what_is_kept_ends_with_its_days_and_with_its_record(store: Store) -> None:
    store.record_later(entry("old"), CallDetails("over", time.time() - 1))
    over = await newest(store)
    assert await store.call_details(over) is None
    store.record_later(entry("kept"), CallDetails("kept", LATER))
    kept = await newest(store)
    assert await store.call_details(kept) == "kept"
    for index in range(2 * KEEP + 5):
        await store.record(entry(str(index)))
    assert await store.numbered(kept) is None
    assert await store.call_details(kept) is None


async def test_the_records_of_one_session_are_read_in_both_directions(store: Store) -> None:
    for index in range(5):
        store.record_later(entry(str(index), "load" if index == 2 else "call"))
        store.record_later(entry("other", session="another"))
    found = await store.session_trail(KEY)
    assert [one.record.subject for one in found] == ["4", "3", "2", "1", "0"]
    third = found[2].number
    assert [one.record.subject for one in await store.session_trail(KEY, before=third)] == ["1", "0"]
    assert [one.record.subject for one in await store.session_trail(KEY, after=third, limit=1)] == ["3"]
    calls = await store.session_trail(KEY, kinds=("call",))
    assert [one.record.subject for one in calls] == ["4", "3", "1", "0"]
    assert await store.session_trail(KEY, limit=0) == []


async def test_the_oldest_details_go_where_all_of_them_are_too_large(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X4: the total bound; those that are left are the newest."""
    monkeypatch.setattr(audit_records, "MOST_DETAILS", 350)
    monkeypatch.setattr(audit_records, "TRIMMED_EVERY", 0)
    for index in range(10):
        await store.record(entry(str(index)), details=CallDetails("x" * 100, LATER))
    numbers = sorted(one.number for one in await store.session_trail(KEY))
    assert [await store.call_details(number) is not None for number in numbers] == [False] * 7 + [True] * 3


async def test_details_outlive_the_process_and_are_not_read_where_they_are_damaged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    await store.open()
    store.record_later(entry("a"), CallDetails("of a", LATER))
    await store.aclose()
    await store.open()
    number = await newest(store)
    assert await store.call_details(number) == "of a"
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE call SET text = x'ff'")
    assert await store.call_details(number) is None
    await store.aclose()
