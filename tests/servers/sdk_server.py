"""A small MCP server made with the SDK: both eras, over stdio or HTTP (it prints its port first)."""

import argparse
import asyncio
import os
import socket
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, PlainTextResponse, Response

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http", "sse"])
parser.add_argument("--handshake", action="store_true", help="over HTTP: know nothing of the 2026 era")
parser.add_argument("--token", help="demand this bearer token")
parser.add_argument("--redirect", type=int, default=0, help="over HTTP: redirect with this status to a slash behind")
parser.add_argument("--location", default="{path}/", help="where it redirects to; {path} and {name} stand for its own")
parser.add_argument("--path", default="/mcp", help="over HTTP of the newer transport: answer here")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
PIXEL = "iVBORw0KGgo="
names = ["echo", "media", "fail", "progress", "grow", "slow", "pid", "large", "break", "cancelled"]
bus = InMemorySubscriptionBus()
cancelled = 0


def tools() -> list[types.Tool]:
    plain = [types.Tool(name=name, description=f"The tool {name}.", input_schema=OBJECT) for name in names]
    region = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    return [
        *plain,
        types.Tool(name="add", title="Add", input_schema=ADD, output_schema=SUM),
        types.Tool(name="regional", input_schema=region),
    ]


async def on_list(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=tools(), ttl_ms=1000, cache_scope="private")


def said(text: object, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=str(text))], is_error=is_error)


def media() -> types.CallToolResult:
    return types.CallToolResult(
        content=[
            types.ImageContent(data=PIXEL, mime_type="image/png"),
            types.AudioContent(data=PIXEL, mime_type="audio/wav"),
            types.EmbeddedResource(resource=types.TextResourceContents(uri="note://1", text="a note")),
            types.ResourceLink(name="note", uri="note://2"),
        ]
    )


async def on_call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: C901
    global cancelled
    arguments = params.arguments or {}
    match params.name:
        case "echo" | "regional":
            return said(arguments.get("text") or arguments.get("region"))
        case "add":
            total = arguments["a"] + arguments["b"]
            return types.CallToolResult(
                content=[types.TextContent(text=str(total))], structured_content={"sum": total}, _meta={"unit": "one"}
            )
        case "media":
            return media()
        case "fail":
            return said("the tool failed", is_error=True)
        case "progress":
            for step in (1, 2, 3):
                await ctx.session.report_progress(step, 3, f"step {step}")
            return said("done")
        case "grow":
            names.append("grown")
            await bus.publish(ToolsListChanged())
            if options.handshake:
                await ctx.session.send_tool_list_changed()
            return said("grown")
        case "slow":
            try:
                await asyncio.Event().wait()
            finally:
                cancelled += 1
        case "cancelled":
            return said(cancelled)
        case "large":
            return said("x" * arguments["size"])
        case "break":
            os._exit(3)
        case "pid":
            return said(os.getpid())
    raise MCPError(-32602, f"unknown tool {params.name}")


server: Server[Any] = Server(
    "sdk",
    version="1",
    description="A server for tests",
    instructions="Use it well.",
    on_list_tools=on_list,
    on_call_tool=on_call,
    on_subscriptions_listen=None if options.handshake else ListenHandler(bus),
    get_tool_input_schema=lambda name: next((tool.input_schema for tool in tools() if tool.name == name), None),
)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def guarded(app: Any) -> Any:
    """Demand the token, and know nothing of the new era where that is asked for."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        if scope["type"] == "http" and scope["path"] == "/teapot":
            await PlainTextResponse("short and stout", 418)(scope, receive, send)
        elif (
            scope["type"] == "http"
            and options.token
            and headers.get(b"authorization") != f"Bearer {options.token}".encode()
        ):
            await PlainTextResponse("who are you?", 401)(scope, receive, send)
        elif options.handshake and headers.get(b"mcp-protocol-version", b"").decode() in MODERN_PROTOCOL_VERSIONS:
            await PlainTextResponse("unknown version", 400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guard


def redirecting(app: Any) -> Any:
    """Redirect what comes without a slash behind its path; `/asked` says what came where."""
    asked: list[list[str]] = []

    async def redirect(scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if path == "/asked":
            await JSONResponse(asked)(scope, receive, send)
            return
        if scope["type"] == "http":
            asked.append([scope["method"], path])
        if scope["type"] == "http" and options.redirect and not path.endswith("/"):
            location = options.location.format(path=path, name=path.rpartition("/")[2])
            if query := scope["query_string"].decode():
                location += f"?{query}"
            await Response(status_code=options.redirect, headers={"location": location})(scope, receive, send)
            return
        await app({**scope, "path": path[:-1]} if path in {"/mcp/", "/sse/"} else scope, receive, send)

    return redirect


def over_http() -> None:
    if options.transport == "sse":
        from mcp.server.mcpserver import MCPServer

        old = MCPServer("old")
        old.add_tool(lambda text: text, name="echo", description="Say it again.")
        app: Any = old.sse_app(message_path="/messages")
    else:
        app = server.streamable_http_app(streamable_http_path=options.path)
    # asyncio turns Nagle's algorithm off only for sockets that say they are TCP.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(redirecting(guarded(app)), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if options.transport == "stdio":
    asyncio.run(over_stdio())
else:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    over_http()
