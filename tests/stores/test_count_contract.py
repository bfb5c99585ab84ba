"""What every store promises of counts by time, which bill and curves are read from (F4)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kinds import KINDS, make
from test_store_contract import ENTRY, STRANGE

from pegboard.ports import CountFilter, CountRecord, Counts, CountSums, CountUnit, Store
from pegboard.ports.counts import DAY, HOUR, OTHER, SESSION_DAY, STEP

MIDNIGHT = 20_660 * 86_400
NOON = MIDNIGHT + 12 * 3_600
ONE = Counts(*range(1, 20))
DURATIONS = {70: 2, 71: 1}
RECORD = CountRecord(NOON, "ada", "assistant", "thread-42", "mail", "mail__send", "ok", ONE, DURATIONS)
TOOL = RECORD._replace(principal="", session="")
"""The row of tools that the record adds to."""
SESSION = RECORD._replace(start=MIDNIGHT, server="", tool="", outcome="", durations={})
"""The row of sessions."""
OF_TOOLS = ("start", "agent", "server", "tool", "outcome")
OF_SESSIONS = ("start", "principal", "agent", "session")


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def whole(store: Store, unit: CountUnit = DAY, **wanted: object) -> CountSums:
    by = OF_SESSIONS if unit is SESSION_DAY else OF_TOOLS
    return await store.sums(unit, **{"since": 0, "until": 2**40, "by": by, **wanted})  # type: ignore[arg-type]


async def test_what_is_counted_adds_up_in_every_unit(store: Store) -> None:
    """One row of a step, an hour and a day of tools, and of a day of sessions, however often it is added to."""
    store.count_later(RECORD)
    store.count_later(RECORD._replace(start=NOON + 299), RECORD._replace(start=NOON + 301))
    await store.record(ENTRY)
    store.count_later(RECORD._replace(counts=Counts(saved=-100), durations={71: 4}))
    two = ONE.plus(ONE)._replace(saved=6 - 100)
    three = two.plus(ONE)
    assert sorted((await whole(store, STEP)).records) == [
        TOOL._replace(counts=two, durations={70: 4, 71: 6}),
        TOOL._replace(start=NOON + 300),
    ]
    assert (await whole(store, HOUR)).records == [TOOL._replace(counts=three, durations={70: 6, 71: 7})]
    assert (await whole(store)).records == [TOOL._replace(start=MIDNIGHT, counts=three, durations={70: 6, 71: 7})]
    assert await whole(store, SESSION_DAY) == CountSums([SESSION._replace(counts=three)])


async def test_what_has_no_outcome_is_of_its_session_alone(store: Store) -> None:
    """Loads and searches are no calls."""
    store.count_later(RECORD._replace(server="", tool="", outcome=""))
    assert (await whole(store)).records == []
    assert (await whole(store, SESSION_DAY)).records == [SESSION]


async def test_sums_are_told_apart_by_what_is_asked_for(store: Store) -> None:
    """And are of a time and of some agents."""
    other = RECORD._replace(agent="coder", outcome="error")
    store.count_later(RECORD, other, other._replace(start=NOON + 3_600))
    one, two = (CountRecord(outcome=name, counts=ONE, durations=DURATIONS) for name in ("ok", "error"))
    both = two._replace(counts=ONE.plus(ONE), durations={70: 4, 71: 2})
    assert sorted((await whole(store, by=("outcome",))).records) == [both, one]
    assert (await whole(store, by=())).records == [one.plus(both)._replace(outcome="")]
    assert (await whole(store, HOUR, by=("outcome",), since=NOON + 1)).records == [two]
    coder = CountFilter(agents=["coder"])
    assert (await whole(store, HOUR, by=("start", "agent"), until=NOON + 3_600, of=coder)).records == [
        CountRecord(NOON, agent="coder", counts=ONE, durations=DURATIONS)
    ]
    assert (await whole(store, of=CountFilter(agents=[]))).records == []
    assert (await whole(store, by=(), since=NOON + 10**6)).records == []


async def test_sums_of_sessions_are_of_names_and_the_greatest_come_first(store: Store) -> None:
    """Many may be left out: it is known how many."""
    other = RECORD._replace(agent="coder", principal="bob")
    store.count_later(RECORD, other, *(other._replace(session=text) for text in STRANGE))

    async def sessions(**wanted: str) -> int:
        return len((await whole(store, SESSION_DAY, of=CountFilter(**wanted))).records)

    assert await sessions(principal="bob") == 1 + len(STRANGE)
    assert await sessions(session="thread-42") == 2
    assert await sessions(session="thread-42", agent="assistant") == 1
    assert await sessions(principal="eve") == 0
    for count in (0, 1, 5):
        found = await whole(store, SESSION_DAY, by=("session",), greatest=count)
        assert (len(found.records), found.more) == (count, 1 + len(STRANGE) - count)
    (greatest,) = (await whole(store, SESSION_DAY, by=("session",), greatest=1)).records
    assert (greatest.session, greatest.counts.calls) == (RECORD.session, 2 * ONE.calls)
    assert (await whole(store, SESSION_DAY, by=("session",), greatest=3, since=NOON)) == CountSums([], 0, 0)


async def test_any_names_are_counted(store: Store) -> None:
    """X5: whatever a name holds."""
    store.count_later(*(RECORD._replace(agent=text, tool=text, session=text) for text in STRANGE))
    assert {record.tool for record in (await whole(store)).records} == {*STRANGE}
    assert {record.session for record in (await whole(store, SESSION_DAY)).records} == {*STRANGE}
    text = STRANGE[5]
    assert [one.agent for one in (await whole(store, of=CountFilter(agents=[text]))).records] == [text]


async def test_what_is_too_old_is_removed(store: Store) -> None:
    """Steps are kept for two hours, hours for eight days, days for 400."""
    for back in (401 * 86_400, 399 * 86_400, 9 * 86_400, 7 * 86_400, 3 * 3_600, 3_600, 0):
        store.count_later(RECORD._replace(start=NOON - back))
    await store.remove_old()
    assert sorted(NOON - one.start for one in (await whole(store, STEP)).records) == [0, 3_600]
    assert sorted(NOON - one.start for one in (await whole(store, HOUR)).records) == [0, 3_600, 3 * 3_600, 7 * 86_400]
    for unit in (DAY, SESSION_DAY):
        assert min(one.start for one in (await whole(store, unit)).records) == MIDNIGHT - 399 * 86_400


async def test_a_clock_that_jumps_back_adds_to_what_there_was(store: Store) -> None:
    """Nothing is lost, and nothing later is removed."""
    for start in (NOON, NOON - 3_000, NOON):
        store.count_later(RECORD._replace(start=start, counts=Counts(calls=1)))
        await store.record(ENTRY)
    starts = {one.start: one.counts.calls for one in (await whole(store, HOUR)).records}
    assert starts == {NOON: 2, NOON - 3_600: 1}


async def test_rows_of_tools_are_few_and_the_sums_stay(store: Store) -> None:
    """At most 200 rows an hour and 1,000 a day; what is rare is summed, what is busy keeps its name."""
    sent = RECORD._replace(server="", tool="", outcome="listed", counts=Counts(requests=1, tokens=7), durations={})
    store.count_later(sent)
    for part in range(3):
        store.count_later(
            *(
                RECORD._replace(
                    tool=f"tool-{part}-{number}",
                    server=f"server-{number % 5}",
                    counts=Counts(calls=1000 if number < 9 else 1),
                    durations={70: 1},
                )
                for number in range(400)
            )
        )
        await store.remove_old()
    total = 3 * (9 * 1000 + 391)
    for unit in (STEP, HOUR, DAY):
        records = (await whole(store, unit)).records
        assert len(records) <= unit.most
        assert sum(one.counts.calls for one in records) == total
        assert sum(sum(one.durations.values()) for one in records) == 1200
        assert {f"tool-{part}-{number}" for part in range(3) for number in range(9)} <= {one.tool for one in records}
        rare = {(one.agent, one.server) for one in records if one.tool == OTHER}
        assert rare
        assert rare <= {("assistant", f"server-{number}") for number in range(5)}
        listed = sent._replace(start=records[0].start, principal="", session="")
        assert [one for one in records if one.outcome == "listed"] == [listed]


async def test_agents_are_summed_only_where_there_are_too_many(store: Store) -> None:
    """Then their tools and servers are summed before, and every outcome stays."""
    store.count_later(
        *(
            RECORD._replace(agent=f"agent-{number:03}", outcome=outcome, counts=Counts(calls=number + 1))
            for number in range(300)
            for outcome in ("ok", "error")
        )
    )
    await store.remove_old()
    records = (await whole(store, HOUR)).records
    assert len(records) <= HOUR.most
    assert {(one.outcome, one.server) for one in records if one.agent == OTHER} == {("ok", OTHER), ("error", OTHER)}
    assert sum(one.counts.calls for one in records) == 2 * sum(range(1, 301))
    assert "agent-299" in {one.agent for one in records}
    assert len((await whole(store, SESSION_DAY)).records) == 300


async def test_durations_that_come_one_by_one_are_added_up(store: Store) -> None:
    """However many there are, none is lost, and none counts twice."""
    for number in range(120):
        bucket = 60 + number % 7
        store.count_later(RECORD._replace(counts=Counts(calls=1), durations={bucket: 1 + number % 2}))
        await store.record(ENTRY)
    await store.remove_old()
    (record,) = (await whole(store)).records
    assert (record.counts.calls, sum(record.durations.values())) == (120, 180)
    assert {*record.durations} == set(range(60, 67))
