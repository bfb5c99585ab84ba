"""Clients whose files are read, and into which Pegboard is not installed by a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.client_files.client import McpClient, Server, texts_in

_STORAGE: Final = "{apps}/Code/User/globalStorage"
_OF_USER: Final = "{{"
"""What begins a reference of LibreChat to the user who is asking."""


def _librechat_only(entry: Mapping[str, Any], _found: Server) -> str:
    refers = any(_OF_USER in text for text in texts_in(entry))
    return "it refers to the user who is asking ({{…}}), whom only LibreChat knows" if refers else ""


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
