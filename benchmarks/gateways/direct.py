"""No gateway: the client connected to the server whose tool is called, over the transport that is compared."""

from __future__ import annotations

from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup


class Direct(Adapter):
    name = "direct"
    modern = False

    def command(self, setup: Setup) -> list[str]:
        everything = next(server for server in setup.servers if server.name == "everything")
        if setup.transport == "stdio":
            return [everything.command, *everything.args]
        return [everything.command, *(part.format(port=setup.port) for part in everything.http)]

    def env(self, setup: Setup) -> dict[str, str]:
        return {} if setup.transport == "stdio" else {"PORT": str(setup.port)}

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return tool, arguments
