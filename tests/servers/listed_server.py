"""An MCP server of the handshake era whose tools stand in a file: it lists what is there now.

The file maps the names of tools to whether they say that they only read, or to what else their entry has.
The tool ``announce`` says that the list has changed; a call of ``wait`` is answered once ``go`` is called; every other
one answers with its own name. With ``--pages`` every resource below ``ui://`` is a page. A file beside it, with the
ending ``.says``, has what the server says of itself when it starts. One with the ending ``.log``, where it is there,
gets a line for each request. ``PROMPT``, where the environment has it, is the name of a prompt and of its argument.
"""

import json
import os
import sys
from pathlib import Path

LIST = Path(sys.argv[1])
SAYS = LIST.with_suffix(".says")
LOG = LIST.with_suffix(".log")
PROMPT = os.environ.get("PROMPT")
PAGES = "--pages" in sys.argv
LATER: dict = {}
"""What stands for the answer of a call that waits."""
waiting: list[int | str] = []
PAGE = {"mimeType": "text/html;profile=mcp-app", "text": "<canvas></canvas>"}


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ran(name: str) -> dict:
    return {"content": [{"type": "text", "text": f"ran {name}"}]}


def answer(request: dict) -> dict | None:  # noqa: C901 - one case per method
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {
                    "tools": {"listChanged": True},
                    **({"resources": {}} if PAGES else {}),
                    **({"resources": {}, "prompts": {}} if PROMPT else {}),
                },
                "serverInfo": {"name": "listed", "version": "1"},
                **({"instructions": SAYS.read_text()} if SAYS.exists() else {}),
            }
        case "tools/list":
            listed = json.loads(LIST.read_text()).items()
            schema = {"type": "object", "properties": {}}
            more = {
                name: one if isinstance(one, dict) else {"annotations": {"readOnlyHint": one}} for name, one in listed
            }
            return {"tools": [{"name": name, "inputSchema": schema, **more[name]} for name in more]}
        case "tools/call":
            name = request["params"]["name"]
            if name == "announce":
                send(method="notifications/tools/list_changed")
            if name == "wait":
                waiting.append(request["id"])
                return LATER
            while name == "go" and waiting:
                send(id=waiting.pop(0), result=ran("wait"))
            return ran(name)
        case "prompts/list" if PROMPT:
            return {"prompts": [{"name": PROMPT, "arguments": [{"name": PROMPT}]}]}
        case "prompts/get":
            given = json.dumps(request["params"])
            return {"messages": [{"role": "user", "content": {"type": "text", "text": given}}]}
        case "resources/templates/list" if PROMPT:
            return {"resourceTemplates": [{"uriTemplate": f"db://{PROMPT}/{{table}}", "name": "tables"}]}
        case "resources/list" if PROMPT:
            return {"resources": [{"uri": f"db://{PROMPT}", "name": PROMPT}]}
        case "resources/read" if PROMPT:
            return {"contents": [{"uri": request["params"]["uri"], "text": "a table"}]}
        case "resources/list":
            return {"resources": []}
        case "resources/read" if request["params"]["uri"].startswith("ui://"):
            return {"contents": [{"uri": request["params"]["uri"], **PAGE}]}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if LOG.exists():
        with LOG.open("a") as file:
            file.write(json.dumps(message) + "\n")
    if (result := answer(message)) is None:
        send(id=message["id"], error={"code": -32601, "message": "Method not found"})
    elif result is not LATER:
        send(id=message["id"], result=result)
