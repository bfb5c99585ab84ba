"""What every store promises of counts by time, asked of each of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kinds import KINDS, make
from test_store_contract import STRANGE

from pegboard.ports import Store, UsageCounts, UsageRecord, UsageSums
from pegboard.ports.usage import DAY, HOUR, OTHER, STEP, UNITS

MIDNIGHT = 20_660 * 86_400
NOON = MIDNIGHT + 12 * 3_600
ONE = UsageCounts(*range(1, 16))
RECORD = UsageRecord(NOON, "assistant", "mail", "mail__send", "ok", ONE)
EVERY = ("start", "agent", "server", "tool", "outcome")


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = make(request, request.param, tmp_path)
    await store.open()
    yield store
    await store.aclose()


async def whole(store: Store, unit: object = DAY, **wanted: object) -> UsageSums:
    return await store.usage(unit, **{"since": 0, "until": 2**40, "by": EVERY, **wanted})  # type: ignore[arg-type]


async def test_counts_add_up_in_every_unit(store: Store) -> None:
    """F4: one row of a step, an hour and a day for each agent, server, tool and outcome, however often it is added."""
    store.usage_later(RECORD)
    store.usage_later(RECORD._replace(start=NOON + 299), RECORD._replace(start=NOON + 301))
    store.usage_later(RECORD._replace(counts=UsageCounts(saved=-100)))
    two = ONE.plus(ONE)._replace(saved=6 - 100)
    assert sorted((await whole(store, STEP)).records) == [
        RECORD._replace(counts=two),
        RECORD._replace(start=NOON + 300),
    ]
    assert (await whole(store, HOUR)).records == [RECORD._replace(counts=two.plus(ONE))]
    assert (await whole(store)).records == [RECORD._replace(start=MIDNIGHT, counts=two.plus(ONE))]


async def test_sums_are_told_apart_by_what_is_asked_for(store: Store) -> None:
    """F4: and are of a time and of some agents."""
    other = RECORD._replace(agent="coder", outcome="error")
    store.usage_later(RECORD, other, other._replace(start=NOON + 3_600))
    one, two = (UsageRecord(0, "", "", "", name, ONE) for name in ("ok", "error"))
    assert sorted((await whole(store, by=("outcome",))).records) == [two._replace(counts=ONE.plus(ONE)), one]
    assert (await whole(store, by=())).records == [UsageRecord(0, "", "", "", "", ONE.plus(ONE).plus(ONE))]
    assert (await whole(store, HOUR, by=("outcome",), since=NOON + 1)).records == [two]
    assert (await whole(store, HOUR, by=("start", "agent"), until=NOON + 3_600, agents=["coder"])).records == [
        UsageRecord(NOON, "coder", "", "", "", ONE)
    ]
    assert (await whole(store, agents=[])).records == []
    assert (await whole(store, by=(), since=NOON + 10**6)).records == []


async def test_any_names_are_counted(store: Store) -> None:
    """F4, X5: whatever a name holds."""
    store.usage_later(*(RECORD._replace(agent=text, tool=text) for text in STRANGE))
    assert {record.tool for record in (await whole(store)).records} == {*STRANGE}
    text = STRANGE[0]
    assert [one.agent for one in (await whole(store, agents=[text])).records] == [text]


async def test_what_is_too_old_is_removed(store: Store) -> None:
    """F4: steps are kept for two hours, hours for eight days, days for 400."""
    for back in (401 * 86_400, 399 * 86_400, 9 * 86_400, 7 * 86_400, 3 * 3_600, 3_600, 0):
        store.usage_later(RECORD._replace(start=NOON - back))
    assert sorted(NOON - one.start for one in (await whole(store, STEP)).records) == [0, 3_600]
    assert sorted(NOON - one.start for one in (await whole(store, HOUR)).records) == [0, 3_600, 3 * 3_600, 7 * 86_400]
    assert min(one.start for one in (await whole(store)).records) == MIDNIGHT - 399 * 86_400


async def test_a_clock_that_jumps_back_adds_to_what_there_was(store: Store) -> None:
    """F4: nothing is lost, and nothing later is removed."""
    store.usage_later(RECORD)
    store.usage_later(RECORD._replace(start=NOON - 3_000))
    store.usage_later(RECORD)
    starts = {one.start: one.counts.calls for one in (await whole(store, HOUR)).records}
    assert starts == {NOON: 2, NOON - 3_600: 1}


async def test_rows_are_few_and_the_sums_stay(store: Store) -> None:
    """F4: at most 200 rows an hour and 1,000 a day; what is rare is summed, what is busy keeps its name."""
    sent = UsageRecord(NOON, "assistant", "", "", "listed", UsageCounts(calls=1, tokens=7))
    store.usage_later(sent)
    for part in range(6):
        store.usage_later(
            *(
                RECORD._replace(
                    tool=f"tool-{part}-{number}",
                    server=f"server-{number % 5}",
                    counts=UsageCounts(calls=1000 if number < 9 else 1, within_30=1),
                )
                for number in range(400)
            )
        )
    total = 6 * (9 * 1000 + 391) + 1
    for unit in UNITS:
        records = (await whole(store, unit)).records
        assert len(records) <= unit.most
        assert sum(one.counts.calls for one in records) == total
        assert sum(one.counts.within_30 for one in records) == 2400
        assert {f"tool-{part}-{number}" for part in range(6) for number in range(9)} <= {one.tool for one in records}
        rare = {(one.agent, one.server) for one in records if one.tool == OTHER}
        assert rare
        assert rare <= {("assistant", f"server-{number}") for number in range(5)}
        assert [one for one in records if one.outcome == "listed"] == [sent._replace(start=records[0].start)]


async def test_agents_are_summed_only_where_there_are_too_many(store: Store) -> None:
    """F4: then their tools and servers are summed before, and every outcome stays."""
    store.usage_later(
        *(
            RECORD._replace(agent=f"agent-{number:03}", outcome=outcome, counts=UsageCounts(calls=number + 1))
            for number in range(300)
            for outcome in ("ok", "error")
        )
    )
    records = (await whole(store, HOUR)).records
    assert len(records) <= HOUR.most
    assert {(one.outcome, one.server) for one in records if one.agent == OTHER} == {("ok", OTHER), ("error", OTHER)}
    assert sum(one.counts.calls for one in records) == 2 * sum(range(1, 301))
    assert "agent-299" in {one.agent for one in records}
