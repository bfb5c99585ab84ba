"""Kill writing processes at random points: what was answered is there, and nothing is half done."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from killed_writers import SHARED, own, text_of, writers

from pegboard.ports import AuditFilter, AuditRecord
from pegboard.stores.sql import SqliteStore

KILLS = 50


@pytest.mark.timeout(120)
async def test_two_processes_that_are_killed_in_turns_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    """S2: a state is the one before or the one after; no update of a shared one is lost, no record, and no page."""
    path, chance = tmp_path / "pegboard.db", random.Random(20260728)
    killed_in: set[str] = set()
    store = SqliteStore(path)
    with writers("write_states", path) as made:
        for name in ("a0", "b0"):
            made.start(name)
        await store.open()
        for kill in range(KILLS):
            victim = f"{'ab'[kill % 2]}{kill // 2}"
            made.read(victim, "saved", 1 if kill % 10 == 0 else chance.randint(2, 20))
            made.kill(victim, after=chance.uniform(0, 0.003))
            made.start(f"{victim[0]}{kill // 2 + 1}")
            made.read(f"{victim[0]}{kill // 2 + 1}", "pid", 1)  # what the killed one has printed comes before
            killed_in.add([line for line in made.lines if line[0] == victim][-1][1])
            assert await stored_number(store, victim[0]) >= made.numbers(victim[0], "saved")[-1]
    for principal in "ab":
        assert await stored_number(store, principal) <= made.numbers(principal, "about")[-1]
    sums = sorted(made.numbers("", "shared"))
    assert len(set(sums)) == len(sums), "two writers were answered the same number"
    shared = await store.load(SHARED)
    assert shared is not None
    assert sums[-1] <= int(shared.text) <= len(sums) + KILLS + 2
    recorded = {record.subject for record in await trail(store)}
    for name, word, number, *_ in made.lines:
        assert word != "saved" or f"{name}-{number}" in recorded
        assert word != "recorded" or f"decision {name}-{number}" in recorded
    await store.aclose()
    assert killed_in >= {"about", "saved", "shared"}, "no kill came in the middle of a save, or of a record"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def stored_number(store: SqliteStore, principal: str) -> int:
    """Return the number of a state, which has the same number in all its parts."""
    state = await store.load(own(principal))
    assert state is not None
    number = int(state.text.split()[0])
    assert state.text == text_of(number)
    return number


async def trail(store: SqliteStore) -> list[AuditRecord]:
    found: list[AuditRecord] = []
    after: int | None = 0
    while after is not None:
        page = await store.part(AuditFilter(), after=after, limit=5000)
        found += [one.record for one in page.records]
        after = page.next
    return found


async def test_a_state_is_in_the_file_once_that_was_answered(tmp_path: Path) -> None:
    """S2: killed right after the first answer, in a file that did not exist before."""
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        with writers("write_states", path) as made:
            made.start("a")
            made.read("a", "saved", 1)
            made.kill("a")
        store = SqliteStore(path)
        await store.open()
        assert await stored_number(store, "a") >= 1
        await store.aclose()


async def test_switches_set_together_are_all_there_or_none_after_a_kill(tmp_path: Path) -> None:
    """P2, X4: forty agents, killed anywhere; the newest action is the one that counts."""
    path, chance = tmp_path / "pegboard.db", random.Random(20261126)
    store = SqliteStore(path)
    await store.open()
    with writers("switch_together", path) as made:
        for kill in range(12):
            made.start(f"a{kill}")
            made.read(f"a{kill}", "set", chance.randint(1, 30))
            made.kill(f"a{kill}", after=chance.uniform(0, 0.003))
            switches, actions = (await store.stored_permissions()).switches, await store.switch_actions()
            values = {own.get("research") for own in switches.values()}
            assert (len(switches), values) == (40, {actions[0].changes[0].value})
    await store.aclose()
