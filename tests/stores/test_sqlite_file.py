"""What the SQLite store does with its file: modes, schema, damage, places where it cannot be."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlite_samples import ENTRY, KEY, in_file

from pegboard.core.model.tools import Manifest
from pegboard.errors import StoreError, StoreSchemaError
from pegboard.ports import CallDetails
from pegboard.stores.sql import SqliteStore
from pegboard.stores.sql.schema import VERSION


def mode_of(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def overwrite_from(path: Path, start: int) -> None:
    content = content_of(path)
    path.write_bytes(content[:start] + b"\xff" * (len(content) - start))


async def refused(path: Path) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await SqliteStore(path, patience=0.2).open()
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


# The file


async def test_the_folder_and_the_file_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "pegboard.db"
    store = SqliteStore(path)
    await store.open()
    await store.save(KEY, "text", expected=0)
    made = [path.parent, path.parent.parent, *path.parent.iterdir()]
    assert {found.name: mode_of(found) for found in made} == {
        "a": "0o700",
        "b": "0o700",
        "pegboard.db": "0o600",
        "pegboard.db-wal": "0o600",
        "pegboard.db-shm": "0o600",
    }
    await store.aclose()
    assert [found.name for found in path.parent.iterdir()] == ["pegboard.db"]


async def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    before = mode_of(tmp_path / "folder")
    store = SqliteStore(tmp_path / "folder" / "pegboard.db")
    await store.open()
    await store.aclose()
    assert mode_of(tmp_path / "folder") == before != "0o700"


async def test_everything_survives_closing_and_opening(path: Path) -> None:
    """S2, G8, X4: what was stored is there in the next process."""
    first = SqliteStore(path)
    await first.open()
    version = await first.save(KEY, "text", expected=0)
    await first.set_switch("assistant", "research", True)
    await first.keep_manifest("git", "1", Manifest(description="Git"))
    await first.record(ENTRY)
    first.record_later(ENTRY._replace(subject="later"))
    key, revision = await first.digest_key(), (await first.change_token()).permissions
    await first.aclose()

    second = SqliteStore(path)
    await second.open()
    state = await second.load(KEY)
    assert state is not None
    assert (state.text, state.version) == ("text", version)
    assert (await second.stored_permissions()).switches.get("assistant", {}) == {"research": True}
    assert await second.manifest("git", "1") == Manifest(description="Git")
    assert [entry.subject for entry in await second.entries()] == ["later", "git/log"]
    assert (await second.digest_key(), (await second.change_token()).permissions) == (key, revision)
    await second.aclose()


async def test_a_name_that_sqlite_takes_for_memory_is_a_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(Path(":memory:"))
    await store.open()
    await store.aclose()
    assert (tmp_path / ":memory:").is_file()


async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(StoreError, match="is not open"):
            await store.load(KEY)
        with pytest.raises(StoreError, match="is not open"):
            store.record_later(ENTRY)
        await store.open()
        await store.aclose()


async def test_a_file_removed_while_it_is_open_is_made_anew_and_repeats_no_number(store: SqliteStore) -> None:
    """S2: versions and tokens from before the removal match nothing after it."""
    before = await store.save(KEY, "before", expected=0)
    assert before
    await store.set_switch("assistant", "research", True)
    revision, key = (await store.change_token()).permissions, await store.digest_key()
    for file in list(store.path.parent.iterdir()):
        file.unlink()
    store.path.parent.rmdir()

    assert await store.save(KEY, "late", expected=before) is None
    after = await store.save(KEY, "after", expected=0)
    assert after
    assert after > before
    assert (await store.change_token()).permissions != revision
    assert (await store.stored_permissions()).switches.get("assistant", {}) == {}
    assert await store.digest_key() != key
    assert in_file(store.path, "SELECT text FROM session") == [("after",)]


async def test_a_file_that_another_one_replaces_counts_no_longer_for_one_who_only_reads(store: SqliteStore) -> None:
    """P4: a copy that is put back while a process serves binds its next request."""
    await store.set_switch("assistant", "git", True)
    before = (await store.change_token()).permissions
    other = SqliteStore(store.path.with_name("other.db"))
    await other.open()
    await other.set_switch("assistant", "git", False)
    await other.aclose()
    for end in ("-wal", "-shm"):
        store.path.with_name(store.path.name + end).unlink()
    other.path.replace(store.path)

    assert (await store.change_token()).permissions != before
    assert (await store.stored_permissions()).switches == {"assistant": {"git": False}}


# The schema


async def test_a_new_file_has_the_current_schema_version(store: SqliteStore) -> None:
    assert in_file(store.path, "PRAGMA user_version") == [(VERSION,)]


async def test_a_switch_that_cannot_be_recorded_is_not_set(path: Path) -> None:
    """P2, X4: switch and audit record are one transaction."""
    store = SqliteStore(path)
    await store.open()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE request")
    with pytest.raises(StoreError):
        await store.set_switch("assistant", "git", False, audit=[ENTRY])
    assert (await store.stored_permissions()).switches == {}
    await store.aclose()


async def test_a_newer_file_is_refused_with_both_versions_and_left_alone(path: Path) -> None:
    await (store := SqliteStore(path)).open()
    await store.aclose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = content_of(path)
    error = await refused(path)
    assert isinstance(error, StoreSchemaError)
    assert f"has schema version {VERSION + 1}" in error.message
    assert f"understands versions up to {VERSION}" in error.message
    assert content_of(path) == before


@pytest.mark.parametrize("owner", [0, 0x50454731], ids=["another program", "an earlier Pegboard"])
async def test_a_store_that_is_not_of_this_pegboard_is_refused_and_left_alone(tmp_path: Path, owner: int) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute(f"PRAGMA application_id = {owner}")
    before = content_of(path)
    error = await refused(path)
    assert isinstance(error, StoreSchemaError)
    assert "not a store of this Pegboard" in error.message
    assert "Move it away" in (error.hint or "")
    assert content_of(path) == before


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be looked at " * 40, b"\0" * 8192])
async def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pegboard.db"
    path.write_bytes(content)
    error = await refused(path)
    assert isinstance(error, StoreSchemaError)
    assert content_of(path) == content


async def test_a_damaged_page_is_reported_by_name_when_it_is_read(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.save(KEY, "text" * 5000, expected=0)
    await store.aclose()
    overwrite_from(path, len(content_of(path)) - 16_384)
    await store.open()
    with pytest.raises(StoreSchemaError) as caught:
        await store.load(KEY)
    assert str(path) in caught.value.message
    assert "damaged" in caught.value.message
    await store.aclose()


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "pegboard.db").touch()
    store = SqliteStore(tmp_path / "pegboard.db")
    await store.open()
    assert await store.save(KEY, "text", expected=0)
    await store.aclose()


# Places where it cannot be


async def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in (await refused(tmp_path)).message


async def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "not a directory" in (await refused(tmp_path / "file" / "pegboard.db")).message
    assert "not a directory" in (await refused(tmp_path / "file" / "deeper" / "pegboard.db")).message


async def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "too long" in (await refused(tmp_path / ("x" * 300))).message


async def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pegboard.db").symlink_to(tmp_path / "missing" / "pegboard.db")
    assert "broken link" in (await refused(tmp_path / "pegboard.db")).message


async def test_a_device_or_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pegboard.db")
    assert "not an ordinary file" in (await refused(tmp_path / "pegboard.db")).message


AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
import pegboard.stores.sql.sqlite_database
from pegboard.errors import StoreError
from pegboard.stores.sql import SqliteStore

if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    try:
        asyncio.run(SqliteStore(Path(path), patience=0.2).open())
    except StoreError as error:
        print(type(error).__name__, error.message)
    else:
        print("opened")
"""


def opened_by_nobody(paths: list[Path]) -> list[str]:
    """Return one line per path: what a user without rights is told who opens it."""
    command = [sys.executable, "-c", AS_NOBODY, *map(str, paths)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert finished.stderr == ""
    return finished.stdout.splitlines()


async def test_a_place_without_permission_is_refused_with_the_reason() -> None:
    """Another user is asked, so that the test means the same when root runs it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        closed, readonly = folder / "closed", folder / "readonly"
        for made in (closed, readonly):
            store = SqliteStore(made / "pegboard.db")
            await store.open()
            await store.aclose()
        (readonly / "pegboard.db").chmod(0o444)
        (closed / "pegboard.db").chmod(0o666)
        for made in (closed, readonly, folder):
            made.chmod(0o555)
        paths = [folder / "new" / "pegboard.db", readonly / "pegboard.db", folder / "new.db", closed / "pegboard.db"]
        lines = opened_by_nobody(paths)
        for made in (folder, closed, readonly):
            made.chmod(0o700)
    assert len(lines) == len(paths)
    for line, path in zip(lines, paths, strict=True):
        assert line.startswith(f"StoreError {path} cannot be ")
    assert all("permission denied" in line for line in lines[:3])


@pytest.mark.parametrize("remover", ["the same store", "another store"])
async def test_a_record_has_its_names_although_they_were_removed_meanwhile(tmp_path: Path, remover: str) -> None:
    """S2, X4: the numbers of names that a store has read may be gone by the next record."""
    past = datetime.now(UTC) - timedelta(days=3)
    store, other = SqliteStore(tmp_path / "pegboard.db"), SqliteStore(tmp_path / "pegboard.db")
    await store.open()
    await other.open()
    for _ in range(2):
        store.record_later(ENTRY._replace(kind="call", at=past), CallDetails(days=1))
        await store.entries()
    await (store if remover == "the same store" else other).remove_old()
    assert await other.entries() == []
    store.record_later(ENTRY._replace(kind="call"), CallDetails(days=1))
    assert await store.entries() == [ENTRY._replace(kind="call")]
    await store.aclose()
    await other.aclose()
