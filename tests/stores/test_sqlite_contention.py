"""Several processes write one file at once: no update is lost and nobody sees a lock.

`PEGBOARD_LONG=1` makes it last 30 seconds.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TypedDict

import pytest
from contention_writer import SHARED

from pegboard.ports import SessionKey
from pegboard.stores.sql import SqliteStore

WRITER = Path(__file__).with_name("contention_writer.py")
SECONDS = 30.0 if os.environ.get("PEGBOARD_LONG") == "1" else 3.0


class Report(TypedDict):
    """Hold what one process says that it wrote."""

    shared: list[int]
    own: list[int]
    lost: int
    switches: int
    slowest: float


async def hammered(path: Path, name: str, seconds: float, sessions: int) -> Report:
    """Return what one process says that it wrote; it must end well and without a word of complaint."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(WRITER), str(path), name, str(seconds), str(sessions),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    assert errors.decode() == ""
    assert process.returncode == 0
    return json.loads(out)


async def number_in(store: SqliteStore, key: SessionKey) -> int:
    state = await store.load(key)
    return int(state.text) if state else 0


@pytest.mark.timeout(120)
async def test_four_processes_with_fifty_sessions_each_lose_no_update(tmp_path: Path) -> None:
    """S2: two concurrent loads both survive, whoever makes them; the file does not exist before."""
    path = tmp_path / "new" / "pegboard.db"
    names = ["a", "b", "c", "d"]
    reports = await asyncio.gather(*(hammered(path, name, SECONDS, 50) for name in names))

    store = SqliteStore(path)
    await store.open()
    for which, key in enumerate(SHARED):
        assert await number_in(store, key) == sum(report["shared"][which] for report in reports)
    for name, report in zip(names, reports, strict=True):
        for number, count in enumerate(report["own"]):
            assert count > 0
            key = SessionKey(principal=name, agent="counter", session=str(number))
            assert await number_in(store, key) == count
    assert sum(report["lost"] for report in reports) > 0, "the writers never met: this proves nothing"
    assert set((await store.stored_permissions()).switches.get("assistant", {})) == set(names)
    versions = [state.version for _, state in await store.sessions()]
    assert len(set(versions)) == len(versions)
    await store.aclose()


async def test_processes_that_open_and_close_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    """S2: making tables, switching to the log and the last one's clean-up meet without an error."""
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        reports = await asyncio.gather(*(hammered(path, str(number), 0.01, 2) for number in range(6)))
        store = SqliteStore(path)
        await store.open()
        total = sum([await number_in(store, key) for key in SHARED])
        await store.aclose()
        assert total == sum(sum(report["shared"]) for report in reports)
