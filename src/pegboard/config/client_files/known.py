"""The MCP clients that are known: their names, their files, and where their servers stand in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final

from pegboard.config.client_files.claude_code import CLAUDE_CODE
from pegboard.config.client_files.client import McpClient, Spot, as_written
from pegboard.config.client_files.codex import CODEX
from pegboard.config.client_files.copilot import COPILOT_CLI, VSCODE
from pegboard.config.client_files.gemini import GEMINI
from pegboard.config.client_files.goose import GOOSE
from pegboard.config.client_files.opencode import OPENCODE
from pegboard.config.client_files.read_only_clients import READ_ONLY_CLIENTS
from pegboard.config.client_files.zed import ZED
from pegboard.config.documents.document import is_mapping
from pegboard.config.location import Machine

PEGBOARD: Final = McpClient(
    name="pegboard", title="Pegboard", roots=(("servers",),), project=("pegboard.yaml",), translate=as_written
)
ANY: Final = McpClient(name="mcp", title="MCP client", roots=(("mcpServers",), ("servers",), ("mcp", "servers")))


CLIENTS: Final[Mapping[str, McpClient]] = {
    client.name: client
    for client in (
        CLAUDE_CODE,
        McpClient(name="claude-desktop", title="Claude Desktop", user=("{apps}/Claude/claude_desktop_config.json",)),
        McpClient(
            name="cursor",
            title="Cursor",
            project=(".cursor/mcp.json",),
            user=("~/.cursor/mcp.json",),
            project_folder="${workspaceFolder}",
        ),
        VSCODE,
        COPILOT_CLI,
        CODEX,
        GEMINI,
        ZED,
        McpClient(name="windsurf", title="Windsurf", user=("~/.codeium/windsurf/mcp_config.json",)),
        McpClient(name="junie", title="Junie", project=(".junie/mcp/mcp.json",), user=("~/.junie/mcp/mcp.json",)),
        OPENCODE,
        GOOSE,
    )
}
"""The clients into whose files Pegboard can be installed, by name."""
_READ: Final = (*CLIENTS.values(), *READ_ONLY_CLIENTS)


def spots(client: McpClient, machine: Machine) -> Iterator[Spot]:
    """Yield where a client's files may lie: the current folder first, then the home folder.

    Where the current folder is the home folder, a file of both is the user's own.
    """
    folder, users = machine.folder, [machine.user_path(pattern) for pattern in client.user]
    for name in client.project:
        if (path := folder / name).absolute() not in [user.absolute() for user in users]:
            yield Spot(client=client, path=path, scope="project", folder=folder)
    for path in users:
        yield Spot(client=client, path=path, scope="user")


def every_spot(machine: Machine) -> Iterator[Spot]:
    """Yield where the files of all clients may lie: the current folder first, ours last in it."""
    found = [spot for client in (*CLIENTS.values(), PEGBOARD) for spot in spots(client, machine)]
    yield from (spot for spot in found if spot.scope == "project")
    yield from (spot for spot in found if spot.scope == "user")


def spot_of(path: Path, value: Mapping[str, Any], machine: Machine) -> Spot:
    """Return whose file this is, by its name and folder, else by what stands in it."""
    absolute = path.absolute()
    for client in (*_READ, PEGBOARD):
        for spot in spots(client, machine):
            if spot.path.absolute() == absolute:
                return Spot(client=client, path=path, scope=spot.scope, folder=spot.folder)
        for name in client.project:
            parts = PurePath(name).parts
            if absolute.parts[-len(parts) :] == parts:
                folder = absolute.parents[len(parts) - 1]
                return Spot(client=client, path=path, scope="project", folder=folder)
        for pattern in client.user:
            parts = PurePath(pattern).parts[1:]
            if len(parts) > 1 and absolute.parts[-len(parts) :] == parts:
                return Spot(client=client, path=path, scope="user")
    return Spot(client=_by_shape(path, value), path=path, scope="user")


def _by_shape(path: Path, value: Mapping[str, Any]) -> McpClient:
    if (named := _by_name(path)) is not None:
        return named
    if path.suffix.lower() in (".yaml", ".yml"):
        if is_mapping(value.get(GOOSE.marker)):
            return GOOSE
        return PEGBOARD if "mcpServers" not in value else ANY
    for client in CLIENTS.values():
        if client.marker and is_mapping(value.get(client.marker)):
            return client
    if "mcpServers" not in value and is_mapping(value.get("servers")):
        return PEGBOARD if "agents" in value or "toolkits" in value else VSCODE
    return ANY


def _by_name(path: Path) -> McpClient | None:
    return next(
        (
            client
            for client in _READ
            if client.name == path.stem or path.name in {PurePath(name).name for name in _telling(client)}
        ),
        None,
    )


def _telling(client: McpClient) -> Iterator[str]:
    """Yield the files whose bare name is enough to know the client."""
    yield from (name for name in (*client.project, *client.user) if PurePath(name).name not in _SHARED_NAMES)


_SHARED_NAMES: Final = frozenset({"mcp.json", "settings.json", "config.toml", "config.yaml", "mcp_config.json"})
