"""What operators see and do, over every session and agent of a board."""

from __future__ import annotations

from pegboard.board.services import Services
from pegboard.board.views.operators import servers
from pegboard.core.access.pool_scope import LOCAL
from pegboard.ports import PrintedLine


class Operations:
    """What operators see and do, for adapters; each subject has a file of its own beside this one."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def servers(self) -> tuple[servers.ServerState, ...]:
        """Return the state of every server and plugin of the configuration, in its order.

        Returns:
            Their states; nothing is started for them.

        Raises:
            StoreError: the stored switches cannot be read.
        """
        return await servers.servers(self._services)

    async def server(self, name: str) -> servers.ServerState:
        """Return the state of one server or plugin.

        Args:
            name: its name in the configuration.

        Returns:
            Its state; nothing is started for it.

        Raises:
            UsageError: there is none of this name.
            StoreError: the stored switches cannot be read.
        """
        return await servers.server(self._services, name)

    def server_log(self, name: str) -> tuple[PrintedLine, ...]:
        """Return what a server printed, the newest last, also of its processes that have ended.

        Args:
            name: its name in the configuration.

        Returns:
            At most 200 lines and 64 KiB of each connection; none of a plugin that runs in this process.

        Raises:
            UsageError: there is none of this name.
        """
        return servers.log(self._services, name)

    async def restart(self, name: str, *, by: str = LOCAL) -> servers.ServerState:
        """Start a server anew and ask for its tools again; calls under way fail as where it dies.

        A plugin of this process is asked again where it cannot run.

        Args:
            name: its name in the configuration.
            by: who wants it, for the audit trail.

        Returns:
            Its state once that is known; a server that takes longer than 5 s is still starting.

        Raises:
            UsageError: there is none of this name, it runs in this process and works, or ``by`` is no short text.
            ToolUnavailableError: it cannot be started as it is configured.
            StoreError: it cannot be written down, and nothing was restarted.
        """
        return await servers.restart(self._services, name, by)
