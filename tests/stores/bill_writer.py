"""Add ones to the bill of a store, saying on standard output how many were handed over.

Usage: bill_writer.py PATH COUNT. It goes on for ever where COUNT is 0.
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from pegboard.ports import BillCounts, BillRecord
from pegboard.stores.sql import SqliteStore

ONE = BillRecord("2026-07-28", "ada", "assistant", "thread", BillCounts(calls=1, tokens=1000))


async def write(path: Path, most: int) -> None:
    store = SqliteStore(path)
    await store.open()
    for number in range(1, most + 1) if most else count(1):
        os.write(1, f"{number}\n".encode())
        store.bill_later(ONE)
        await store.record()
        if number % 7 == 0:
            await store.bill()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
