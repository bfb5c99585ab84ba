"""Kill a writing process at random points: every state reads back as the one before or the one after."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from crash_writer import KEY, text_of

from pegboard.stores.sql import SqliteStore

WRITER = Path(__file__).with_name("crash_writer.py")
TOGETHER = Path(__file__).with_name("together_writer.py")
ROUNDS = 60


def killed_after(path: Path, lines: int, spin: float, writer_of: Path = WRITER) -> Sequence[str]:
    """Return all that a writer said that was killed with SIGKILL some microseconds after its nth line."""
    with subprocess.Popen(
        [sys.executable, str(writer_of), str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        assert writer.stderr
        said = list(islice(writer.stdout, lines))
        end = time.perf_counter() + spin
        while time.perf_counter() < end:
            pass
        writer.kill()
        rest, errors = writer.stdout.read(), writer.stderr.read()
        writer.wait()
    assert errors == ""
    assert writer.returncode == -9
    whole = "".join([*said, rest])
    return whole[: whole.rfind("\n") + 1].splitlines()


def last_number(said: Sequence[str], word: str, otherwise: int) -> int:
    return max((int(line.split()[1]) for line in said if line.startswith(f"{word} ")), default=otherwise)


@pytest.mark.timeout(120)
async def test_every_state_is_the_one_before_or_the_one_after_a_kill(tmp_path: Path) -> None:
    """S2: a change survives kill -9 before its answer is given, and none is ever half done."""
    path = tmp_path / "pegboard.db"
    chance = random.Random(20260728)
    number = version = recorded = 0
    killed_in: set[str] = set()
    for round_ in range(ROUNDS):
        lines = 1 if round_ % 10 == 0 else chance.randint(1, 120)
        said = killed_after(path, lines, chance.uniform(0, 0.003))
        done, about = last_number(said, "done", number), last_number(said, "about", number)
        versions = {int(line.split()[1]): int(line.split()[2]) for line in said if line.startswith("done ")}
        recorded = last_number(said, "recorded", recorded)

        store = SqliteStore(path)
        await store.open()
        state = await store.load(KEY)
        subjects = {entry.subject for entry in await store.entries(limit=500)}
        await store.aclose()

        found = int(state.text.split()[0]) if state else 0
        assert done <= found <= about <= done + 1
        killed_in.add(said[-1].split()[0] if said else "")
        if state is None:
            continue
        assert state.text == text_of(found)
        assert state.version == versions.get(found, state.version)
        assert state.version > version or found == number
        assert recorded == 0 or str(recorded) in subjects
        number, version = found, state.version
    assert number > ROUNDS
    assert killed_in >= {"about", "done"}, "no kill came in the middle of a save and of a record"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_state_is_in_the_file_once_the_writer_has_said_so(tmp_path: Path) -> None:
    """S2: killed right after the first answer, in a file that did not exist before."""
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        said = killed_after(path, 3, 0)
        assert said[:2] == ["opening", "about 1"]
        assert said[2].startswith("done 1 ")
        store = SqliteStore(path)
        await store.open()
        state = await store.load(KEY)
        await store.aclose()
        assert state is not None
        assert int(state.text.split()[0]) >= 1


async def test_switches_set_together_are_all_there_or_none_after_a_kill(tmp_path: Path) -> None:
    """P2, X4: forty agents, killed anywhere; the newest action is the one that stands."""
    path, chance = tmp_path / "pegboard.db", random.Random(20261126)
    for _ in range(12):
        killed_after(path, chance.randint(2, 30), chance.uniform(0, 0.003), TOGETHER)
        store = SqliteStore(path)
        await store.open()
        switches, actions = (await store.stored_permissions()).switches, await store.switch_actions()
        await store.aclose()
        values = {own.get("research") for own in switches.values()}
        assert (len(switches), len(values)) in ((40, 1), (0, 0))
        if actions:
            assert values == {actions[0].changes[0].value}
    assert values
