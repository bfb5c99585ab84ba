"""Processes that write one file until they are killed, each made at once: one process has imported all that they need.

As a program it makes a writer for each line of its input, `[KIND, PATH, NAME]`. A writer prints lines `NAME WORD …`:
`pid N` first, then what it is about to write and what is written. It ends when it is killed.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from pegboard.ports import AuditRecord, CountRecord, Counts, SessionKey, SwitchAction, SwitchChange, UseRecord
from pegboard.ports.counts import SESSION_DAY
from pegboard.stores.sql import SqliteStore

SHARED = SessionKey(principal="all", agent="assistant", session="shared")
ONE = CountRecord(1_784_980_800, "ada", "assistant", "thread", "s", "t", "ok", Counts(calls=1, tokens=1000), {70: 1})


def own(principal: str) -> SessionKey:
    """Return the session that the writers of one principal write, one after the other."""
    return SessionKey(principal=principal, agent="assistant", session="own")


def text_of(number: int) -> str:
    """Return a state that spans several pages, every part of which has its number."""
    return f"{number} " * (300 + number % 2000)


async def write_states(store: SqliteStore, name: str) -> None:
    """Write a session of one's own and one that all share, with a decision each, and leave a record now and then."""
    principal = name[0]
    record = AuditRecord(datetime.now(UTC), "load", principal, "assistant", "own", 1, "", "loaded")
    state = await store.load(own(principal))
    number, version = (int(state.text.split()[0]), state.version) if state else (0, 0)
    while True:
        number += 1
        _print(name, "about", number)
        audit = [record._replace(subject=f"{name}-{number}")]
        saved = await store.save(own(principal), text_of(number), expected=version, audit=audit)
        assert saved is not None, "nobody else writes this session, and another writer was first"
        version = saved
        _print(name, "saved", number, version)
        while True:
            shared = await store.load(SHARED)
            sum_ = int(shared.text) + 1 if shared else 1
            if await store.save(SHARED, str(sum_), expected=shared.version if shared else 0) is not None:
                break
        _print(name, "shared", sum_)
        await store.record(record._replace(subject=f"decision {name}-{number}"))
        _print(name, "recorded", number)


async def switch_together(store: SqliteStore, name: str) -> None:
    """Set switches of 40 agents together, on and off."""
    stored = (await store.stored_permissions()).switches.get("agent 0", {}).get("research")
    for number in count(1):
        value = stored is not True
        changes = [SwitchChange(agent=f"agent {at}", name="research", value=value, expected=stored) for at in range(40)]
        action = SwitchAction(mark=f"{number} {value}", subject="research", at=number, by="ada", changes=changes)
        assert await store.set_together(action), "nobody else writes, and another writer was first"
        stored = value
        _print(name, "set", number)


async def count_calls(store: SqliteStore, name: str) -> None:
    """Count one call after the other, and read the sums now and then."""
    for number in count(1):
        _print(name, "about", number)
        store.count_later(ONE)
        await store.record()
        _print(name, "stored", number)
        if number % 7 == 0:
            await store.sums(SESSION_DAY, since=0, until=2**40, by=())


async def remember_uses(store: SqliteStore, name: str) -> None:
    """Remember one use after the other, at most one a millisecond."""
    for number in count(1):
        store.remember_later(UseRecord(time.time(), "ada", "assistant", f"need {number}", "git/log"))
        _print(name, "remembered", number)
        await asyncio.sleep(0.001)


KINDS = {one.__name__: one for one in (write_states, switch_together, count_calls, remember_uses)}


def _print(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def _write(kind: str, path: Path, name: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await KINDS[kind](store, name)


class Writers:
    """The writers of one file; ``lines`` are all that they printed, as words, in the order in which it was read."""

    def __init__(self, makes: "subprocess.Popen[str]", kind: str, path: Path) -> None:
        self._makes = makes
        self._kind, self._path = kind, path
        self._pids: dict[str, int] = {}
        self.lines: list[list[str]] = []

    def start(self, name: str) -> None:
        """Start a writer."""
        assert self._makes.stdin is not None
        print(json.dumps([self._kind, str(self._path), name]), file=self._makes.stdin, flush=True)

    def read(self, name: str, word: str, times: int) -> None:
        """Read until a writer has printed a word so many times."""
        assert self._makes.stdout is not None
        while times:
            self.lines.append(line := self._makes.stdout.readline().split())
            assert line, "a writer ended before it was killed"
            times -= line[:2] == [name, word]
            if line[1] == "pid":
                self._pids[line[0]] = int(line[2])

    def kill(self, name: str, *, after: float = 0.0) -> None:
        """Kill a writer after some microseconds, given in seconds."""
        end = time.perf_counter() + after
        while time.perf_counter() < end:
            pass
        os.kill(self._pids.pop(name), signal.SIGKILL)

    def numbers(self, principal: str, word: str) -> Sequence[int]:
        """Return the numbers that the writers of a principal have printed behind a word."""
        return [int(line[2]) for line in self.lines if line[0].startswith(principal) and line[1] == word]


@contextmanager
def writers(kind: str, path: Path) -> Iterator[Writers]:
    """Make writers of one file; at the end all are killed, and what they had printed is read."""
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as makes:
        assert makes.stdout is not None
        assert makes.stderr is not None
        made = Writers(makes, kind, path)
        try:
            yield made
        finally:
            os.killpg(makes.pid, signal.SIGKILL)
            lines = makes.stdout.read().splitlines(keepends=True)
            made.lines += [line.split() for line in lines if line.endswith("\n")]
        assert makes.stderr.read() == ""


def main() -> None:
    """Make a writer for each line of the input, and wait for none."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        kind, path, name = json.loads(line)
        if not os.fork():
            _print(name, "pid", os.getpid())
            asyncio.run(_write(kind, Path(path), name))


if __name__ == "__main__":
    main()
