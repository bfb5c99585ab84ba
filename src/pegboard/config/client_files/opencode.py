"""opencode: a server is `local` or `remote`, and `{env:NAME}` and `{file:PATH}` stand for values.

Its version 1 has the servers under `mcp`, version 2 under `mcp.servers`; a file is kept unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, from_milliseconds, limit_text, texts_in
from pegboard.config.documents.document import is_mapping
from pegboard.config.location import Machine

_VALUE: Final = re.compile(r"\{(env|file):([^{}]+)\}")
_BESIDE: Final = re.compile(r"\{file:(?![/~])")
_TYPES: Final = ("local", "remote")
_LIMIT: Final = "timeout"
"""In version 1 it says in milliseconds how long a start and its list of tools may take, in version 2 also a request."""


def _translate(_entry: Mapping[str, Any], found: Server) -> Server:
    limits = _limits(found.get(_LIMIT))
    found = {key: value for key, value in found.items() if key != _LIMIT} | limits
    if found.get("type") in _TYPES:
        del found["type"]
    return found


def _limits(limit: Any) -> dict[str, Any]:
    """Return our own limits for what opencode says."""
    if not is_mapping(limit):
        return {} if limit is None else {"start": limit_text(limit, "milliseconds")}
    ours = {"startup": "start", "request": "timeout"}
    return {ours[key]: limit_text(value, "milliseconds") for key, value in limit.items() if key in ours}


def _start_limit(value: Mapping[str, Any], _machine: Machine) -> float | None:
    """Return the limit of version 2 that is for every server."""
    every = value.get("mcp")
    limits = every.get(_LIMIT) if is_mapping(every) else None
    limit = from_milliseconds(limits.get("startup")) if is_mapping(limits) else None
    return limit if isinstance(limit, int | float) else None


def _with_own_references(text: str) -> str:
    """Return a text with our references in place of those of opencode."""
    return _VALUE.sub(lambda m: f"${{{m[2] if m[1] == 'env' else f'file:{m[2]}'}}}", text.replace("${", "$${"))


def _client_only_reason(entry: Mapping[str, Any], found: Server) -> str:
    if not (found.get("command") or found.get("url")):
        return "opencode reads the rest of it from elsewhere"
    if any(_BESIDE.search(text) for text in texts_in(entry)):
        return "it reads a file next to the configuration of opencode"
    login = [text for text in texts_in(entry.get("oauth")) if "{file:" in text]
    return "its login is read from a file, which only opencode supports" if login else ""


def _entry(entry: Server, references: References) -> Server:
    """Return the entry in the form of opencode, which has the command and its arguments in one list."""
    passed = {name: f"{{env:{name}}}" for name in references.variables}
    folder = {"cwd": entry["cwd"]} if "cwd" in entry else {}
    environment = {"environment": passed} if passed else {}
    return {"type": "local", "command": [entry["command"], *entry["args"]], **folder, **environment}


OPENCODE: Final = McpClient(
    name="opencode",
    title="opencode",
    roots=(("mcp", "servers"), ("mcp",)),
    project=("opencode.json", "opencode.jsonc"),
    user=("{opencode}/opencode.json", "{opencode}/opencode.jsonc"),
    text=_with_own_references,
    translate=_translate,
    client_only_reason=_client_only_reason,
    entry=_entry,
    start_limit=_start_limit,
)
