"""Many MCP servers in one process, by their paths: ``python -m benchmarks.consoles.catalog_server FILE``.

The file has the tools of each server by its name. It prints its port, speaks just enough of both eras, and every call
is answered at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

STAMP = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "catalog"}}}


def answer(tools: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request, or None where there is no such method."""
    match request["method"]:
        case "initialize":
            about = {"name": "catalog", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        case "server/discover":
            shape = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
            return {**STAMP, **shape, "cacheScope": "private"}
        case "tools/list":
            return {**STAMP, "tools": tools, "ttlMs": 0, "cacheScope": "private"}
        case "tools/call":
            return {**STAMP, "content": [{"type": "text", "text": "done"}]}
        case _:
            return None


def answered(catalog: dict[str, list[dict[str, Any]]], path: str, body: bytes) -> tuple[str, bytes]:
    """Return status and body of an answer."""
    request = json.loads(body) if body else {}
    if "id" not in request:
        return "202 Accepted", b""
    result = answer(catalog[path.strip("/")], request)
    known = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
    return "200 OK", json.dumps({"jsonrpc": "2.0", "id": request["id"], **known}).encode()


async def serve(catalog: dict[str, list[dict[str, Any]]]) -> None:
    """Answer until the process is ended."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                first, *lines = head.split("\r\n")
                method, path, _ = first.split(" ")
                headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                status, found = answered(catalog, path, body) if method == "POST" else ("405 Method Not Allowed", b"")
                kind = "content-type: application/json\r\n" if found else ""
                writer.write(f"HTTP/1.1 {status}\r\n{kind}content-length: {len(found)}\r\n\r\n".encode() + found)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
