"""The MCP clients that are known: their names, their files, and where their servers stand in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from pegboard.config.documents.document import is_mapping

Scope = Literal["project", "user"]
Root = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Describe a client.

    ``roots`` are the paths of keys under which its servers may stand, the usual one first. ``project``
    are its files relative to a project's folder, ``user`` those of a person: a leading ``~`` stands
    for the home folder, ``{apps}`` for where the system keeps the settings of applications.
    """

    name: str
    title: str
    roots: tuple[Root, ...] = (("mcpServers",),)
    project: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    marker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Hold one place where a client keeps its servers; ``folder`` is where it starts them, if known."""

    client: Client
    path: Path
    scope: Scope
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Hold what decides where files lie: the current folder, the home folder, the system, variables."""

    folder: Path = field(default_factory=Path.cwd)
    home: Path = field(default_factory=Path.home)
    system: str = sys.platform
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def applications(self) -> Path:
        """Return where this system keeps the settings of applications."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def configuration(self) -> Path:
        """Return the folder of our own files for this user."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.home / ".config") / "pegboard"

    def user_path(self, pattern: str) -> Path:
        """Return where a file of this user lies."""
        zed = self.applications / "Zed" if self.system == "win32" else self.configuration.parent / "zed"
        starts = {
            "~/": self.home,
            "{apps}/": self.applications,
            "{codex}/": Path(self.env.get("CODEX_HOME") or self.home / ".codex"),
            "{zed}/": zed,
        }
        start = next(start for start in starts if pattern.startswith(start))
        return starts[start] / pattern.removeprefix(start)


PEGBOARD: Final = Client(name="pegboard", title="Pegboard", roots=(("servers",),), project=("pegboard.yaml",))
ANY: Final = Client(name="mcp", title="MCP client", roots=(("mcpServers",), ("servers",), ("mcp", "servers")))
VSCODE: Final = Client(
    name="vscode",
    title="VS Code",
    roots=(("servers",), ("mcp", "servers"), ("mcpServers",)),
    project=(".vscode/mcp.json",),
    user=("{apps}/Code/User/mcp.json", "{apps}/Code/User/settings.json", "{apps}/Code - Insiders/User/mcp.json"),
)
CODEX: Final = Client(
    name="codex",
    title="Codex",
    roots=(("mcp_servers",),),
    project=(".codex/config.toml",),
    user=("{codex}/config.toml",),
    marker="mcp_servers",
)
ZED: Final = Client(
    name="zed",
    title="Zed",
    roots=(("context_servers",),),
    project=(".zed/settings.json",),
    user=("{zed}/settings.json",),
    marker="context_servers",
)
CLAUDE_CODE: Final = Client(
    name="claude-code",
    title="Claude Code",
    project=(".mcp.json",),
    user=("~/.claude.json",),
    marker="projects",
)
GEMINI: Final = Client(
    name="gemini", title="Gemini CLI", project=(".gemini/settings.json",), user=("~/.gemini/settings.json",)
)
CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        CLAUDE_CODE,
        Client(name="claude-desktop", title="Claude Desktop", user=("{apps}/Claude/claude_desktop_config.json",)),
        Client(name="cursor", title="Cursor", project=(".cursor/mcp.json",), user=("~/.cursor/mcp.json",)),
        VSCODE,
        CODEX,
        GEMINI,
        ZED,
        Client(name="windsurf", title="Windsurf", user=("~/.codeium/windsurf/mcp_config.json",)),
    )
}
"""The clients into whose files Pegboard can be installed, by name."""


def spots(client: Client, machine: Machine) -> Iterator[Spot]:
    """Yield where a client's files may lie: the current folder first, then the home folder."""
    for name in client.project:
        folder = machine.folder
        yield Spot(client=client, path=folder / name, scope="project", folder=folder)
    for pattern in client.user:
        yield Spot(client=client, path=machine.user_path(pattern), scope="user")


def every_spot(machine: Machine) -> Iterator[Spot]:
    """Yield where the files of all clients may lie: the current folder first, ours last in it."""
    found = [spot for client in (*CLIENTS.values(), PEGBOARD) for spot in spots(client, machine)]
    yield from (spot for spot in found if spot.scope == "project")
    yield from (spot for spot in found if spot.scope == "user")


def spot_of(path: Path, value: Mapping[str, Any], machine: Machine) -> Spot:
    """Return whose file this is, by its name and folder, else by what stands in it."""
    absolute = path.absolute()
    for client in (*CLIENTS.values(), PEGBOARD):
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


def _by_shape(path: Path, value: Mapping[str, Any]) -> Client:
    if path.suffix.lower() in (".yaml", ".yml"):
        return PEGBOARD if "mcpServers" not in value else ANY
    for client in CLIENTS.values():
        if client.name == path.stem or path.name in {PurePath(name).name for name in _telling(client)}:
            return client
        if client.marker and is_mapping(value.get(client.marker)):
            return client
    if "mcpServers" not in value and is_mapping(value.get("servers")):
        return PEGBOARD if "agents" in value or "toolkits" in value else VSCODE
    return ANY


def _telling(client: Client) -> Iterator[str]:
    """Yield the files whose bare name is enough to know the client."""
    yield from (name for name in (*client.project, *client.user) if PurePath(name).name not in _SHARED_NAMES)


_SHARED_NAMES: Final = frozenset({"mcp.json", "settings.json", "config.toml", "mcp_config.json"})
