"""opencode: a server is `local` or `remote`, and `{env:NAME}` and `{file:PATH}` stand for values.

Its version 1 has the servers under `mcp`, version 2 under `mcp.servers`; a file is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.clients.client import McpClient, References, Server, texts_in, with_texts

_VALUE: Final = re.compile(r"\{(env|file):([^{}]+)\}")
_BESIDE: Final = re.compile(r"\{file:(?![/~])")
_TYPES: Final = ("local", "remote")
_OF_A_START: Final = "timeout"
"""It says how long the list of tools may take, not a call."""


def _translate(_entry: Mapping[str, Any], found: Server) -> Server:
    found = with_texts({key: value for key, value in found.items() if key != _OF_A_START}, _referring)
    if found.get("type") in _TYPES:
        del found["type"]
    return found


def _referring(text: str) -> str:
    """Return a text with our references in place of those of opencode."""
    return _VALUE.sub(lambda m: f"${{{m[2] if m[1] == 'env' else f'file:{m[2]}'}}}", text.replace("${", "$${"))


def _client_only_reason(entry: Mapping[str, Any], found: Server) -> str:
    if not (found.get("command") or found.get("url")):
        return "opencode has the rest of it from elsewhere"
    if any(_BESIDE.search(text) for text in texts_in(entry)):
        return "it reads a file that lies beside that of opencode"
    login = [text for text in texts_in(entry.get("oauth")) if "{file:" in text]
    return "its login is read from a file, which only opencode does" if login else ""


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
    translate=_translate,
    client_only_reason=_client_only_reason,
    entry=_entry,
)
