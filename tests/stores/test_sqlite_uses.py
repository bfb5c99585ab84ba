"""What the SQLite store promises of remembered use beyond the contract: batches, other processes, kills, old files."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from killed_writers import writers
from sqlite_samples import ENTRY, in_file

from pegboard.ports import UseRecord
from pegboard.stores.sql import SqliteStore

USE = UseRecord(at=1_000_000.0, principal="ada", agent="assistant", need="what changed last", tool="git/log")


async def written(path: Path, count: int) -> None:
    deadline = time.monotonic() + 10
    while in_file(path, "SELECT count(*) FROM use") != [(count,)]:
        assert time.monotonic() < deadline, f"{count} uses are not in the file"
        await asyncio.sleep(0.002)


async def test_a_use_is_stored_soon_without_anybody_waiting_for_it(store: SqliteStore) -> None:
    """S2: by itself, and in one batch with the audit of the calls."""
    store.remember_later(USE)
    await written(store.path, 1)
    store.record_later(ENTRY)
    store.remember_later(USE._replace(need="who wrote this"), USE._replace(need="when"))
    await written(store.path, 3)
    assert in_file(store.path, "SELECT count(*) FROM request") == [(1,)]


async def test_closing_stores_the_uses_that_wait(path: Path) -> None:
    """S2: nothing is lost at an orderly end."""
    store = SqliteStore(path)
    await store.open()
    store.remember_later(USE)
    await store.aclose()
    assert in_file(path, "SELECT need FROM use") == [(USE.need,)]


@pytest.mark.parametrize(
    ("at", "need"), [("then", "what changed"), (1_000_001.0, b"\xff\xfe"), (b"\x00", "what changed")]
)
async def test_a_damaged_use_counts_for_nothing(store: SqliteStore, at: object, need: object) -> None:
    """S1: what is remembered helps a search, and is no reason for one to fail."""
    store.remember_later(USE)
    await store.record(ENTRY)
    row = (at, USE.principal, USE.agent, need, "git/diff")
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("INSERT INTO use (at, principal, agent, need, tool) VALUES (?, ?, ?, ?, ?)", row)
    assert list(await store.uses("ada", "assistant")) == [USE]
    assert await store.forget_uses(principal="ada") == 2


async def test_what_another_process_stores_or_forgets_is_seen_at_the_next_look(
    store: SqliteStore, peer: SqliteStore
) -> None:
    """S1: what is forgotten by a command counts no more in a gateway that runs."""
    store.remember_later(USE)
    await store.record(ENTRY)
    assert list(await peer.uses("ada", "assistant")) == [USE]
    again = USE._replace(at=USE.at + 5)
    peer.remember_later(again)
    await peer.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == [again]
    assert await peer.forget_uses(principal="ada") == 1
    assert list(await store.uses("ada", "assistant")) == []


async def test_looking_needs_no_lock_while_uses_wait_behind_another_writer(
    store: SqliteStore, blocker: sqlite3.Connection
) -> None:
    """S2: a search waits for no one's write, and finds what was called just now."""
    store.remember_later(USE)
    assert list(await store.uses("ada", "assistant")) == [USE]
    assert in_file(store.path, "SELECT count(*) FROM use") == [(0,)]
    blocker.execute("ROLLBACK")
    await written(store.path, 1)
    assert list(await store.uses("ada", "assistant")) == [USE]


async def test_forgetting_overwrites_the_text_in_the_file_and_its_log(store: SqliteStore) -> None:
    """X5: nothing of it can be read out of the files any longer, while they are open."""
    store.remember_later(*(USE._replace(need=f"a private need, number {number}") for number in range(100)))
    await store.record(ENTRY)
    contents = [file.read_bytes() for file in store.path.parent.iterdir()]
    assert any(b"a private need" in content for content in contents)
    assert await store.forget_uses(principal="ada", agent="assistant") == 100
    contents = [file.read_bytes() for file in store.path.parent.iterdir()]
    assert not any(b"a private need" in content for content in contents)


async def test_a_file_that_is_made_anew_begins_without_uses(store: SqliteStore) -> None:
    """S1: what was read of the removed one counts no more."""
    store.remember_later(USE)
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == [USE]
    for file in store.path.parent.iterdir():
        file.unlink()
    other = USE._replace(need="something else")
    store.remember_later(other)
    await store.record(ENTRY)
    assert list(await store.uses("ada", "assistant")) == [other]


async def test_a_killed_process_loses_at_most_the_last_50_ms_of_uses(path: Path) -> None:
    """S2: what was older when it was killed is there, whole and in order."""
    with writers("remember_uses", path) as made:
        made.start("a")
        made.read("a", "remembered", 400)
        made.kill("a")
    last = made.numbers("a", "remembered")[-1]
    store = SqliteStore(path)
    await store.open()
    kept = [int(use.need.split()[1]) for use in await store.uses("ada", "assistant")]
    await store.aclose()
    assert kept == list(range(kept[0], kept[-1] + 1))
    assert last - kept[-1] <= 50
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
