"""What every store promises of the records of calls and decisions (X4)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kinds import KINDS, make
from test_store_contract import ENTRY

from pegboard.ports import PART, AuditFilter, AuditRecord, CallDetails, CallNumbers, SessionKey, Store
from pegboard.ports.requests import NOT_MEASURED
from pegboard.stores.sql.cleaning import EVERY_ROWS

pytestmark = pytest.mark.cover(1)

KEY = SessionKey(principal="ada", agent="assistant", session="thread-42")
KEEP = 20
NUMBERS = CallNumbers(queued=0.25, upstream=12.5, sent=40, received=0)


def entry(subject: str, kind: str = "call", session: str = "thread-42") -> AuditRecord:
    return ENTRY._replace(kind=kind, session=session, subject=subject, decision="allowed", outcome="ok")


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture(params=KINDS)
async def small(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Return a store that keeps few decisions."""
    store = make(request, request.param, tmp_path, audit_keep=KEEP)
    await store.open()
    yield store
    await store.aclose()


async def newest(store: Store) -> int:
    (found,) = await store.session_trail(KEY, limit=1)
    return found.number


@pytest.mark.parametrize("text", ["{}", "ключ 🧰", "NUL\0 and \ud800", "x" * 100_000])
async def test_the_record_of_a_call_has_its_numbers_and_its_details(store: Store, text: str) -> None:
    store.record_later(entry("a"))
    store.record_later(entry("b"), CallDetails(NUMBERS, text))
    store.record_later(entry("c"), CallDetails(NUMBERS))
    await store.record(entry("d"), entry("e"), details=CallDetails(text="of e"))
    found = {one.record.subject: one.number for one in await store.session_trail(KEY)}
    assert [await store.call_details(found[name]) for name in "abcde"] == [
        CallDetails(),
        CallDetails(NUMBERS, text),
        CallDetails(NUMBERS),
        CallDetails(),
        CallDetails(NOT_MEASURED, "of e"),
    ]
    assert await store.numbered(found["b"]) == entry("b")
    for number in (0, -1, found["e"] + 1, 2**62):
        assert (await store.numbered(number), await store.call_details(number)) == (None, None)


async def test_a_call_goes_with_its_days_and_of_a_decision_its_details_alone(store: Store) -> None:
    """X4: each as its own days say, however much there is of it."""
    past, now = datetime.now(UTC) - timedelta(days=3), datetime.now(UTC)
    for at, days in ((past, 2), (past, 4), (now, 1)):
        details = CallDetails(NUMBERS, "kept", days)
        store.record_later(entry(f"call of {days}")._replace(at=at), details)
        await store.record(entry(f"denial of {days}", "deny")._replace(at=at), details=details)
    for number in range(600):
        store.record_later(entry(str(number))._replace(at=past), CallDetails(days=1))
    await store.remove_old()
    found = {one.record.subject: await store.call_details(one.number) for one in await store.session_trail(KEY)}
    assert found == {
        "denial of 2": CallDetails(NUMBERS),
        **{f"{kind} of {days}": CallDetails(NUMBERS, "kept") for kind in ("call", "denial") for days in (4, 1)},
    }


async def test_old_rows_are_removed_by_themselves(small: Store) -> None:
    """S2: beside what is written, and no one asks for it."""
    past = datetime.now(UTC) - timedelta(days=30)
    for _ in range(2):
        await small.record(*[entry("load", "load")] * EVERY_ROWS)
        for _ in range(EVERY_ROWS):
            small.record_later(entry("call")._replace(at=past))
        kinds = ["call"]
        async with asyncio.timeout(30):
            while "call" in kinds or len(kinds) > KEEP:
                kinds = [record.kind for record in await small.entries(limit=1000)]
                await asyncio.sleep(0)


async def test_about_so_many_decisions_are_kept_as_is_said(small: Store) -> None:
    """X4: the newest, whatever is called meanwhile."""
    await small.record(entry("first", "deny"), details=CallDetails(NUMBERS, "kept"))
    first = await newest(small)
    for index in range(3 * KEEP):
        small.record_later(entry("call"))
        await small.record(entry(str(index), "load"))
    await small.remove_old()
    assert (await small.numbered(first), await small.call_details(first)) == (None, None)
    kept = [record.subject for record in await small.entries(kind="load", limit=1000)]
    assert kept == [str(index) for index in range(3 * KEEP)][: -len(kept) - 1 : -1]
    calls = len(await small.entries(kind="call", limit=1000))
    assert (len(kept), calls) == (KEEP, 3 * KEEP) if small.lasts else len(kept) + calls == KEEP


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


async def test_the_newest_records_come_first_and_older_ones_behind_a_cursor(store: Store) -> None:
    """X4: each has a number that is never used twice."""
    await store.record(*(ENTRY._replace(turn=turn) for turn in range(7)))
    first = await store.part(AuditFilter(), limit=3)
    assert [record.turn for _, record in first.records] == [6, 5, 4]
    assert first.newest == first.records[0].number
    second = await store.part(AuditFilter(), before=first.next, limit=10)
    assert [record.turn for _, record in second.records] == [3, 2, 1, 0]
    assert second.next is None
    assert len({number for number, _ in (*first.records, *second.records)}) == 7


async def test_what_is_new_comes_behind_a_cursor_oldest_first(store: Store) -> None:
    """X4: a trail is followed without a gap, and without anything twice."""
    assert (await store.part(AuditFilter())).records == []
    await store.record(ENTRY)
    cursor = (await store.part(AuditFilter())).newest
    assert (await store.part(AuditFilter(), after=cursor)).records == []
    store.record_later(ENTRY._replace(turn=1))
    await store.record(ENTRY._replace(turn=2), ENTRY._replace(turn=3))
    part = await store.part(AuditFilter(), after=cursor, limit=2)
    assert [record.turn for _, record in part.records] == [1, 2]
    assert part.next is not None
    assert (await store.part(AuditFilter(), after=2**63 - 1)).records == []
    rest = await store.part(AuditFilter(), after=part.next)
    assert ([record.turn for _, record in rest.records], rest.next) == ([3], None)


async def test_records_are_found_by_what_stands_in_them(store: Store) -> None:
    """X4: by every name, by time, and by text in upper or lower case, also where it is no ASCII."""
    hour = timedelta(hours=1)
    other = ENTRY._replace(
        at=ENTRY.at + hour,
        kind="call",
        principal="bob",
        agent="coder",
        session="s",
        subject="ÄRGER_tool",
        decision="refused",
        outcome="error",
        reason="It is 100% broken",
        by="Root",
    )
    await store.record(ENTRY, other, ENTRY._replace(subject="NUL\0 \ud800 X"))

    async def subjects(wanted: AuditFilter) -> list[str]:
        return [record.subject for _, record in (await store.part(wanted)).records]

    for name in ("kind", "principal", "agent", "session", "decision", "outcome"):
        wanted = replace(AuditFilter(), **{name: getattr(other, name)})
        assert await subjects(wanted) == [other.subject], name
    for text in ("ärger", "ROOT", "100%", "broken"):
        assert await subjects(AuditFilter(text=text)) == [other.subject], text
    assert await subjects(AuditFilter(text="nul\0")) == ["NUL\0 \ud800 X"]
    assert await subjects(AuditFilter(text="1%b")) == []
    await store.record(ENTRY._replace(subject="Straße"))
    assert await subjects(AuditFilter(text="strasse")) == ["Straße"]
    assert await subjects(AuditFilter(text="_TOOL")) == [other.subject]
    assert await subjects(AuditFilter(since=other.at)) == [other.subject]
    assert len(await subjects(AuditFilter(until=other.at))) == 3
    assert await subjects(AuditFilter(since=other.at + hour)) == []


async def test_the_cursor_behind_a_text_that_was_found_goes_on_with_the_next_record(store: Store) -> None:
    """X4: nothing comes twice, and nothing is missing."""
    await store.record(*(ENTRY._replace(subject=f"{'rare' if turn % 2 else 'often'} {turn}") for turn in range(9)))
    wanted, before, found = AuditFilter(text="RARE"), None, list[str]()
    while True:
        part = await store.part(wanted, before=before, limit=1)
        found += [record.subject for _, record in part.records]
        if (before := part.next) is None:
            break
    assert found == ["rare 7", "rare 5", "rare 3", "rare 1"]


async def test_a_part_looks_at_a_bounded_number_of_records(store: Store) -> None:
    """X4: however long the trail is and whatever is looked for; the cursor goes on behind it."""
    await store.record(ENTRY._replace(subject="rare"), *([ENTRY] * (2 * PART)))
    wanted, before, parts = AuditFilter(text="rare"), None, 0
    while True:
        part = await store.part(wanted, before=before)
        parts += 1
        if part.next is None:
            break
        assert part.records == []
        before = part.next
    assert [record.subject for _, record in part.records] == ["rare"]
    assert parts == 3


async def test_a_part_looks_beyond_what_was_removed(store: Store) -> None:
    """X4: a decision of long ago is found at once, however many calls came and went after it."""
    await store.record(ENTRY._replace(subject="rare"))
    for number in range(PART + 10):
        past = ENTRY.at - timedelta(days=2 if number else 0)
        store.record_later(ENTRY._replace(kind="call", at=past), CallDetails(days=1))
    first = (await store.part(AuditFilter(), limit=1)).newest - PART - 10
    await store.remove_old()
    found = await store.part(AuditFilter(text="rare"))
    assert ([record.subject for _, record in found.records], found.next) == (["rare"], None)
    assert [number - first for number, _ in (await store.part(AuditFilter(), after=0)).records] == [0, 1]
