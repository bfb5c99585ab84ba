"""An MCP server of the handshake era that answers with more than anyone can take; standard library only.

Over stdio, HTTP or the older SSE (it prints its port). The name of a tool says how its answer comes.
"""

import argparse
import asyncio
import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http", "sse"])
options = parser.parse_args()

BLOCK = b"x" * 65536
ZEROS = bytes(1024 * 1024)
NAMES = ["echo", "gzip", "chunked", "event"]  # others can be called as well


def result(request: dict[str, Any], text: str) -> bytes:
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": text}]}}
    return json.dumps(answer).encode()


def opened(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            info = {"name": "flood", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case _:
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]}


def first_answer(request: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": opened(request)}).encode()


# -- stdio ---------------------------------------------------------------------------------------------


def printed(request: dict[str, Any]) -> Iterator[bytes]:
    arguments = request["params"].get("arguments") or {}
    named = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request["id"]
    many = arguments.get("size", 0) // len(BLOCK)
    match request["params"]["name"]:
        case "line":
            while True:
                yield BLOCK
        case "named_line":
            yield named
            while True:
                yield BLOCK
        case "named_long_line":
            yield named
            yield from (BLOCK for _ in range(many))
            yield b'"}]}}\n'
        case "notification":
            yield b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"'
            yield from (BLOCK for _ in range(many))
            yield b'"}}\n' + result(request, "done") + b"\n"
        case _:
            yield result(request, str(arguments.get("text"))) + b"\n"


def over_stdio() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] != "tools/call":
            sys.stdout.buffer.write(first_answer(request) + b"\n")
        else:
            for part in printed(request):
                sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


# -- HTTP ----------------------------------------------------------------------------------------------


def inflating(count: int, wbits: int, start: bytes = b"") -> Iterator[bytes]:
    """Yield so many MiB of zeros, compressed."""
    packer = zlib.compressobj(1, wbits=wbits)
    yield packer.compress(start)
    for _ in range(count):
        yield packer.compress(ZEROS)
    yield packer.flush()


def endless() -> Iterator[bytes]:
    while True:
        yield BLOCK


def small_events(request: dict[str, Any], size: int) -> Iterator[bytes]:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}}
    event = f"event: message\ndata: {json.dumps(note)}\n\n".encode()
    for _ in range(size // len(event)):
        yield event
    yield b"data: " + result(request, "done") + b"\n\n"


def comments(request: dict[str, Any], size: int) -> Iterator[bytes]:
    for _ in range(size // 1000):
        yield b": " + b"x" * 996 + b"\n\n"
    yield b"data: " + result(request, "done") + b"\n\n"


def body(request: dict[str, Any]) -> tuple[dict[str, str], Iterator[bytes]]:
    """Return headers and body of the answer to a call."""
    arguments = request["params"].get("arguments") or {}
    size = arguments.get("size", 0)
    plain, stream = {"content-type": "application/json"}, {"content-type": "text/event-stream"}
    match request["params"]["name"]:
        case "gzip" | "deflate" | "raw_deflate" as name:
            encoding, wbits = {"gzip": ("gzip", 31), "deflate": ("deflate", 15)}.get(name, ("deflate", -15))
            return {**plain, "content-encoding": encoding}, inflating(300, wbits)
        case "refused":
            return {**plain, "content-encoding": "gzip", ":status": "500"}, inflating(300, 31)
        case "refused_text":
            return {"content-type": "text/plain", ":status": "500"}, endless()
        case "chunked" | "unframed" as name:
            return {**plain, **({"connection": "close"} if name == "unframed" else {})}, endless()
        case "event":
            return stream, endless()
        case "data":
            return stream, (b"data: x\n" * 8192 for _ in endless())
        case "event_gzip":
            return {**stream, "content-encoding": "gzip"}, inflating(300, 31, b"data: ")
        case "events" | "comments" as name:
            return stream, (small_events if name == "events" else comments)(request, size)
        case "large":
            return plain, iter([result(request, "x" * size)])
        case _:
            return plain, iter([result(request, str(arguments.get("text")))])


async def answer(writer: asyncio.StreamWriter, headers: dict[str, str], parts: Iterator[bytes]) -> None:
    """Write a response; one without length is chunked, unless the end of the connection is its end."""
    status = headers.pop(":status", "200")
    chunked = headers.get("connection") != "close"
    fields = {**headers, **({"transfer-encoding": "chunked"} if chunked else {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode())
    for part in parts:
        if part:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-long: ")
    while True:
        writer.write(BLOCK)
        await writer.drain()


streams: list[asyncio.StreamWriter] = []


async def respond(verb: str, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    if verb == "GET" and options.transport == "sse":
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /post\n\n")
        streams[:] = [writer]
    elif verb != "POST":
        await answer(writer, {":status": "405"}, iter([]))
    elif "id" not in message:
        await answer(writer, {":status": "202"}, iter([]))
    elif options.transport == "sse":
        await answer(writer, {":status": "202"}, iter([]))
        await post(message)
    elif message["method"] == "tools/call" and message["params"]["name"] == "head":
        await endless_head(writer)
    elif message["method"] == "tools/call":
        await answer(writer, *body(message))
    else:
        await answer(writer, {"content-type": "application/json"}, iter([first_answer(message)]))


async def post(message: dict[str, Any]) -> None:
    """Answer on the stream of the older transport."""
    stream = streams[0]
    if message["method"] != "tools/call":
        stream.write(b"data: " + first_answer(message) + b"\n\n")
    elif message["params"]["name"] == "event":
        stream.write(b"data: ")
        for part in endless():
            stream.write(part)
            await stream.drain()
    else:
        stream.write(b"data: " + b"".join(body(message)[1]) + b"\n\n")


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            length = 0
            while (field := (await reader.readline()).strip()) != b"":
                name, _, value = field.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            message = json.loads(await reader.readexactly(length)) if length else {}
            await respond(line.split()[0].decode(), message, writer)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def over_http() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if options.transport == "stdio":
    over_stdio()
else:
    asyncio.run(over_http())
