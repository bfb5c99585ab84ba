"""A server with one tool, which says "said", and writes its word first where a file is named: ``small.py [FILE]``."""

import json
import sys

WORD = {"type": "object", "properties": {"word": {"type": "string"}}}
TOOL = {"name": "say", "description": "Says it.", "inputSchema": WORD}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        about, version = {"name": "small", "version": "1"}, asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        if len(sys.argv) > 1:
            with open(sys.argv[1], "a") as file:  # noqa: PTH123 - pathlib takes longer than the rest
                file.write(asked["params"]["arguments"]["word"] + "\n")
        result = {"content": [{"type": "text", "text": "said"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
    sys.stdout.flush()
