"""What the SQLite store promises beyond the contract: several connections, locks, the batched audit trail."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_samples import ENTRY, KEY, in_file

from pegboard.core.model.tools import Manifest
from pegboard.errors import StoreBusyError
from pegboard.stores.sql import SqliteStore

SUBJECTS = "SELECT subject FROM request JOIN request_names AS names ON names.id = of_names ORDER BY request.id"


async def until(condition: str, path: Path, *, within: float) -> None:
    """Wait until a query of the file returns a true value."""
    deadline = time.monotonic() + within
    while not in_file(path, condition)[0][0]:
        assert time.monotonic() < deadline, f"not within {within} s: {condition}"
        await asyncio.sleep(0.002)


# Several connections


async def test_a_switch_set_by_another_process_is_seen_at_once(store: SqliteStore, peer: SqliteStore) -> None:
    """P4: a revoked permission binds the next call."""
    before = await peer.change_token()
    seen = before.permissions
    await store.save(KEY, "text", expected=0)
    after = await peer.change_token()
    assert (after.states == before.states, after.permissions == seen) == (False, True)
    await store.set_switch("assistant", "research", False)
    grown = (await peer.change_token()).permissions
    assert grown != seen
    assert (await store.change_token()).permissions == grown
    assert (await peer.stored_permissions()).switches.get("assistant", {}) == {"research": False}
    await peer.set_switch("assistant", "research", True)
    assert (await peer.change_token()).permissions != grown
    assert (await store.change_token()).permissions == (await peer.change_token()).permissions


async def test_two_processes_have_one_digest_key(store: SqliteStore, peer: SqliteStore) -> None:
    """X4: digests of both can be compared."""
    assert await store.digest_key() == await peer.digest_key()


async def test_many_stores_can_open_a_missing_file_at_once(path: Path) -> None:
    stores = [SqliteStore(path) for _ in range(10)]
    await asyncio.gather(*(store.open() for store in stores))
    versions = await asyncio.gather(*(store.save(KEY, "text", expected=0) for store in stores))
    assert sum(version is not None for version in versions) == 1
    for store in stores:
        await store.aclose()


async def test_a_store_kept_locked_past_the_deadline_is_busy_while_reads_and_the_loop_go_on(
    store: SqliteStore, blocker: sqlite3.Connection
) -> None:
    impatient = SqliteStore(store.path, patience=0.3)
    await impatient.open()
    saving = asyncio.create_task(impatient.save(KEY, "text", expected=0))
    reads = 0
    while not saving.done():
        assert await impatient.load(KEY) is None
        reads += 1
        await asyncio.sleep(0)
    with pytest.raises(StoreBusyError) as caught:
        await saving
    assert str(store.path) in caught.value.message
    assert "0.3 seconds" in caught.value.message
    assert reads > 100
    await impatient.aclose()


async def test_a_change_waits_for_another_writer_and_then_succeeds(
    store: SqliteStore, blocker: sqlite3.Connection
) -> None:
    """S2: no one sees `database is locked`."""
    saving = asyncio.create_task(store.save(KEY, "text", expected=0))
    done, _ = await asyncio.wait([saving], timeout=0.1)
    assert not done
    blocker.execute("COMMIT")
    assert await asyncio.wait_for(saving, 5)


async def test_a_cancelled_change_has_not_happened(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    saving = asyncio.create_task(store.save(KEY, "text", expected=0))
    await asyncio.wait([saving], timeout=0.05)
    saving.cancel()
    await asyncio.wait([saving])
    blocker.execute("COMMIT")
    assert await store.load(KEY) is None


async def test_the_change_token_as_of_a_moment_is_not_read_twice(store: SqliteStore) -> None:
    """P4: a call is bound by what was stored when it came, and by what this process has changed since."""
    other = SqliteStore(store.path)
    await other.open()
    came = time.monotonic()
    before = await store.change_token(came)
    await other.set_switch("assistant", "research", False)
    assert await store.change_token(came) == store.known_token(came) == before
    assert store.known_token(time.monotonic()) is None
    after = await store.change_token(time.monotonic())
    assert after != before
    assert await store.change_token(came) == after
    await store.set_switch("assistant", "research", True)
    assert await store.change_token(came) != after
    await other.aclose()


# The audit trail


async def test_calls_are_in_the_file_within_50_ms(store: SqliteStore) -> None:
    """S2: audit of calls may be batched for 50 ms; each connection that looks costs some of the time allowed here."""
    for number in range(3):
        store.record_later(ENTRY._replace(subject=str(number)))
    assert in_file(store.path, "SELECT count(*) FROM request") == [(0,)]
    await until("SELECT count(*) = 3 FROM request", store.path, within=0.5)
    assert in_file(store.path, SUBJECTS) == [("0",), ("1",), ("2",)]
    store.record_later(ENTRY._replace(subject="again"))
    await until("SELECT count(*) = 4 FROM request", store.path, within=0.5)


async def test_calls_are_written_once_a_long_lock_ends(store: SqliteStore, blocker: sqlite3.Connection) -> None:
    """S2: recording a call never waits, and nothing is lost or doubled by trying again."""
    for number in range(25):
        store.record_later(ENTRY._replace(subject=str(number)))
    deciding = asyncio.create_task(store.record(ENTRY._replace(subject="25")))
    done, _ = await asyncio.wait([deciding], timeout=0.1)
    assert not done
    for number in range(26, 50):
        store.record_later(ENTRY._replace(subject=str(number)))
    assert in_file(store.path, "SELECT count(*) FROM request") == [(0,)]
    blocker.execute("COMMIT")
    await asyncio.wait_for(deciding, 5)
    await until("SELECT count(*) = 50 FROM request", store.path, within=5)
    assert [entry.subject for entry in await store.entries()] == [str(number) for number in range(49, -1, -1)]


def test_calls_recorded_without_a_running_loop_are_written_by_the_next_operation(path: Path) -> None:
    """X4: every call leaves a record, also in the blocking library and across loops."""
    store = SqliteStore(path)
    asyncio.run(store.open())
    store.record_later(ENTRY)

    async def in_a_loop_that_ends_at_once() -> None:
        store.record_later(ENTRY._replace(subject="second"))

    asyncio.run(in_a_loop_that_ends_at_once())
    asyncio.run(store.save(KEY, "text", expected=0))
    assert in_file(path, SUBJECTS) == [("git/log",), ("second",)]
    store.record_later(ENTRY._replace(subject="third"))
    asyncio.run(store.aclose())
    assert in_file(path, "SELECT count(*) FROM request") == [(3,)]


# Manifests


async def test_the_newest_fingerprints_of_a_plugin_are_kept(store: SqliteStore) -> None:
    """G8: a configuration that changes often does not fill the file."""
    await store.keep_manifest("other", "0", Manifest())
    for number in range(40):
        await store.keep_manifest("git", str(number), Manifest(description=str(number)))
    assert in_file(store.path, "SELECT plugin, count(*) FROM manifest GROUP BY plugin ORDER BY plugin") == [
        ("git", 32),
        ("other", 1),
    ]
    assert await store.manifest("git", "39") == Manifest(description="39")
    assert await store.manifest("git", "7") is None


async def test_scopes_put_no_manifest_out_of_the_store(store: SqliteStore) -> None:
    """G8: however many principals there are."""
    await store.keep_manifest("git", "1", Manifest(description="all"))
    for number in range(40):
        await store.keep_manifest("git", "1", Manifest(), f"user:{number}")
    assert await store.manifest("git", "1") == Manifest(description="all")
    assert await store.manifest("git", "1", "user:0") == Manifest()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"tools": [{}], "secrets": []}',
        '{"tools": "ab", "secrets": []}',
        '{"tools": [], "secrets": [], "lists": {"prompts": [1]}}',
    ],
)
async def test_a_stored_manifest_that_cannot_be_used_counts_as_missing(store: SqliteStore, text: str) -> None:
    """G8: missing manifests are fetched."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(
            "INSERT INTO manifest (plugin, fingerprint, scope, text) VALUES ('git', '1', '', ?)", (text,)
        )
    assert await store.manifest("git", "1") is None


async def test_a_manifest_of_another_release_is_read_as_far_as_it_is_understood(store: SqliteStore) -> None:
    """G8: a newer one has more, an older one does not say what there is besides tools."""
    text = '{"tools": [{"plugin": "git", "name": "log", "colour": "red"}], "secrets": ["token"], "shape": "round"}'
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(
            "INSERT INTO manifest (plugin, fingerprint, scope, text) VALUES ('git', '1', '', ?)", (text,)
        )
    manifest = await store.manifest("git", "1")
    assert manifest is not None
    assert [tool.id for tool in manifest.tools] == ["git/log"]
    assert manifest.secrets == {"token"}
    assert manifest.offers is None


def test_importing_the_store_does_not_import_sqlite() -> None:
    code = "import sys; import pegboard.stores.sql; print('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
