"""Remember one use after the other, at most one a millisecond, saying on standard output which.

Usage: use_writer.py PATH. Lines: `NUMBER`. Ends when it is killed.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from pegboard.ports import UseRecord
from pegboard.stores.sql import SqliteStore


async def remember_for_ever(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    number = 0
    while True:
        number += 1
        store.remember_later(UseRecord(time.time(), "ada", "assistant", f"need {number}", "git/log"))
        os.write(1, f"{number}\n".encode())
        await asyncio.sleep(0.001)


if __name__ == "__main__":
    asyncio.run(remember_for_ever(Path(sys.argv[1])))
