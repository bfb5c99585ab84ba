"""The values that one connection is opened with, where its server's settings name some and do not hold them (G13)."""

from __future__ import annotations

import asyncio
from typing import Final

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.connection.source_settings import SourceSettings

PAUSE: Final = 5.0
"""How long values are not read again after they were, however often a server refuses them, in seconds."""


class ServerValues:
    """The values of the references of one server, read for each start, and once more where the server refuses them."""

    def __init__(self, spec: ServerSpec, settings: SourceSettings) -> None:
        self._spec = spec
        self._settings = settings
        self._used: ServerSpec | None = None
        self._newer: ServerSpec | None = None
        self._again_at = 0.0
        self._turn = asyncio.Lock()

    async def of_start(self) -> ServerSpec:
        """Return the server with the values of now; raises ``ToolUnavailableError`` where one cannot be read."""
        async with self._turn:
            self._used = self._newer or await self._read_values()
            self._newer = None
            return self._used

    async def changed(self) -> bool:
        """Read the values again for the next start, and return whether they are others than those in use."""
        async with self._turn:
            if self._newer is None and self._settings.monotonic() >= self._again_at:
                try:
                    found = await self._read_values()
                except ToolUnavailableError:  # the next start says so
                    found = self._used
                self._again_at = self._settings.monotonic() + PAUSE
                self._newer = found if found != self._used else None
            return self._newer is not None

    async def _read_values(self) -> ServerSpec:
        from pegboard.sources.references import fill_references  # no start without references needs it

        return await fill_references(self._spec, self._settings.learn, self._settings.store)
