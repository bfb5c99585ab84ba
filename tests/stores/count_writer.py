"""Add ones to the counts of a store, saying on standard output how many were handed over.

Usage: count_writer.py PATH COUNT. It goes on for ever where COUNT is 0.
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from pegboard.ports import CountRecord, Counts
from pegboard.ports.counts import SESSION_DAY
from pegboard.stores.sql import SqliteStore

ONE = CountRecord(1_784_980_800, "ada", "assistant", "thread", "s", "t", "ok", Counts(calls=1, tokens=1000), {70: 1})


async def write(path: Path, most: int) -> None:
    store = SqliteStore(path)
    await store.open()
    for number in range(1, most + 1) if most else count(1):
        os.write(1, f"{number}\n".encode())
        store.count_later(ONE)
        await store.record()
        if number % 7 == 0:
            await store.sums(SESSION_DAY, since=0, until=2**40, by=())
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
