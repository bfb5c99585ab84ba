"""Write one state after the other into a store, saying on standard output what is about to be and what has been done.

Usage: crash_writer.py PATH. Lines: `opening`, `about N`, `done N VERSION`. Ends when it is killed.
"""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from pegboard.ports import AuditRecord, SessionKey
from pegboard.stores.sql import SqliteStore

KEY = SessionKey(principal="ada", agent="assistant", session="crash")


def text_of(number: int) -> str:
    """Return a state that spans several pages, every part of which says its number."""
    return f"{number} " * (300 + number % 2000)


def entry_of(number: int) -> AuditRecord:
    return AuditRecord(
        at=datetime.now(UTC),
        kind="load",
        principal="ada",
        agent="assistant",
        session="crash",
        turn=number,
        subject=str(number),
        decision="loaded",
    )


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write_for_ever(path: Path) -> None:
    say("opening")
    store = SqliteStore(path)
    await store.open()
    state = await store.load(KEY)
    version = state.version if state else 0
    number = int(state.text.split()[0]) if state else 0
    while True:
        number += 1
        say(f"about {number}")
        saved = await store.save(KEY, text_of(number), expected=version)
        if saved is None:
            sys.exit("nobody else writes, and yet another writer was first")
        version = saved
        say(f"done {number} {version}")
        await store.record(entry_of(number))
        say(f"recorded {number}")


if __name__ == "__main__":
    asyncio.run(write_for_ever(Path(sys.argv[1])))
