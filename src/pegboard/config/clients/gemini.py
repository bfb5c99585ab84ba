"""Gemini CLI: its ``url`` is that of a server of the older kind, and ``$NAME`` refers to a variable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.clients.client import McpClient, References, Server, with_texts
from pegboard.config.documents.document import is_mapping

_SHELL: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def _translate(_entry: Mapping[str, Any], found: Server) -> Server:
    for key in ("env", "oauth"):
        if is_mapping(values := found.get(key)):
            found[key] = with_texts(values, lambda text: _SHELL.sub(lambda m: f"${{{m[1] or m[2]}}}", text))
    if "url" in found and "httpUrl" not in found:
        found.setdefault("type", "sse")
    return found


def _entry(entry: Server, references: References) -> Server:
    return {**entry, "env": {name: f"${name}" for name in references.variables}} if references.variables else entry


GEMINI: Final = McpClient(
    name="gemini",
    title="Gemini CLI",
    project=(".gemini/settings.json",),
    user=("~/.gemini/settings.json",),
    ignored=frozenset({"trust", "authProviderType"}),
    translate=_translate,
    entry=_entry,
)
