"""Counts and records in a file: several processes, kill -9, a locked file, damaged rows (F4, X4)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from killed_writers import ONE, writers
from test_store_contract import ENTRY

from pegboard.errors import StoreBusyError
from pegboard.ports import AuditFilter, CountRecord, CountSums, CountUnit
from pegboard.ports.counts import DAY, HOUR, SESSION_DAY
from pegboard.stores.sql import SqliteStore

TOOLS = ("start", "agent", "server", "tool", "outcome")
OF_TOOL = ONE._replace(principal="", session="")


async def whole(store: SqliteStore, unit: CountUnit = HOUR, **wanted: object) -> CountSums:
    return await store.sums(unit, **{"since": 0, "until": 2**40, "by": TOOLS, **wanted})  # type: ignore[arg-type]


async def counted(path: Path) -> tuple[int, int, int]:
    """Return the calls and tokens of a file, and how many durations it has."""
    store = SqliteStore(path)
    await store.open()
    (of_sessions,) = (await whole(store, SESSION_DAY, by=())).records
    (of_tools,) = (await whole(store, DAY, by=())).records
    await store.aclose()
    assert of_sessions.counts == of_tools.counts
    return of_tools.counts.calls, of_tools.counts.tokens, sum(of_tools.durations.values())


async def test_what_several_processes_count_adds_up_and_a_killed_one_loses_only_what_was_pending(path: Path) -> None:
    """F4, S2: nothing is counted twice, and what was answered is there."""
    with writers("count_calls", path) as made:
        for name in "abc":
            made.start(name)
        for name, times in (("a", 30), ("b", 55), ("c", 80)):
            made.read(name, "stored", times)
            made.kill(name)
    calls, tokens, durations = await counted(path)
    assert (tokens, durations) == (1000 * calls, calls)
    assert len(made.numbers("", "stored")) <= calls <= len(made.numbers("", "about"))


async def test_where_the_file_is_locked_counts_wait(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    """Nothing is raised where something is counted, and once the file is free all of it is added once."""
    impatient = SqliteStore(store.path, patience=0.05)
    await impatient.open()
    impatient.count_later(ONE)
    with pytest.raises(StoreBusyError):
        await whole(impatient)
    impatient.count_later(ONE)
    blocker.execute("ROLLBACK")
    (record,) = (await whole(impatient, by=())).records
    await impatient.aclose()
    assert (record.counts.calls, record.durations) == (2, {70: 2})
    assert (await whole(store, by=())).records == [record]


@pytest.mark.parametrize(
    "damage",
    ["tokens = 'many'", "calls = 1.5", "calls = 9223372036854775807, tokens = 'x'", "server = x'ff'"],
)
async def test_a_damaged_row_is_counted_and_stops_nothing(store: SqliteStore, damage: str) -> None:
    """What can be read is summed as before, and what is counted later as well."""
    store.count_later(ONE, ONE._replace(tool="bad"))
    await whole(store)
    with closing(sqlite3.connect(store.path)) as file:
        file.execute(f"UPDATE request_count SET {damage} WHERE tool = 'bad'")
        file.commit()
    assert await whole(store) == CountSums([OF_TOOL], 1)
    assert await whole(store, by=("outcome", "server")) == CountSums(
        [CountRecord(server="s", outcome="ok", counts=ONE.counts, durations=ONE.durations)], 1
    )
    store.count_later(ONE, *(ONE._replace(tool=f"tool-{number}") for number in range(300)))
    found = await whole(store)
    assert sum(one.counts.calls for one in found.records) == 302
    assert found.damaged == 1


async def test_a_sum_that_no_number_holds_stops_nothing(store: SqliteStore) -> None:
    """It is only a row that someone damaged."""
    store.count_later(ONE, ONE._replace(tool="bad"))
    await whole(store)
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("UPDATE request_count SET calls = 9223372036854775807 WHERE tool = 'bad'")
        file.commit()
    (record,) = (await whole(store, by=("outcome",))).records
    assert record.counts.calls == 2**63


async def test_a_damaged_record_is_counted_and_stops_nothing(store: SqliteStore) -> None:
    """X4: not in the trail, nor what is kept of a call."""
    await store.record(ENTRY._replace(subject="tool"))
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("UPDATE request SET at = 'no time', details = x'ff'")
        file.commit()
    for wanted in (AuditFilter(text="TOOL"), AuditFilter()):
        part = await store.part(wanted)
        assert (part.records, part.damaged, part.next) == ([], 1, None)
    details = await store.call_details((await store.part(AuditFilter())).newest)
    assert details is not None
    assert details.text == ""


async def test_a_file_that_has_everything_is_opened_without_a_write(
    store: SqliteStore, blocker: sqlite3.Connection
) -> None:
    """S2: also while another process writes; nothing is added to it again."""
    assert blocker.in_transaction
    again = SqliteStore(store.path, patience=0.0)
    await again.open()
    await again.aclose()


async def test_sums_are_read_beside_the_loop_also_of_a_file_that_is_gone(store: SqliteStore) -> None:
    """S2: nothing waits for them; what is wrong with the file is said as of any read."""
    store.count_later(ONE)
    before = await whole(store, SESSION_DAY, by=("start",))
    assert before.records
    await store._cleaning.stop()  # it is a change, which makes the file again
    store.path.unlink()
    assert await whole(store, SESSION_DAY, by=("start",)) == before
    assert not store.path.exists()
