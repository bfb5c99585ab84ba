"""A server of the handshake era that does what its argument says before it answers: Python code.

Its tool `do` runs code too, and answers with an error of it.
"""

import json
import sys
from typing import Any

TOOL = {"name": "do", "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}}}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}

exec(sys.argv[1])
for line in sys.stdin:
    message: dict[str, Any] = json.loads(line)
    match message.get("method"):
        case "initialize":
            result: dict[str, Any] = HELLO
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            try:
                exec(message["params"]["arguments"]["code"])
                result = {"content": [{"type": "text", "text": "done"}]}
            except Exception as error:
                result = {"content": [{"type": "text", "text": f"It failed: {error}"}], "isError": True}
        case unknown:
            if unknown and "id" in message:  # whoever asks in vain waits for seconds
                error = {"code": -32601, "message": "Method not found"}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
