"""Bring MCP servers in as plugins, over stdio and HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_names

if TYPE_CHECKING:
    from pegboard.sources.mcp.source import McpSource

__all__ = ["McpSource"]

__getattr__ = lazy_names(__name__, {"source": "McpSource"})
