"""Over stdio a client has a session of its own in each folder, and what it loaded ends with it (G1)."""

import sqlite3
from pathlib import Path

import pytest
from mcp import StdioServerParameters

from .clients import ERAS, HANDSHAKE, connected, spawn


@pytest.fixture
def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
    return folders


def started(config: Path, folder: Path, *options: str) -> StdioServerParameters:
    """Return how a client starts Pegboard in a folder, with a state folder of this test's own."""
    given = spawn(config, *options)
    env = {**(given.env or {}), "XDG_STATE_HOME": str(config.parent / "user-state")}
    return given.model_copy(update={"cwd": str(folder), "env": env})


def as_long_ago(config: Path, seconds: float) -> None:
    """Let everything in the store have happened that long before it did."""
    with sqlite3.connect(config.parent / "state.db") as connection:
        connection.execute("UPDATE session SET updated_at = updated_at - ?", (seconds,))
        connection.execute("UPDATE request SET at = at - ?", (int(seconds * 1_000_000),))


@pytest.mark.parametrize("era", ERAS)
async def test_what_one_client_or_folder_has_loaded_is_in_no_list_of_another(
    config: Path, two_folders: tuple[Path, Path], era: str
) -> None:
    """G1: the same client in the same folder has it, also in a process of its own."""
    first, second = two_folders
    async with connected(started(config, first), era, name="cursor") as cursor:
        await cursor.load("notes")
        for folder, name in ((first, "claude-code"), (second, "cursor")):
            async with connected(started(config, folder), era, name=name) as other:
                assert "note_add" not in await other.names()
                assert (await other.call("note_add", text="x")).is_error
        async with connected(started(config, first), era, name="cursor") as again:
            assert await again.text("note_add", text="tea") == "added tea"


async def test_a_client_that_is_started_the_next_day_begins_with_its_initial_tools(
    config: Path, two_folders: tuple[Path, Path]
) -> None:
    """G1: within the hour, and in a session that was named, it has what it had; whoever it is in either era."""
    (folder, _), era = two_folders, HANDSHAKE
    async with connected(started(config, folder), era, name="cursor") as cursor:
        await cursor.load("notes")
    as_long_ago(config, 1800)
    async with connected(started(config, folder), era, name="cursor") as soon:
        assert await soon.text("note_add", text="tea") == "added tea"
    as_long_ago(config, 7200)
    async with connected(started(config, folder), era, name="cursor") as later:
        assert "note_add" not in await later.names()
        assert (await later.call("note_add", text="x")).is_error
    async with connected(started(config, folder, "--session", "mine"), era, name="cursor") as named:
        await named.load("notes")
    as_long_ago(config, 7200)
    async with connected(started(config, folder, "--session", "mine"), era, name="cursor") as named:
        assert await named.text("note_add", text="tea") == "added tea"


async def test_what_a_client_has_loaded_that_still_runs_stays(config: Path, two_folders: tuple[Path, Path]) -> None:
    """G1: two windows of one client in one folder; the first was idle for two hours."""
    folder, _ = two_folders
    async with connected(started(config, folder), HANDSHAKE, name="cursor") as first:
        await first.load("notes")
        as_long_ago(config, 7200)
        async with connected(started(config, folder), HANDSHAKE, name="cursor") as second:
            assert "note_add" in await second.names()
        assert await first.text("note_add", text="tea") == "added tea"
