"""The MCP gateway in front of a board."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.gateway.http.mounts import Mount
    from pegboard.gateway.http.run import HOST, PORT, run_http, serving
    from pegboard.gateway.process.client_entry import announce, spawned
    from pegboard.gateway.stdio.run import run_stdio

__all__ = ["HOST", "PORT", "Mount", "announce", "run_http", "run_stdio", "serving", "spawned"]

_HOMES = {
    "HOST": "http.run", "PORT": "http.run", "Mount": "http.mounts", "announce": "process.client_entry",
    "run_http": "http.run", "run_stdio": "stdio.run", "serving": "http.run", "spawned": "process.client_entry",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Import what is asked for: HTTP brings the SDK at once, stdio when it has to."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pegboard.gateway' has no attribute {name!r}")
    return getattr(import_module(f"pegboard.gateway.{_HOMES[name]}"), name)
