"""Set switches of 40 agents together, on and off, until it is killed.

Usage: together_writer.py PATH. Lines: `opening`, `about N`, `done N`.
"""

import asyncio
import os
import sys
from pathlib import Path

from pegboard.ports import SwitchAction, SwitchChange
from pegboard.stores.sql import SqliteStore


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write_for_ever(path: Path) -> None:
    say("opening")
    store = SqliteStore(path)
    await store.open()
    stored = (await store.stored_permissions()).switches.get("agent 0", {}).get("research")
    number = 0
    while True:
        number += 1
        say(f"about {number}")
        value = stored is not True
        changes = [SwitchChange(agent=f"agent {at}", name="research", value=value, expected=stored) for at in range(40)]
        action = SwitchAction(mark=f"{number} {value}", subject="research", at=number, by="ada", changes=changes)
        if not await store.set_together(action):
            sys.exit("nobody else writes, and yet another writer was first")
        stored = value
        say(f"done {number}")


if __name__ == "__main__":
    asyncio.run(write_for_ever(Path(sys.argv[1])))
