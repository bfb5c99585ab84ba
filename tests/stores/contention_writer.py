"""Hammer stores with many sessions and a few shared counters; report what was done to each as one JSON line.

Usage: contention_writer.py NAME SECONDS SESSIONS. It says ``ready``, then the path of each store is a line of its
input, so that several of these begin at once.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from pegboard.ports import SessionKey
from pegboard.stores.sql import SqliteStore

SHARED = [SessionKey(principal="all", agent="counter", session=str(number)) for number in range(3)]


async def increment(store: SqliteStore, key: SessionKey) -> bool:
    """Add one to the counter, unless another writer was first."""
    state = await store.load(key)
    number = int(state.text) if state else 0
    return await store.save(key, str(number + 1), expected=state.version if state else 0) is not None


async def hammer(path: Path, name: str, seconds: float, sessions: int) -> dict[str, object]:
    store = SqliteStore(path)
    await store.open()
    deadline = time.monotonic() + seconds
    shared = [0] * len(SHARED)
    own = [0] * sessions
    lost = switches = 0
    slowest = 0.0

    async def run(number: int) -> None:
        nonlocal lost, switches, slowest
        key = SessionKey(principal=name, agent="counter", session=str(number))
        while time.monotonic() < deadline:
            start = time.monotonic()
            which = number % len(SHARED)
            if await increment(store, SHARED[which]):
                shared[which] += 1
            else:
                lost += 1
            if await increment(store, key):
                own[number] += 1
            if number == 0:
                await store.set_switch("assistant", name, bool(switches % 2))
                switches += 1
            slowest = max(slowest, time.monotonic() - start)
            await asyncio.sleep(0)

    await asyncio.gather(*(run(number) for number in range(sessions)))
    await store.aclose()
    return {"shared": shared, "own": own, "lost": lost, "switches": switches, "slowest": round(slowest, 3)}


if __name__ == "__main__":
    _, name, seconds, sessions = sys.argv
    print("ready", flush=True)
    for path in sys.stdin:
        print(json.dumps(asyncio.run(hammer(Path(path.strip()), name, float(seconds), int(sessions)))), flush=True)
