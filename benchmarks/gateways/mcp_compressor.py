"""mcp-compressor: three tools per server, schemas on demand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import Client
from benchmarks.gateways.installing import environment
from benchmarks.gateways.upstreams import Server


class McpCompressor(Adapter):
    name = "mcp-compressor 0.38.2"
    note = "-c max"

    def install(self) -> None:
        environment("mcp-compressor", "mcp-compressor==0.38.2")

    def command(self, setup: Setup) -> list[str]:
        program = environment("mcp-compressor", "mcp-compressor==0.38.2") / "mcp-compressor"
        how = [] if setup.transport == "stdio" else ["--transport", "streamable-http", "--port", str(setup.port)]
        return [str(program), "-c", "max", "--config", setup.client_file(), *how]

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return f"{server}_invoke_tool", {"tool_name": tool, "tool_input": arguments}

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        texts = [await client.call(f"{server.name}_list_tools", {}) for server in servers]
        return sum(len(re.findall(r"<tool>", text)) for text in texts)
