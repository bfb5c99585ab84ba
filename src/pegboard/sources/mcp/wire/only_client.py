"""The one client of a connection, which answers what its server asks outside of any call (G7, G9)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pegboard.core.access.extensions import told_servers
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.ports import AskRefusedError, Client


class OnlyClient:
    """The client that has started this process, or the one whose connections are its own: their servers mean it.

    It may still be to come: what is asked waits for it. ``watchers`` take the notifications that it makes to servers,
    ``declares`` is what a server is told of it when its connection begins.
    """

    def __init__(self) -> None:
        self.watchers: set[Callable[[str, JsonObject], None]] = set()
        self.declares: JsonObject = EMPTY
        self._client: Client | None = None
        self._other: OnlyClient | None = None
        self._met = asyncio.Event()

    def introduce(self, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        """Note what it can do, as it stands on the wire; ``modern`` is its era."""
        self.declares = told_servers(capabilities, modern=modern)

    def meet(self, client: Client | None) -> None:
        """Let this client answer from now on; None where it can be asked during calls alone."""
        self._client = client
        self._met.set()

    def become(self, other: OnlyClient | None) -> None:
        """Be this one from now on, also for what was asked before it was known who that is; None is nobody."""
        self._other = other
        self._met.set()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return what it answers; raises ``AskRefusedError``."""
        await self._met.wait()
        if self._other is not None:
            return await self._other.ask(method, params)
        if self._client is None:
            raise AskRefusedError("The client is of the newer era: it can be asked during calls alone.")
        return await self._client.ask(method, params)

    def tell_servers(self, method: str, params: JsonObject) -> None:
        """Pass a notification of it on to the servers that run."""
        for told in tuple(self.watchers):
            told(method, params)
