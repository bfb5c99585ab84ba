"""A store that a test loses: that of a server which cannot be reached for a while, over a real store."""

import asyncio
import inspect
from collections.abc import Container
from typing import Any, cast

from pegboard.errors import store_unavailable
from pegboard.ports import UNREAD, Store


class LosableStore:
    """A real store whose requests raise ``StoreUnavailableError`` while it is ``lost``: all of them, or some by name.

    What only waits to be written waits on. ``asked`` are the requests that it was asked, by their names.
    """

    def __init__(self, real: Store) -> None:
        self.real = real
        self.lost = False
        self.requests: Container[str] = ()
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        """Cleared while its server is silent."""
        self.answers.set()

    def lose(self, *requests: str) -> None:
        """Lose it: for some requests, or for every one."""
        self.lost, self.requests = True, requests

    def find(self) -> None:
        """Find it again."""
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if name == "known_token" and (self.lost or not self.answers.is_set()):
            return lambda _: None
        if name == "known_state" and (self.lost or not self.answers.is_set()):
            return lambda _: UNREAD
        if not inspect.iscoroutinefunction(found) or name == "aclose":
            return found

        async def request(*args: Any, **named: Any) -> Any:
            self.asked.append(name)
            await self.answers.wait()
            if self.lost and (not self.requests or name in self.requests):
                raise store_unavailable("The store of the test", "the server has gone away")
            return await found(*args, **named)

        return request


def losable(real: Store) -> tuple[LosableStore, Store]:
    """Return a double over a real store, and the same as a store."""
    double = LosableStore(real)
    return double, cast("Store", double)
