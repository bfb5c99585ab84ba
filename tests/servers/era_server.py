"""An MCP server over stdio whose era is what a file says at its start, and which notes what it is asked; no SDK.

The file has the era and a version: ``silent`` knows the handshake and does not answer what it does not know, ``polite``
refuses it, ``strict`` ends by it; ``modern`` knows only the era of 2026. A third file, if there is one, has the answer
to `tools/list` as it stands on the wire, a fourth what takes the place of members of its introduction, where "gone"
removes one.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE, LOG = Path(sys.argv[1]), Path(sys.argv[2])
era, version = STATE.read_text().split()
ECHO = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
INFO = {"name": "changing", "version": version}


def introduced(answer: dict[str, Any]) -> dict[str, Any]:
    other = json.loads(Path(sys.argv[4]).read_text()) if len(sys.argv) > 4 else {}
    answer |= other
    return {name: value for name, value in answer.items() if name not in other or other[name] != "gone"}


def page() -> dict[str, Any]:
    if len(sys.argv) > 3:
        return json.loads(Path(sys.argv[3]).read_text())
    return {"tools": [ECHO], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize" if era != "modern":
            able: dict[str, Any] = {"tools": {}}
            return introduced({"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": INFO})
        case "server/discover" if era == "modern":
            return introduced({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete",
                "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
            })  # fmt: skip
        case "tools/list":
            return page()
        case "tools/call":
            text = f"{era} {os.getpid()}"
            return {"content": [{"type": "text", "text": text}], "resultType": "complete"}
    return None


for line in sys.stdin:
    request = json.loads(line)
    with LOG.open("a") as log:
        log.write(request["method"] + "\n")
    if era == "strict" and request["method"] == "server/discover":
        sys.exit("expected initialize")
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    if result is not None or era != "silent":
        outcome = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}) + "\n")
        sys.stdout.flush()
