"""What every store promises of the bill and of parts of the audit trail, asked of each of them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from kinds import KINDS, make
from test_store_contract import ENTRY, STRANGE

from pegboard.ports import PART, AuditFilter, BillCounts, BillRecord, Store

ONE = BillCounts(*range(1, 19))
RECORD = BillRecord("2026-07-28", "ada", "assistant", "thread-42", ONE)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def test_what_is_billed_adds_up_by_day_and_session(store: Store) -> None:
    """F4: one record for a day and session, however often something is added to it."""
    store.bill_later(RECORD)
    store.bill_later(RECORD, RECORD._replace(session="other"), RECORD._replace(day="2026-07-29"))
    await store.record(ENTRY)
    store.bill_later(RECORD._replace(counts=BillCounts(saved=-100)))
    page = await store.bill()
    assert page == (
        [
            RECORD._replace(session="other"),
            RECORD._replace(counts=ONE.plus(ONE)._replace(saved=-94)),
            RECORD._replace(day="2026-07-29"),
        ],
        None,
        0,
    )


async def test_a_bill_is_read_of_days_and_of_names(store: Store) -> None:
    """F4: both days count, and the oldest comes first."""
    days = [f"2026-07-{day}" for day in range(10, 20)]
    store.bill_later(*(RECORD._replace(day=day) for day in days), RECORD._replace(agent="coder"))
    page = await store.bill(since="2026-07-12", until="2026-07-14")
    assert [record.day for record in page.records] == days[2:5]
    assert [record.agent for record in (await store.bill(agent="coder")).records] == ["coder"]
    assert (await store.bill(principal="bob")).records == []
    assert len((await store.bill(session="thread-42", principal="ada")).records) == 11


async def test_sums_of_a_bill_are_told_apart_by_what_is_asked_for(store: Store) -> None:
    """F4: and are of days, of names and of some agents."""
    other = RECORD._replace(agent="coder", principal="bob")
    store.bill_later(
        RECORD, other, other._replace(day="2026-07-29"), *(other._replace(session=text) for text in STRANGE)
    )
    count = 3 + len(STRANGE)
    whole = BillCounts(*(count * one for one in ONE))
    assert await store.bill_sums(by=()) == ([BillRecord("", "", "", "", whole)], 0, 0)
    by_agent = {one.agent: one for one in (await store.bill_sums(by=("agent",))).records}
    assert by_agent["assistant"] == BillRecord("", "", "assistant", "", ONE)
    assert by_agent["coder"].counts.plus(ONE) == whole
    assert (await store.bill_sums(by=("agent", "day"), since="2026-07-29")).records == [
        other._replace(day="2026-07-29", principal="", session="")
    ]
    assert (await store.bill_sums(by=("principal",), until="2026-07-28", agent="assistant")).records == [
        BillRecord("", "ada", "", "", ONE)
    ]
    assert len((await store.bill_sums(by=("session",))).records) == 1 + len(STRANGE)
    assert await store.bill_sums(by=("session",), greatest=0) == ([], 0, 1 + len(STRANGE))
    (greatest,), _, more = await store.bill_sums(by=("session",), greatest=1)
    assert (greatest.session, greatest.counts.calls, more) == (RECORD.session, 3 * ONE.calls, len(STRANGE))
    assert (await store.bill_sums(by=("agent",), agents=["assistant"])).records == [by_agent["assistant"]]
    assert (await store.bill_sums(by=("agent",), agents=[], principal="ada", session="none")).records == []


async def test_a_bill_of_any_length_is_read_in_parts(store: Store) -> None:
    """F4: nothing comes twice, and nothing is missing."""
    records = sorted(
        RECORD._replace(day=f"2026-07-{day}", session=text) for day in (10, 11) for text in (*STRANGE, "z")
    )
    store.bill_later(*records)
    found, after = [], None
    while True:
        page = await store.bill(after=after, limit=5)
        assert len(page.records) <= 5
        found += page.records
        after = page.next
        if after is None:
            break
    assert sorted(found) == records
    assert len(found) == len(records)


async def test_days_that_are_too_old_are_removed(store: Store) -> None:
    """F4: the bill is kept for 400 days."""
    store.bill_later(RECORD._replace(day="2025-06-22"), RECORD._replace(day="2025-06-24"))
    assert len((await store.bill()).records) == 2
    store.bill_later(RECORD)
    assert [record.day for record in (await store.bill()).records] == ["2025-06-24", "2026-07-28"]


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
