"""A server over stdio with one tool, `write`, which appends each call to a file as it was read."""

import json
import sys
from pathlib import Path

CALLS = Path(sys.argv[1])
PROPERTIES = {"path": {}, "text": {}}
TOOL = {"name": "write", "inputSchema": {"type": "object", "properties": PROPERTIES}}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "writing", "version": "1"},
}

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = HELLO
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            with CALLS.open("a") as file:
                file.write(line)
            result = {"content": [{"type": "text", "text": "written"}]}
        case unknown:
            if unknown and "id" in message:  # whoever asks in vain waits for seconds
                error = {"code": -32601, "message": "Method not found"}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
