"""A store that a test loses: that of a server which cannot be reached for a while, over a real store."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Container
from typing import Any, cast

from pegboard.errors import store_unavailable
from pegboard.ports import UNREAD, Store
from pegboard.stores.sql.database import Database, Transaction
from pegboard.stores.sql.store import SqlStore


class LosableStore:
    """A real store whose requests raise ``StoreUnavailableError`` while it is ``lost``: all of them, or some by name.

    While all are, what is pending cannot be written. ``asked`` are the requests that it was asked, by their names.
    """

    def __init__(self, real: Store) -> None:
        self.real = real
        pending = cast("SqlStore", real)._batches
        vars(pending)["_db"] = LosableDatabase(self, pending._db)
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


class LosableDatabase:
    """Where a real store writes what is pending; it cannot while the store is lost."""

    def __init__(self, store: LosableStore, real: Database) -> None:
        self._store, self._real = store, real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def write(self, work: Callable[[Transaction], Awaitable[Any]], *locks: str) -> Any:
        if self._store.lost and not self._store.requests:
            self._store.asked.append("write")
            raise store_unavailable("The store of the test", "the server has gone away")
        return await self._real.write(work, *locks)


def losable(real: Store) -> tuple[LosableStore, Store]:
    """Return a double over a real store, and the same as a store."""
    double = LosableStore(real)
    return double, cast("Store", double)
