"""The order in which servers begin to start (G8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Container
from contextlib import asynccontextmanager


class StartTurns:
    """Turns to start, of which there are ``most`` at once: those of ``first`` go before the others.

    ``first`` has names when a turn is given away, and may have others by then than when a name began to wait.
    """

    def __init__(self, most: int, first: Container[str]) -> None:
        self._free = most
        self._first = first
        self._queue: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def wait_for_turn(self, name: str, longest: float) -> AsyncGenerator[None]:
        """Wait for a turn; it ends with the context, or after ``longest`` seconds: a slow start delays no other."""
        await self._take_turn(name)
        end = asyncio.get_running_loop().call_later(longest, self._pass_turn)
        try:
            yield
        finally:
            if not end.cancelled() and end.when() > asyncio.get_running_loop().time():
                end.cancel()
                self._pass_turn()

    async def _take_turn(self, name: str) -> None:
        if self._free:
            self._free -= 1
            return
        given = asyncio.get_running_loop().create_future()
        self._queue[given] = name
        try:
            await given
        except asyncio.CancelledError:
            if self._queue.pop(given, None) is None:  # it was given just now
                self._pass_turn()
            raise

    def _pass_turn(self) -> None:
        if not self._queue:
            self._free += 1
            return
        waiting = list(self._queue)
        following = next((one for one in waiting if self._queue[one] in self._first), waiting[0])
        del self._queue[following]
        following.set_result(None)
