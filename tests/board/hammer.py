"""Load and unload in many sessions at once; usage: hammer.py CONFIG WORKER SESSIONS SECONDS.

Every task owns one toolkit, and every session is hammered by every process: no one may lose what
another one did. Prints how many operations it did, and each answer that was not expected.
"""

import asyncio
import random
import sys
import time

from pegboard import Pegboard


async def hammer(board: Pegboard, session_id: str, toolkit: str, until: float) -> tuple[int, list[str]]:
    session = await board.session(agent="default", session_id=session_id)
    done, odd = 0, []
    while time.monotonic() < until:
        for outcome, wanted in ((await session.load(toolkit), "loaded"), (await session.unload(toolkit), "unloaded")):
            done += 1
            if outcome.items[0].status != wanted:
                odd.append(f"{session_id} {toolkit}: {outcome.items[0].status} {outcome.message}")
    if random.random() < 0.5:
        await session.load(toolkit)
        print(f"kept {session_id} {toolkit}")
    return done, odd


async def main(config: str, worker: int, sessions: int, seconds: float) -> None:
    async with Pegboard.open(config) as board:
        until = time.monotonic() + seconds
        tasks = [hammer(board, f"s{number}", f"kit{worker}", until) for number in range(sessions)]
        results = await asyncio.gather(*tasks)
    print("done", sum(done for done, _ in results))
    for _, odd in results:
        for line in odd:
            print("odd", line)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
