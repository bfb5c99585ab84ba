"""Versions, ``_meta`` keys and error codes of the Model Context Protocol, usable without importing the SDK.

The only place where they stand; ``tests/test_private_parts.py`` compares them with those of the SDK.
"""

from __future__ import annotations

from typing import Final

MODERN: Final = "2026-07-28"
"""The first version of the protocol without a handshake; versions are dates."""
HANDSHAKE_VERSIONS: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})

META_PREFIX: Final = "io.modelcontextprotocol/"
"""How the keys begin that the protocol reserves in ``_meta``."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

PEGBOARD_PREFIX: Final = "pegboard/"
"""How the keys begin that Pegboard reads in ``_meta``."""
SESSION_KEY: Final = "pegboard/session"
TURN_KEY: Final = "pegboard/turn"

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The extension that a client declares which draws the user interfaces of tools (MCP Apps)."""
UI_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The media type that such a client has to name among its ``mimeTypes``."""

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""Tasks as the 2026-07-28 era has them; before that they are a capability of their own."""
RELATED_TASK_KEY: Final = "io.modelcontextprotocol/related-task"
"""The ``_meta`` key that names the task to which a message belongs."""

ALWAYS_LOAD_KEY: Final = "anthropic/alwaysLoad"
"""The ``_meta`` key with which Claude Code keeps a tool in view that it would defer else."""

INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
URL_ELICITATION_REQUIRED: Final = -32042
"""The client is to open URLs and to call again; ``data`` lists them."""
