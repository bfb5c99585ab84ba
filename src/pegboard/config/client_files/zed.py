"""Zed: its extensions bring servers that nobody else knows how to start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server
from pegboard.config.documents.document import is_mapping


def _translate(entry: Mapping[str, Any], found: Server) -> Server:
    """Return a server without the mapping, ``command`` or ``source``, in which Zed has written the command."""
    for key in ("source", "command"):
        if is_mapping(nested := entry.get(key)):
            found.pop("command", None)
            parts = {("command" if name == "path" else name): value for name, value in nested.items() if name != "type"}
            found = {**parts, **found}
    return found


def _client_only_reason(_entry: Mapping[str, Any], found: Server) -> str:
    return "" if found.get("command") or found.get("url") else "an extension of Zed starts it, and only Zed knows how"


def _entry(entry: Server, _references: References) -> Server:
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
    translate=_translate,
    client_only_reason=_client_only_reason,
    entry=_entry,
)
