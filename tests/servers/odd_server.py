"""An MCP server of the handshake era with everything that is large, deep or odd; standard library only."""

import json
import os
import sys
from typing import Any

MANY = 300
LARGE = 50_000_000
LONG = ("A tool whose name nobody would call short " * 5)[:200].strip()
DEPTH = 12


def deep(level: int) -> dict[str, Any]:
    """Return a schema of so many levels, each by reference."""
    if level == 0:
        return {"$ref": "#/$defs/leaf"}
    return {"type": "object", "properties": {"next": deep(level - 1)}, "required": ["next"]}


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
DEEP = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}},
    "required": ["tree"],
    "$defs": {"tree": deep(DEPTH), "leaf": {"type": "integer"}},
}
tools: list[dict[str, Any]] = [
    {"name": LONG, "description": "The one with the long name.", "inputSchema": OBJECT},
    {"name": "deep", "description": "Takes a deep tree.", "inputSchema": DEEP},
    {"name": "large", "description": "Gives much.", "inputSchema": OBJECT},
    {"name": "grow", "description": "Adds a tool.", "inputSchema": OBJECT},
    {"name": "pid", "description": "Says which process this is.", "inputSchema": OBJECT},
    *({"name": f"tool_{n}", "description": f"Number {n}.", "inputSchema": OBJECT} for n in range(MANY)),
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def called(name: str) -> str:
    match name:
        case "large":
            return "x" * LARGE
        case "pid":
            return str(os.getpid())
        case "grow":
            tools.append({"name": "grown", "description": "Came later.", "inputSchema": OBJECT})
            send({"method": "notifications/tools/list_changed"})
    return name


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer: dict[str, Any] = {"error": {"code": -32601, "message": "no such method"}}
    match request["method"]:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            able = {"tools": {"listChanged": True}}
            answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}}
        case "tools/list":
            answer = {"result": {"tools": tools}}
        case "tools/call":
            answer = {"result": {"content": [{"type": "text", "text": called(request["params"]["name"])}]}}
    send({"id": request["id"], **answer})
