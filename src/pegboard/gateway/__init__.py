"""The MCP gateway in front of a board (DESIGN §8)."""

from pegboard.gateway.announcing import announce, spawned
from pegboard.gateway.http import HOST, PORT, run_http, serving
from pegboard.gateway.stdio import run_stdio

__all__ = ["HOST", "PORT", "announce", "run_http", "run_stdio", "serving", "spawned"]
