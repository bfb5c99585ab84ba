"""No gateway: the client connected to the server whose tool is called."""

from __future__ import annotations

from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup


class Direct(Adapter):
    name = "direct"
    transports = ("stdio",)

    def command(self, setup: Setup) -> list[str]:
        everything = next(server for server in setup.servers if server.name == "everything")
        return [everything.command, *everything.args]

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return tool, arguments
