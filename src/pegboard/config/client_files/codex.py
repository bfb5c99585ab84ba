"""Codex: it names variables instead of referring to them, and refers to none in text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, limit_text, literal_text
from pegboard.config.documents.document import is_list, is_mapping

_BEARER: Final = "bearer_token_env_var"
_HEADERS: Final = "env_http_headers"
_PASSED: Final = "env_vars"
_START_MS: Final = "startup_timeout_ms"
_RESOURCE: Final = "oauth_resource"


def _translate(entry: Mapping[str, Any], found: Server) -> Server:
    if (scopes := entry.get("scopes")) is not None and (oauth := _pairs(found.get("oauth"))) is not None:
        found["oauth"] = {**oauth, "scopes": scopes}
    if "start" not in found and (limit := entry.get(_START_MS)) is not None:
        found["start"] = limit_text(limit, "milliseconds")
    headers, env, referred = (_pairs(part) for part in (found.get("headers"), found.get("env"), entry.get(_HEADERS)))
    if headers is None or env is None or referred is None:
        return found
    headers |= {name: f"${{{variable}}}" for name, variable in referred.items()}
    if isinstance(variable := entry.get(_BEARER), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    passed = entry.get(_PASSED)
    names = [name for name in passed if isinstance(name, str)] if is_list(passed) else []
    env = {**{name: f"${{{name}:-}}" for name in names}, **env}
    return {**found, **({"headers": headers} if headers else {}), **({"env": env} if env else {})}


def _pairs(value: Any) -> dict[str, Any] | None:
    """Return a mapping of one's own, an empty one for nothing, or None for what is no mapping."""
    return {} if value is None else dict(value) if is_mapping(value) else None


def _client_only_reason(entry: Mapping[str, Any], _found: Server) -> str:
    """Return why a login stays with Codex: ours is always for the address of the server."""
    other = entry.get(_RESOURCE) not in (None, "", entry.get("url"))
    return (
        f"its login is for another address than its own ({_RESOURCE}), which Pegboard does not support" if other else ""
    )


def _entry(entry: Server, references: References) -> Server:
    return {**entry, _PASSED: list(references.variables)} if references.variables else entry


CODEX: Final = McpClient(
    name="codex",
    title="Codex",
    roots=(("mcp_servers",),),
    project=(".codex/config.toml",),
    user=("{codex}/config.toml",),
    marker="mcp_servers",
    ignored=frozenset(
        {
            _BEARER,
            _HEADERS,
            _PASSED,
            _START_MS,
            "required",
            "scopes",
            "tools",
            _RESOURCE,
        }
    ),
    renamed={
        "http_headers": "headers",
        "tool_timeout_sec": "timeout",
        "startup_timeout_sec": "start",
        "enabled_tools": "enabledTools",
        "disabled_tools": "disabledTools",
    },
    text=literal_text,
    unit="seconds",
    translate=_translate,
    client_only_reason=_client_only_reason,
    entry=_entry,
)
