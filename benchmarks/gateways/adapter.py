"""What the benchmark must know of a gateway; each of the other files here says it of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gateways.clients import Client
from benchmarks.gateways.upstreams import Server


@dataclass(frozen=True)
class Setup:
    """What a gateway is started with: the servers, a folder of its own, and where it listens."""

    servers: Sequence[Server]
    folder: Path
    transport: str
    port: int

    def write(self, name: str, document: object) -> str:
        """Write a configuration into the folder and return its path."""
        path = self.folder / name
        path.write_text(document if isinstance(document, str) else json.dumps(document, indent=2))
        return str(path)

    def client_file(self) -> str:
        """Write the ``mcpServers`` of every MCP client and return the path."""
        return self.write("mcp.json", {"mcpServers": {server.name: server.entry() for server in self.servers}})


class Adapter:
    """Stand for a gateway that lists the tools of its servers as they are; others say what differs."""

    name = ""
    note = ""
    transports: tuple[str, ...] = ("stdio", "http")
    modern = True
    """Whether it is first asked for the 2026-07-28 era."""
    keeps = True
    """Whether it can be started again in the same folder."""
    apart = False
    """Whether its calls are measured without the other gateways running."""

    def install(self) -> None:
        """Bring it into an environment of its own; raises ``InstallError``."""

    def command(self, setup: Setup) -> list[str]:
        """Write its configuration and return its command line."""
        raise NotImplementedError

    def env(self, setup: Setup) -> dict[str, str]:
        """Return what its environment has besides."""
        return {}

    def helpers(self, setup: Setup) -> list[list[str]]:
        """Return the command lines of what must run beside it."""
        return []

    def path(self) -> str:
        """Return the path of its MCP address."""
        return "/mcp"

    async def settle(self, setup: Setup, base: str) -> tuple[str, dict[str, str]]:
        """Return its address and headers over HTTP, once it listens."""
        return base + self.path(), {}

    async def prepare(self, client: Client) -> None:
        """Do what a model has to do before it can call the tool."""

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the name and arguments with which a tool of a server is called through it."""
        return f"{server}_{tool}", arguments

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        """Return how many tools of the servers a model can find and call."""
        return len(await client.tools())
