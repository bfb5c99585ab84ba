"""An empty gateway on the same SDK: a low-level server, a client per upstream, and nothing between.

``python pass_through.py CONFIG stdio|http PORT`` serves it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.installing import ROOT


class PassThrough(Adapter):
    name = "empty pass-through"
    note = "the SDK's server and client, no logic"

    def command(self, setup: Setup) -> list[str]:
        module = "benchmarks.gateways.pass_through"
        return [sys.executable, "-m", module, setup.client_file(), setup.transport, str(setup.port)]

    def env(self, setup: Setup) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT)}


async def serve(servers: dict[str, Any], transport: str, port: int) -> None:
    import mcp_types as types
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.server.lowlevel import Server

    owners: dict[str, tuple[Any, str]] = {}
    listed: list[types.Tool] = []

    async def on_list(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed, ttl_ms=0, cache_scope="private")

    async def on_call(ctx: Any, params: types.CallToolRequestParams) -> Any:
        client, name = owners[params.name]
        return await client.call_tool(name, params.arguments)

    server: Server[Any] = Server(
        "pass-through", on_list_tools=on_list, on_call_tool=on_call,
        get_tool_input_schema=lambda name: next((tool.input_schema for tool in listed if tool.name == name), None),
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        for key, entry in servers.items():
            parameters = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry.get("env"))
            client = await stack.enter_async_context(Client(parameters))
            for tool in (await client.list_tools()).tools:
                owners[f"{key}_{tool.name}"] = client, tool.name
                listed.append(tool.model_copy(update={"name": f"{key}_{tool.name}"}))
        if transport == "stdio":
            from mcp.server.stdio import stdio_server

            async with stdio_server() as (read, write):
                await server.run(read, write, server.create_initialization_options())
        else:
            import uvicorn

            app = server.streamable_http_app()
            await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text())["mcpServers"], sys.argv[2], int(sys.argv[3])))
