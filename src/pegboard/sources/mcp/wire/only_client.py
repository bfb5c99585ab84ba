"""The only client of a process, which answers what servers ask outside of any call (G7, G9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pegboard.core.model.tools import JsonObject
from pegboard.ports import AskRefusedError, Client


class OnlyClient:
    """The client that has started this process: a server that asks outside of any call means it.

    It may still be to come: what is asked waits for it. ``watchers`` are told that its roots have changed.
    """

    def __init__(self) -> None:
        self.watchers: set[Callable[[], None]] = set()
        self._client: Client | None = None
        self._met = asyncio.Event()

    def meet(self, client: Client | None) -> None:
        """Let this client answer from now on; None where it can be asked during calls alone."""
        self._client = client
        self._met.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return what it answers; raises ``AskRefusedError``."""
        await self._met.wait()
        if self._client is None:
            raise AskRefusedError("The client is of the newer era: it can be asked during calls alone.")
        return await self._client.ask(method, params)

    def roots_changed(self) -> None:
        """Tell the servers that run that its roots have changed."""
        for told in tuple(self.watchers):
            told()
