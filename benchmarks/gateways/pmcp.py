"""pmcp: meta-tools named ``gateway.*``, servers started when used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.clients import Client
from benchmarks.gateways.installing import environment
from benchmarks.gateways.upstreams import Server


class Pmcp(Adapter):
    name = "pmcp 3.0.0"
    apart = True  # it ends processes of others that run the same servers

    def install(self) -> None:
        environment("pmcp", "pmcp==3.0.0")

    def command(self, setup: Setup) -> list[str]:
        program = environment("pmcp", "pmcp==3.0.0") / "pmcp"
        http = ["--transport", "http", "--host", "127.0.0.1", "--port", str(setup.port)]
        return [str(program), "-q", "-c", setup.client_file(), *([] if setup.transport == "stdio" else http)]

    def env(self, setup: Setup) -> dict[str, str]:
        return {"HOME": str(setup.folder)}

    def calling(self, server: str, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "gateway.invoke", {"tool_id": f"{server}::{tool}", "arguments": arguments}

    async def reachable(self, client: Client, servers: Sequence[Server]) -> int:
        for server in servers:
            await client.call("gateway.connect_server", {"server_name": server.name})
        found: set[str] = set()
        for server in servers:
            asked = {"query": "", "limit": 100, "filters": {"server": server.name}}
            answer = json.loads(await client.call("gateway.catalog_search", asked))
            found |= {entry["tool_id"] for entry in answer["results"]}
        return len(found)
