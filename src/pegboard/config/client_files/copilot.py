"""VS Code and Copilot CLI, in which GitHub Copilot runs.

What only VS Code can ask for, ``${input:…}``, is passed on as variables.
Copilot CLI keeps the tools of a server in view where the entry says so (``deferTools``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, input_variable, shell_text


def _in_vscode(entry: Server, references: References) -> Server:
    asked = {input_variable(name): f"${{input:{name}}}" for name in references.inputs}
    return {"type": "stdio", **entry, **({"env": asked} if asked else {})}


VSCODE: Final = McpClient(
    name="vscode",
    title="VS Code",
    roots=(("servers",), ("mcp", "servers"), ("mcpServers",)),
    project=(".vscode/mcp.json",),
    user=("{apps}/Code/User/mcp.json", "{apps}/Code/User/settings.json", "{apps}/Code - Insiders/User/mcp.json"),
    ignored=frozenset({"dev", "gallery"}),
    entry=_in_vscode,
    project_folder="${workspaceFolder}",
    starts_elsewhere=True,
)


def _translate(_entry: Mapping[str, Any], found: Server) -> Server:
    return {**found, "type": "stdio"} if found.get("type") == "local" else found


def _in_copilot_cli(entry: Server, references: References) -> Server:
    passed = {"env": {name: f"${{{name}}}" for name in references.variables}} if references.variables else {}
    return {"type": "local", **entry, **passed, "tools": ["*"], "deferTools": "never"}


COPILOT_CLI: Final = McpClient(
    name="copilot-cli",
    title="Copilot CLI",
    project=(".github/mcp.json",),
    user=("{copilot}/mcp-config.json",),
    text=shell_text,
    unit="milliseconds",
    translate=_translate,
    entry=_in_copilot_cli,
)
