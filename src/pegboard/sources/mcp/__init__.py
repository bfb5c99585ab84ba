"""Bring MCP servers in as plugins, over stdio and HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard.sources.mcp.source import McpSource

__all__ = ["McpSource"]


def __getattr__(name: str) -> Any:
    if name == "McpSource":
        from pegboard.sources.mcp.source import McpSource

        return McpSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
