"""VS Code: what only it can ask for, ``${input:…}``, is passed on as variables."""

from __future__ import annotations

from typing import Final

from pegboard.config.clients.client import Client, Needed, Server, input_variable


def _entry(entry: Server, needed: Needed) -> Server:
    asked = {input_variable(name): f"${{input:{name}}}" for name in needed.inputs}
    return {"type": "stdio", **entry, **({"env": asked} if asked else {})}


VSCODE: Final = Client(
    name="vscode",
    title="VS Code",
    roots=(("servers",), ("mcp", "servers"), ("mcpServers",)),
    project=(".vscode/mcp.json",),
    user=("{apps}/Code/User/mcp.json", "{apps}/Code/User/settings.json", "{apps}/Code - Insiders/User/mcp.json"),
    ignored=frozenset({"dev", "sandbox", "sandboxEnabled", "gallery"}),
    entry=_entry,
)
