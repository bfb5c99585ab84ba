"""The MCP gateway in front of a board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.support.lazy_modules import lazy_names

if TYPE_CHECKING:
    from pegboard.gateway.http.mounts import Mount
    from pegboard.gateway.http.run import HOST, PORT, run_http, serving
    from pegboard.gateway.process.client_entry import announce, spawned
    from pegboard.gateway.stdio.run import run_stdio

__all__ = ["HOST", "PORT", "Mount", "announce", "run_http", "run_stdio", "serving", "spawned"]

# HTTP brings the SDK at once, stdio when it has to.
_LATE = {
    "http.mounts": "Mount",
    "http.run": "HOST PORT run_http serving",
    "process.client_entry": "announce spawned",
    "stdio.run": "run_stdio",
}
__getattr__ = lazy_names(__name__, _LATE)
