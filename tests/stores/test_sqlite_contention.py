"""Several processes write one file at once: no update is lost and no one sees a lock.

`PEGBOARD_LONG=1` makes it last 30 seconds.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict

import pytest
from contention_writer import SHARED

from pegboard.ports import SessionKey
from pegboard.stores.sql import SqliteStore

WRITER = Path(__file__).with_name("contention_writer.py")
SECONDS = 30.0 if os.environ.get("PEGBOARD_LONG") == "1" else 1.0


class Report(TypedDict):
    """Hold what one process says that it wrote."""

    shared: list[int]
    own: list[int]
    lost: int
    switches: int
    slowest: float


@asynccontextmanager
async def writers(names: Iterable[str], seconds: float, sessions: int) -> AsyncGenerator[list[Process]]:
    """Return processes that are ready to write; each must end well and without a word of complaint."""
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, str(WRITER), name, str(seconds), str(sessions), stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        for name in names
    ]
    try:
        assert [await line_of(one) for one in started] == [b"ready\n"] * len(started)
        yield started
        for one in started:
            assert await one.communicate(b"") == (b"", b"")  # which ends its input
            assert one.returncode == 0
    finally:
        for one in started:
            if one.returncode is None:
                one.kill()
                await one.wait()


async def line_of(process: Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.readline()


async def hammered(path: Path, processes: Iterable[Process]) -> list[Report]:
    """Let all processes write one file at once, and return what each says that it wrote."""
    for one in processes:
        assert one.stdin is not None
        one.stdin.write(f"{path}\n".encode())
    return [json.loads(line) for line in await asyncio.gather(*map(line_of, processes))]


async def number_in(store: SqliteStore, key: SessionKey) -> int:
    state = await store.load(key)
    return int(state.text) if state else 0


@pytest.mark.timeout(120)
async def test_four_processes_with_fifty_sessions_each_lose_no_update(tmp_path: Path) -> None:
    """S2: two concurrent loads both survive, whoever makes them; the file does not exist before."""
    path = tmp_path / "new" / "pegboard.db"
    names = ["a", "b", "c", "d"]
    async with writers(names, SECONDS, 50) as processes:
        reports = await hammered(path, processes)

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
    async with writers(map(str, range(6)), 0.01, 2) as processes:
        for attempt in range(5):
            path = tmp_path / f"{attempt}.db"
            reports = await hammered(path, processes)
            store = SqliteStore(path)
            await store.open()
            total = sum([await number_in(store, key) for key in SHARED])
            await store.aclose()
            assert total == sum(sum(report["shared"]) for report in reports)
