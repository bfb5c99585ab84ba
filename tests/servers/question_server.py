"""A small MCP server that asks its clients and logs: both eras, over stdio or HTTP (it prints its port first)."""

import argparse
import asyncio
import json
import socket
import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel
from starlette.responses import PlainTextResponse

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http"])
parser.add_argument("--handshake", action="store_true", help="know nothing of the 2026 era")
options = parser.parse_args()

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
NAMES = [
    "ask",
    "log",
    "log_later",
    "level",
    "hold",
    "held",
    "free",
    "taken_back",
    "declared",
    "ask_later",
    "late",
    "ask_briefly",
]
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
freed = asyncio.Event()
held = 0
level = "debug"
taken_back = 0
late: list[Any] = []
background: set[asyncio.Task[None]] = set()
Anything = RootModel[Any]


async def on_list(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [types.Tool(name=name, input_schema=OBJECT) for name in NAMES]
    return types.ListToolsResult(tools=tools, ttl_ms=1000, cache_scope="private")


async def on_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
    global level
    level = params.level
    return types.EmptyResult()


def said(value: object) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(value))])


async def asked(ctx: Any, request: dict[str, Any], *, related: bool = True, within: float | None = None) -> Any:
    global taken_back
    sent: Any = types.Request[dict[str, Any], str](method=request["method"], params=request.get("params", {}))
    about = ServerMessageMetadata(related_request_id=ctx.request_id) if related else None
    try:
        answer = await ctx.session.send_request(sent, Anything, within, metadata=about)
    except MCPError as error:
        return {"code": error.error.code, "message": error.error.message}
    except asyncio.CancelledError:
        taken_back += 1
        raise
    return answer.root


async def ask(ctx: Any, params: types.CallToolRequestParams) -> Any:
    """Ask all that is wanted at once, as often as is wanted; say what was answered."""
    wanted = (params.arguments or {})["requests"]
    rounds = (params.arguments or {}).get("rounds", 1)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answers: list[Any] = []
        for _ in range(rounds):
            answers = await asyncio.gather(*(asked(ctx, request) for request in wanted))
        return said(answers)
    done = int(params.request_state or 0)
    given = ctx.params.get("inputResponses", {})
    if done == rounds:
        return said([given[str(number)] for number in range(len(wanted))])
    requests = {str(number): request for number, request in enumerate(wanted)}
    return {"resultType": "input_required", "inputRequests": requests, "requestState": str(done + 1)}


async def log(ctx: Any, messages: list[dict[str, Any]], *, related: bool = True) -> None:
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    lowest = level
    if modern:
        wanted = ((ctx.params or {}).get("_meta") or {}).get("io.modelcontextprotocol/logLevel")
        if wanted is None:
            return
        lowest = wanted
    for message in messages:
        if LEVELS.index(message["level"]) >= LEVELS.index(lowest):
            sent: Any = types.Notification[dict[str, Any], str](method="notifications/message", params=message)
            await ctx.session.send_notification(sent, related_request_id=ctx.request_id if related else None)


async def on_call(ctx: Any, params: types.CallToolRequestParams) -> Any:
    global held
    arguments = params.arguments or {}
    match params.name:
        case "ask":
            return await ask(ctx, params)
        case "log":
            await log(ctx, arguments["messages"])
            return said("logged")
        case "log_later":
            background.add(asyncio.ensure_future(later(ctx, arguments["messages"])))
            return said("soon")
        case "ask_later":
            background.add(asyncio.ensure_future(ask_later(ctx, arguments["request"])))
            return said("soon")
        case "late":
            return said(late)
        case "ask_briefly":
            return said(await asked(ctx, arguments["request"], within=0.3))
        case "held" | "level" | "taken_back":
            return said(globals()[params.name])
        case "hold":
            held += 1
            await freed.wait()
            freed.clear()
            return said("freed")
        case "free":
            freed.set()
            return said("free")
        case "declared":
            have = ctx.session.client_capabilities
            return said(sorted(have.model_dump(by_alias=True, exclude_none=True)) if have else [])
    raise MCPError(-32602, f"unknown tool {params.name}")


async def ask_later(ctx: Any, request: dict[str, Any]) -> None:
    await asyncio.sleep(0.2)  # the answer to the call is loaded by then
    late.append(await asked(ctx, request, related=False))


async def later(ctx: Any, messages: list[dict[str, Any]]) -> None:
    await asyncio.sleep(0.2)  # the answer to the call is loaded by then
    await log(ctx, messages, related=False)


server: Server[Any] = Server("asking", version="1", on_list_tools=on_list, on_call_tool=on_call)
server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, on_level)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        if options.handshake:
            await serve_loop(server, read, write, lifespan_state={})
        else:
            await server.run(read, write, server.create_initialization_options())


def guarded(app: Any) -> Any:
    """Know nothing of the new era where that is asked for."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        version = dict(scope.get("headers") or ()).get(b"mcp-protocol-version", b"").decode()
        if options.handshake and version in MODERN_PROTOCOL_VERSIONS:
            await PlainTextResponse("unknown version", 400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guard


def over_http() -> None:
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(guarded(server.streamable_http_app()), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if options.transport == "stdio":
    asyncio.run(over_stdio())
else:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    over_http()
