"""Goose: its servers are extensions of some types, and `env_keys` names secrets that Goose keeps itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, literal_text, shell_text, with_texts
from pegboard.config.documents.document import is_list, is_mapping

_SERVERS: Final = ("stdio", "streamable_http", "sse")
_KEYS: Final = "env_keys"
_PATIENCE: Final = 300
"""Seconds that Goose waits for a call: what it writes itself."""


def _translate(entry: Mapping[str, Any], found: Server) -> Server:
    """Return a server with what Goose keeps of its environment as variables; only headers refer to any."""
    if found.get("type") == "streamable_http":
        found["type"] = "http"
    if found.get("enabledTools") == []:  # all of them
        del found["enabledTools"]
    keys, env = entry.get(_KEYS), found.get("env")
    names = [name for name in keys if isinstance(name, str)] if is_list(keys) else []
    if names and (env is None or is_mapping(env)):
        found["env"] = {**{name: f"${{{name}:-}}" for name in names}, **(env or {})}
    headers = with_texts(entry.get("headers"), shell_text)
    return found if headers is None else {**found, "headers": headers}


def _client_only_reason(entry: Mapping[str, Any], _found: Server) -> str:
    return "" if entry.get("type") in _SERVERS else "it is built into Goose"


def _entry(entry: Server, references: References) -> Server:
    return {
        "enabled": True,
        "type": "stdio",
        "name": "pegboard",
        "description": "The tools of all other extensions",
        "cmd": entry["command"],
        "args": entry["args"],
        "envs": {},
        _KEYS: list(references.variables),
        "timeout": _PATIENCE,
    }


GOOSE: Final = McpClient(
    name="goose",
    title="Goose",
    roots=(("extensions",),),
    user=("{goose}/config.yaml",),
    marker="extensions",
    ignored=frozenset({"name", "display_name", "description", "bundled", _KEYS}),
    renamed={"cmd": "command", "uri": "url", "envs": "env", "available_tools": "enabledTools"},
    text=literal_text,
    unit="seconds",
    translate=_translate,
    client_only_reason=_client_only_reason,
    entry=_entry,
)
