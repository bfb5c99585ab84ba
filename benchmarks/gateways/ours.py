"""Pegboard in front of a client's configuration, as ``pegboard serve`` runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import Client
from benchmarks.gateways.upstreams import Server


class Pegboard(Adapter):
    name = "pegboard"

    def command(self, setup: Setup) -> list[str]:
        # Alone, as the others are: one process that is started, measured and ended.
        how = (
            ["--stdio", "--alone"] if setup.transport == "stdio" else ["--host", "127.0.0.1", "--port", str(setup.port)]
        )
        return [sys.executable, "-m", "pegboard", "serve", "--config", setup.client_file(), *how]

    async def prepare(self, client: Client) -> None:
        await client.call("load_tools", {"names": ["everything__echo"]})

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "call_tool", {"name": f"{server}__{tool}", "arguments": arguments}

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        names = [server.name for server in servers]
        answer = await client.request("tools/call", {"name": "load_tools", "arguments": {"names": names}})
        found = json.loads(answer["content"][0]["text"])
        return len({tool["name"] for item in found["items"] for tool in item.get("tools", ())})
