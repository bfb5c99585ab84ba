"""The MCP clients that are known: their names and files, and how those that differ little write their servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Final

from pegboard.config.client_files.claude_code import CLAUDE_CODE
from pegboard.config.client_files.client import (
    ClientFilePlace,
    McpClient,
    References,
    Server,
    as_written,
    input_variable,
    shell_text,
    texts_in,
)
from pegboard.config.client_files.codex import CODEX
from pegboard.config.client_files.goose import GOOSE
from pegboard.config.client_files.opencode import OPENCODE
from pegboard.config.documents.document import is_mapping
from pegboard.config.location import Machine

_STORAGE: Final = "{apps}/Code/User/globalStorage"
_OF_USER: Final = "{{"
"""What begins a reference of LibreChat to the user who is asking."""


def _librechat_only(entry: Mapping[str, Any], _found: Server) -> str:
    refers = any(_OF_USER in text for text in texts_in(entry))
    return "it refers to the current user ({{…}}), which only LibreChat knows" if refers else ""


READ_ONLY_CLIENTS: Final = (
    McpClient(
        name="cline",
        title="Cline",
        user=(f"{_STORAGE}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
        unit="seconds",
        ignored=frozenset({"remoteConfigured"}),
    ),
    McpClient(
        name="roo",
        title="Roo Code",
        project=(".roo/mcp.json",),
        user=(f"{_STORAGE}/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
        unit="seconds",
        ignored=frozenset({"watchPaths"}),
    ),
    McpClient(
        name="kilo",
        title="Kilo Code",
        project=(".kilocode/mcp.json",),
        user=(f"{_STORAGE}/kilocode.kilo-code/settings/mcp_settings.json",),
        unit="seconds",
        ignored=frozenset({"watchPaths"}),
    ),
    McpClient(
        name="amazon-q",
        title="Amazon Q",
        project=(".amazonq/mcp.json",),
        user=("~/.aws/amazonq/mcp.json",),
        unit="milliseconds",
    ),
    McpClient(
        name="librechat",
        title="LibreChat",
        project=("librechat.yaml",),
        unit="milliseconds",
        ignored=frozenset({"chatMenu", "customUserVars", "iconPath", "requiresOAuth", "serverInstructions", "startup"}),
        renamed={"initTimeout": "start"},
        client_only_reason=_librechat_only,
    ),
)
"""Which of them it is counts for the unit of its limits, and for what only it can fill in."""


def _entry_for_vscode(entry: Server, references: References) -> Server:
    asked = {input_variable(name): f"${{input:{name}}}" for name in references.inputs}
    return {"type": "stdio", **entry, **({"env": asked} if asked else {})}


VSCODE: Final = McpClient(
    name="vscode",
    title="VS Code",
    roots=(("servers",), ("mcp", "servers"), ("mcpServers",)),
    project=(".vscode/mcp.json",),
    user=("{apps}/Code/User/mcp.json", "{apps}/Code/User/settings.json", "{apps}/Code - Insiders/User/mcp.json"),
    ignored=frozenset({"dev", "gallery"}),
    entry=_entry_for_vscode,
    project_folder="${workspaceFolder}",
    starts_elsewhere=True,
)


def _copilot_server(_entry: Mapping[str, Any], found: Server) -> Server:
    return {**found, "type": "stdio"} if found.get("type") == "local" else found


def _entry_for_copilot_cli(entry: Server, references: References) -> Server:
    passed = {"env": {name: f"${{{name}}}" for name in references.variables}} if references.variables else {}
    return {"type": "local", **entry, **passed, "tools": ["*"], "deferTools": "never"}


COPILOT_CLI: Final = McpClient(
    name="copilot-cli",
    title="Copilot CLI",
    project=(".github/mcp.json",),
    user=("{copilot}/mcp-config.json",),
    text=shell_text,
    unit="milliseconds",
    translate=_copilot_server,
    entry=_entry_for_copilot_cli,
)


def _zed_server(entry: Mapping[str, Any], found: Server) -> Server:
    """Return a server without the mapping, ``command`` or ``source``, in which Zed has written the command."""
    for key in ("source", "command"):
        if is_mapping(nested := entry.get(key)):
            found.pop("command", None)
            parts = {("command" if name == "path" else name): value for name, value in nested.items() if name != "type"}
            found = {**parts, **found}
    return found


def _zed_only(_zed_entry: Mapping[str, Any], found: Server) -> str:
    return "" if found.get("command") or found.get("url") else "an extension of Zed starts it, and only Zed knows how"


def _zed_entry(entry: Server, _references: References) -> Server:
    """Return the entry without a folder: Zed knows none, and starts servers in that of the project."""
    return {"source": "custom", **{key: value for key, value in entry.items() if key != "cwd"}, "env": {}}


ZED: Final = McpClient(
    name="zed",
    title="Zed",
    roots=(("context_servers",),),
    project=(".zed/settings.json",),
    user=("{zed}/settings.json",),
    marker="context_servers",
    ignored=frozenset({"source", "settings", "remote"}),
    unit="seconds",
    translate=_zed_server,
    client_only_reason=_zed_only,
    entry=_zed_entry,
)


def _gemini_server(_gemini_entry: Mapping[str, Any], found: Server) -> Server:
    if "url" in found and "httpUrl" not in found:
        found.setdefault("type", "sse")
    return found


def _gemini_entry(entry: Server, references: References) -> Server:
    return {**entry, "env": {name: f"${name}" for name in references.variables}} if references.variables else entry


GEMINI: Final = McpClient(
    name="gemini",
    title="Gemini CLI",
    project=(".gemini/settings.json",),
    user=("~/.gemini/settings.json",),
    ignored=frozenset({"trust", "authProviderType"}),
    text=shell_text,
    unit="milliseconds",
    translate=_gemini_server,
    entry=_gemini_entry,
)


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


def spots_of_client(client: McpClient, machine: Machine) -> Iterator[ClientFilePlace]:
    """Yield where a client's files may lie: the current folder first, then the home folder.

    Where the current folder is the home folder, a file of both is the user's own.
    """
    folder, users = machine.folder, [machine.user_path(pattern) for pattern in client.user]
    for name in client.project:
        if (path := folder / name).absolute() not in [user.absolute() for user in users]:
            yield ClientFilePlace(client=client, path=path, scope="project", folder=folder)
    for path in users:
        yield ClientFilePlace(client=client, path=path, scope="user")


def every_spot(machine: Machine) -> Iterator[ClientFilePlace]:
    """Yield where the files of all clients may lie: the current folder first, ours last in it."""
    found = [spot for client in (*CLIENTS.values(), PEGBOARD) for spot in spots_of_client(client, machine)]
    yield from (spot for spot in found if spot.scope == "project")
    yield from (spot for spot in found if spot.scope == "user")


def spot_of(path: Path, value: Mapping[str, Any], machine: Machine) -> ClientFilePlace:
    """Return whose file this is, by its name and folder, else by what is in it."""
    absolute = path.absolute()
    for client in (*_READ, PEGBOARD):
        for spot in spots_of_client(client, machine):
            if spot.path.absolute() == absolute:
                return ClientFilePlace(client=client, path=path, scope=spot.scope, folder=spot.folder)
        for name in client.project:
            parts = PurePath(name).parts
            if absolute.parts[-len(parts) :] == parts:
                folder = absolute.parents[len(parts) - 1]
                return ClientFilePlace(client=client, path=path, scope="project", folder=folder)
        for pattern in client.user:
            parts = PurePath(pattern).parts[1:]
            if len(parts) > 1 and absolute.parts[-len(parts) :] == parts:
                return ClientFilePlace(client=client, path=path, scope="user")
    return ClientFilePlace(client=_client_by_shape(path, value), path=path, scope="user")


def _client_by_shape(path: Path, value: Mapping[str, Any]) -> McpClient:
    if (named := _client_by_name(path)) is not None:
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


def _client_by_name(path: Path) -> McpClient | None:
    return next(
        (
            client
            for client in _READ
            if client.name == path.stem or path.name in {PurePath(name).name for name in _telling_files(client)}
        ),
        None,
    )


def _telling_files(client: McpClient) -> Iterator[str]:
    """Yield the files whose bare name is enough to know the client."""
    yield from (name for name in (*client.project, *client.user) if PurePath(name).name not in _SHARED_NAMES)


_SHARED_NAMES: Final = frozenset({"mcp.json", "settings.json", "config.toml", "config.yaml", "mcp_config.json"})
