"""Gemini CLI: its ``url`` is that of a server of the older kind, and ``$NAME`` refers to a variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, References, Server, shell_text


def _translate(_entry: Mapping[str, Any], found: Server) -> Server:
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
    text=shell_text,
    unit="milliseconds",
    translate=_translate,
    entry=_entry,
)
