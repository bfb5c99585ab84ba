"""A process of Pegboard that calls one tool of a server for each line that it reads, and prints what came of it."""

import asyncio
import sys

from pegboard import Pegboard


async def main(config: str) -> None:
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id=f"{id(board)}", principal="local")
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            answer = await session.call("linear__whoami", {})
            print(answer.status if answer.status != "error" else f"error {answer.message}", flush=True)


asyncio.run(main(sys.argv[1]))
