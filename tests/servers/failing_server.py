"""A server of the handshake era that dies at its first call, and asks at the next ones without ever answering them.

It dies where the file that is its argument does not exist yet; it makes it.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

died = Path(sys.argv[1])
TOOL = {"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
QUESTION = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def out(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            out(id=message["id"], result=HELLO)
        case "tools/list":
            out(id=message["id"], result={"tools": [TOOL]})
        case "tools/call":
            if not died.exists():
                died.touch()
                os._exit(3)
            out(id="question", method="elicitation/create", params=QUESTION)
        case str() if "id" in message:
            out(id=message["id"], error={"code": -32601, "message": "no such method"})
        case _:
            pass
