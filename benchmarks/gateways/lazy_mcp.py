"""lazy-mcp: four tools, servers started when asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import Client
from benchmarks.gateways.installing import environment
from benchmarks.gateways.upstreams import Server


class LazyMcp(Adapter):
    name = "lazy-mcp 2.7.2"
    modern = False
    token = "bench-token"

    def install(self) -> None:
        environment("lazy-mcp", "lazy-mcp==2.7.2")

    def command(self, setup: Setup) -> list[str]:
        servers = [
            {"name": s.name, "description": f"The tools of {s.name}.", "command": [s.command, *s.args], "env": s.env}
            for s in setup.servers
        ]
        program = environment("lazy-mcp", "lazy-mcp==2.7.2") / "lazy-mcp"
        http = ["--transport", "http", "--host", "127.0.0.1", "--port", str(setup.port), "--auth-token", self.token]
        how = [] if setup.transport == "stdio" else http
        return [str(program), "--config", setup.write("lazy.json", {"servers": servers}), *how]

    async def settle(self, setup: Setup, base: str) -> tuple[str, dict[str, str]]:
        return base + self.path(), {"authorization": f"Bearer {self.token}"}

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "invoke_command", {"server": server, "command_name": tool, "parameters": arguments}

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        texts = [await client.call("list_commands", {"server": server.name}) for server in servers]
        return sum(len(json.loads(text)) for text in texts)
