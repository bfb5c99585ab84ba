"""An MCP server of the handshake era over HTTP whose tools stand in a file; see ``listed_server.py``.

It prints its port. ``--sessions``: it has sessions, and none of an earlier process; ``--close``: it closes every
connection after an answer. ``LOG`` gets the method of each request.
"""

import argparse
import json
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("list", type=Path)
parser.add_argument("log", type=Path)
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--sessions", action="store_true")
parser.add_argument("--close", action="store_true")
options = parser.parse_args()
sessions: set[str] = set()


def answer(request: dict) -> dict:
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "listed", "version": "1"},
            }
        case "tools/list":
            listed = json.loads(options.list.read_text())
            schema = {"type": "object", "properties": {}}
            return {"tools": [{"name": name, "inputSchema": schema, **one} for name, one in listed.items()]}
        case _:
            return {"content": [{"type": "text", "text": f"ran {request['params']['name']}"}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if options.close else "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named so by the base class
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with options.log.open("a") as file:
            file.write(f"{request['method']}\n")
        session = self.headers.get("Mcp-Session-Id")
        if "id" not in request:
            self.reply(202, b"")
        elif request["method"] not in ("initialize", "tools/list", "tools/call"):
            self.say(request, error={"code": -32601, "message": "Method not found"})
        elif options.sessions and request["method"] != "initialize" and session not in sessions:
            self.reply(404, b"")
        else:
            self.say(request, result=answer(request))

    def say(self, request: dict, **what: object) -> None:
        headers = {"Content-Type": "application/json"}
        if options.sessions and request["method"] == "initialize":
            headers["Mcp-Session-Id"] = uuid.uuid4().hex
            sessions.add(headers["Mcp-Session-Id"])
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], **what}).encode(), headers)

    def do_GET(self) -> None:
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        self.reply(405, b"")

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
