"""Requests to servers of which there is one over all replicas: made here, or where the server runs (G9, G14)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.ports.owned_servers import OtherOwnerError, OwnedServer, ServerElsewhere, ServerOwners

T = TypeVar("T")
MOVES_WITHIN: Final = 60.0
"""For how long a request follows a server that moves, in seconds."""


class ServerOwnership:
    """Who runs the servers with ``instance: store``; without anyone who knows it, this process runs its own."""

    __slots__ = ("owners",)

    def __init__(self) -> None:
        self.owners: ServerOwners | None = None

    def is_run_by_another(self, spec: ServerSpec) -> bool:
        """Return whether another replica may run the server."""
        return self.owners is not None and spec.instance == "store"

    async def ask(
        self,
        server: OwnedServer,
        here: Callable[[], Awaitable[T]],
        elsewhere: Callable[[ServerElsewhere], Awaitable[T]],
    ) -> T:
        """Return what a request comes to where the server runs; it follows a server that moves, for a while.

        Raises ``ToolUnavailableError`` where that takes too long.
        """
        until = time.monotonic() + MOVES_WITHIN
        while time.monotonic() < until:
            owner = None if self.owners is None else await self.owners.elsewhere(server)
            if owner is None:
                return await here()
            try:
                return await elsewhere(owner)
            except OtherOwnerError:
                continue
        raise ToolUnavailableError(
            f"Server {server.name} cannot be kept by any process.", hint="See the logs of those that run it."
        )
