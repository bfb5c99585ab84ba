"""The processes of servers that several boards of the daemon use (G12), without the SDK: no first list needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.core.model.specs import ServerSpec
    from pegboard.sources.mcp.transports.launch import Launches
    from pegboard.sources.mcp.transports.shared_process import ProcessShare, SharedProcess
    from pegboard.sources.mcp.wire.open_connection import OpenConnection

Key = tuple[object, ...]


class SharedProcesses:
    """The processes that run, by what they are: boards that start an equal server share one."""

    def __init__(self) -> None:
        self._running: dict[Key, SharedProcess] = {}

    def join(
        self, spec: ServerSpec, live: OpenConnection, launches: Launches, oversized: Callable[[bytes], None]
    ) -> ProcessShare:
        """Return a share of the process of a server, whose values are filled in; it is started with its first user."""
        from pegboard.sources.mcp.transports.shared_process import ProcessShare, SharedProcess  # brings the SDK

        env = tuple(sorted((name, value) for name, value in spec.env.items() if name != "PATH"))
        key = (spec.command, spec.args, env, spec.cwd or launches.folder, spec.message_limit)
        found = self._running.get(key)
        if found is None or not found.takes_users:
            found = self._running[key] = SharedProcess(spec.message_limit, lambda: self._forget(key))
        return ProcessShare(found, live, oversized)

    def _forget(self, key: Key) -> None:
        found = self._running.get(key)
        if found is not None and not found.takes_users:
            del self._running[key]
