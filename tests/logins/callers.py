"""Processes of Pegboard that call one server at once, each with the login that they share."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sdk_servers import sdk_command

SCRIPT = "login_caller.py"


class Caller:
    """One process; it makes a call whenever it is asked to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    async def call(self) -> str:
        """Return what came of a call, or nothing where the process has ended."""
        try:
            self._input.write(b"\n")
            await self._input.drain()
            return (await self._output.readline()).decode().strip()
        except ConnectionError:
            return ""

    async def ready(self) -> None:
        assert await self._output.readline() == b"ready\n"

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


async def started(config: Path, *, env: dict[str, str] | None = None) -> Caller:
    """Return a process that is ready to call."""
    pipe = asyncio.subprocess.PIPE
    command = await asyncio.to_thread(sdk_command, SCRIPT, str(config))
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env={**os.environ, **(env or {})})
    caller = Caller(process)
    await caller.ready()
    return caller


@asynccontextmanager
async def callers(config: Path, count: int) -> AsyncIterator[Sequence[Caller]]:
    """Start so many processes, and end them."""
    running = await asyncio.gather(*(started(config) for _ in range(count)))
    try:
        yield running
    finally:
        await asyncio.gather(*(caller.kill() for caller in running))
