"""A tiny MCP server that costs next to nothing, standard library only: both eras, stdio or HTTP (it prints its port).

Its tool ``raw`` answers with whatever the caller says, so that clients can be held against odd servers:
``$ID`` and ``$TOKEN`` stand for the request's id and progress token.
"""

import argparse
import asyncio
import gzip
import json
import os
import socket
import sys
from typing import Any, ClassVar

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http"])
parser.add_argument("--handshake", action="store_true", help="know nothing of the 2026 era")
parser.add_argument("--sse", action="store_true", help="over HTTP: answer calls as a stream of events")
parser.add_argument("--cookie", action="store_true", help="over HTTP: set a cookie and demand it from then on")
UNKNOWN = {"status": 404, "body": "no such session"}
parser.add_argument("--unknown", type=json.loads, default=UNKNOWN, help="over HTTP: the answer in an unknown session")
parser.add_argument(
    "--redirect", action="append", default=[], help="over HTTP: VERB=PATH, where such requests are sent"
)
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()

REDIRECTS = dict(one.split("=", 1) for one in options.redirect)
META = "io.modelcontextprotocol/"
SCHEMA = {"type": "object", "properties": {}}
NAMES = ["echo", "raw", "progress", "slow", "cancelled", "hang_up", "forget", "seen", "opened", "pid"]
STAMP = {} if options.handshake else {"resultType": "complete", "_meta": {f"{META}serverInfo": {"name": "fast"}}}
cancelled: list[Any] = []
seen: list[dict[str, Any]] = []
asked: list[str] = []


def text(value: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}], **STAMP}


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request, or None where there is no such method."""
    params = request.get("params") or {}
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fast", "version": "1"},
            }
        case "server/discover" if not options.handshake:
            shape = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
            return {**STAMP, **shape, "cacheScope": "private"}
        case "tools/list":
            tools = [{"name": name, "inputSchema": SCHEMA} for name in NAMES]
            return {**STAMP, "tools": tools, "ttlMs": 0, "cacheScope": "private"}
        case "tools/call":
            return simple(params["name"], params.get("arguments") or {})
        case _:
            return None


def simple(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "echo":
            return text(arguments.get("text", arguments.get("message")))
        case "pid":
            return text(os.getpid())
        case "cancelled":
            return text(len(cancelled))
        case "opened":
            return text(Web.opened)
        case "seen":
            return text(json.dumps(seen[-2] if len(seen) > 1 else None))
        case _:
            return {**text(f"no tool {name}"), "isError": True}


def filled(template: str, request: dict[str, Any]) -> str:
    """Return a template with the request's id and progress token in it."""
    meta = request["params"].get("_meta") or {}
    for mark, value in (("$ID", request["id"]), ("$TOKEN", meta.get("progressToken"))):
        template = template.replace(f'"{mark}"', json.dumps(value)).replace(mark, str(value))
    return template


def reports(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the notifications that the tool ``progress`` sends."""
    token = (request["params"].get("_meta") or {}).get("progressToken")
    if token is None:
        return []
    steps = [{"progressToken": token, "progress": n, "total": 3, "message": f"step {n}"} for n in (1, 2, 3)]
    return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": step} for step in steps]


def final(request: dict[str, Any]) -> dict[str, Any]:
    result = text("done") if called(request) in {"progress", "hang_up", "forget"} else answer(request)
    if result is None:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def called(request: dict[str, Any]) -> str:
    return request["params"]["name"] if request.get("method") == "tools/call" else ""


def note(message: dict[str, Any]) -> bool:
    """Keep a message; return whether it is a request that waits for an answer."""
    if message.get("method") == "notifications/cancelled":
        cancelled.append(message["params"]["requestId"])
    if called(message):
        seen.append(message)
    return "id" in message and "method" in message and called(message) != "slow"


def over_stdio() -> None:
    write = sys.stdout.write
    for line in sys.stdin:
        message = json.loads(line)
        if not note(message):
            continue
        if called(message) == "raw":
            lines = [filled(entry, message) for entry in message["params"]["arguments"]["lines"]]
        else:
            sent = reports(message) if called(message) == "progress" else []
            lines = [json.dumps(entry) for entry in [*sent, final(message)]]
        write("".join(f"{entry}\n" for entry in lines))
        sys.stdout.flush()


class Web(asyncio.Protocol):
    """Speak just enough HTTP/1.1."""

    open: ClassVar[set["Web"]] = set()
    sessions: ClassVar[set[str]] = set()
    later: ClassVar[dict[str, str]] = {}
    opened = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.buffer = b""
        self.hanging = False
        self.open.add(self)
        Web.opened += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.open.discard(self)
        if self.hanging and not options.handshake:
            cancelled.append(None)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            verb, path, *_ = first.split()
            if (location := REDIRECTS.get(verb)) is not None:
                asked.append(f"{verb} {path}")
                self.reply(307, "text/plain", "", location=location.format(path=path))
            elif verb == "GET" and path == "/asked":
                self.reply(200, "application/json", json.dumps(asked))
            else:
                self.take(verb, headers, body)

    def take(self, verb: str, headers: dict[str, str], body: bytes) -> None:
        if "last-event-id" in headers:
            self.reply(200, "text/event-stream", self.later.pop(headers["last-event-id"]))
            return
        if verb != "POST":
            self.reply(200 if verb == "DELETE" else 405, "text/plain", "")
            return
        message = json.loads(body)
        if options.handshake and headers.get("mcp-protocol-version") == "2026-07-28":
            self.reply(400, "text/plain", "unknown version")
        elif message.get("method") == "initialize":
            self.sessions.add(name := f"s{len(self.sessions)}")
            cookie = {"set-cookie": "sticky=1"} if options.cookie else {}
            self.reply(200, "application/json", json.dumps(final(message)), **{"mcp-session-id": name}, **cookie)
        elif options.handshake and headers.get("mcp-session-id") not in self.sessions:
            said = options.unknown
            self.reply(said["status"], said.get("type", "text/plain"), filled(said["body"], message))
        elif options.cookie and headers.get("cookie") != "sticky=1":
            self.reply(403, "text/plain", "no cookie")
        else:
            if called(message):
                message["headers"] = {key: value for key, value in headers.items() if key.startswith("mcp-")}
            self.act(message)

    def act(self, message: dict[str, Any]) -> None:
        if not note(message):
            self.hanging = called(message) == "slow"
            if not self.hanging:
                self.reply(202, "text/plain", "")
            return
        name = called(message)
        if name == "raw":
            said = message["params"]["arguments"]
            body = filled(said["body"], message)
            if "later" in said:
                self.later["e1"] = filled(said["later"], message)
            self.reply(said.get("status", 200), said.get("type", "application/json"), body, **said.get("headers", {}))
            if said.get("close"):
                self.transport.close()
            return
        if name == "hang_up":
            for other in list(self.open - {self}):
                other.transport.abort() if message["params"]["arguments"].get("hard") else other.transport.close()
            # The loop closes the sockets before it gets to this.
            asyncio.get_running_loop().call_soon(self.reply, 200, "application/json", json.dumps(final(message)))
            return
        if name == "forget":
            self.sessions.clear()
        if name == "progress" or (options.sse and name):
            sent = reports(message) if name == "progress" else []
            self.stream([*sent, final(message)])
        else:
            self.reply(200, "application/json", json.dumps(final(message)))

    def stream(self, messages: list[dict[str, Any]]) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        events = [f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n" for message in messages]
        chunks = [f"{len(event):x}\r\n{event}\r\n" for event in events]
        self.transport.write((head + "".join(chunks) + "0\r\n\r\n").encode())

    def reply(self, status: int, kind: str, body: str, **headers: str) -> None:
        data = gzip.compress(body.encode()) if headers.get("content-encoding") == "gzip" else body.encode()
        fields = {"content-type": kind, "content-length": len(data), **headers}
        head = "".join(f"{key}: {value}\r\n" for key, value in fields.items())
        self.transport.write(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + data)


async def over_http() -> None:
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    server = await asyncio.get_running_loop().create_server(Web, sock=listener)
    print(listener.getsockname()[1], flush=True)
    await server.serve_forever()


if options.transport == "stdio":
    over_stdio()
else:
    asyncio.run(over_http())
