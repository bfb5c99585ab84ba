"""Claude Code: its servers stand in three scopes, and its limit for starts in its environment or settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, from_milliseconds, without_trust
from pegboard.config.documents import json_text
from pegboard.config.documents.document import UnreadableError, display_path, is_mapping, read_text
from pegboard.config.location import Machine

_START: Final = "MCP_TIMEOUT"
_SHORTEST: Final = 1000
"""Milliseconds: Claude Code ignores a shorter `timeout` of a server."""


def settings_files(machine: Machine, folder: Path, *, personal: bool) -> tuple[Path, ...]:
    """Return the files with settings that count in a folder, the nearest last; ``personal``: only the user's."""
    own = (machine.home / ".claude" / "settings.json",)
    names = () if personal else ("settings.json", "settings.local.json")
    return (*own, *(folder / ".claude" / name for name in names))


def settings_in(path: Path) -> Mapping[str, Any]:
    """Return what is in a file with settings; nothing where there is none that can be read."""
    file = display_path(path)
    try:
        return json_text.compose(read_text(path, file=file), file).value if path.is_file() else {}
    except (UnreadableError, OSError):
        return {}


def _translate(entry: Mapping[str, Any], found: Server) -> Server:
    limit = entry.get("timeout")
    if isinstance(limit, int | float) and not isinstance(limit, bool) and limit < _SHORTEST:
        found = {key: value for key, value in found.items() if key != "timeout"}
    return without_trust(entry, found)


def _start_limit(_value: Mapping[str, Any], machine: Machine) -> float | None:
    """Return the limit that the environment of Claude Code says, or its settings."""
    said = [text for text in _written_limits(machine) if text.isdecimal()]
    return from_milliseconds(int(said[-1])) if said else None


def _written_limits(machine: Machine) -> Iterator[str]:
    yield machine.env.get(_START, "")
    for path in settings_files(machine, machine.folder, personal=False):
        env = settings_in(path).get("env")
        if is_mapping(env):
            yield str(env.get(_START, ""))


def _entry(entry: Server, _references: References) -> Server:
    """Return the entry with the mark that keeps its tools in view: Claude Code defers all others."""
    return {**entry, "alwaysLoad": True}


CLAUDE_CODE: Final = McpClient(
    name="claude-code",
    title="Claude Code",
    project=(".mcp.json",),
    user=("~/.claude.json",),
    marker="projects",
    unit="milliseconds",
    translate=_translate,
    entry=_entry,
    start_limit=_start_limit,
)
