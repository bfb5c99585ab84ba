"""A server with resources, templates, prompts and completions, made with the SDK: both eras, stdio or HTTP."""

import argparse
import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import PlainTextResponse

parser = argparse.ArgumentParser()
parser.add_argument("transport", choices=["stdio", "http"])
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--handshake", action="store_true", help="know nothing of the 2026 era")
parser.add_argument("--name", default="one", help="what its texts say")
parser.add_argument("--no-tools", action="store_true", help="have no tools")
parser.add_argument("--no-templates", action="store_true", help="know nothing of templates")
parser.add_argument("--hang", action="append", default=[], help="never answer this method")
parser.add_argument("--wait-for", type=Path, help="answer lists once this file exists")
parser.add_argument("--bad", action="store_true", help="list items that are not valid among the others")
parser.add_argument("--quiet", action="store_true", help="say nothing of changes")
parser.add_argument("--log", type=Path, help="append every request here")
options = parser.parse_args()

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
ICONS = [{"src": "data:,", "mimeType": "image/png", "sizes": ["48x48"]}]
RESOURCES: list[dict[str, Any]] = [
    {"uri": "note://shared", "name": "shared", "title": "Shared", "description": "In every server.", "size": 6,
     "mimeType": "text/plain", "annotations": {"audience": ["user"], "priority": 0.5}, "icons": ICONS,
     "_meta": {"team": options.name}, "x-vendor": {"kept": [1, None]}},
    {"uri": f"note://{options.name}/own", "name": "own"},
    {"uri": f"blob://{options.name}", "name": "picture", "mimeType": "image/png"},
]  # fmt: skip
BAD: list[Any] = [{"uri": "note://bad"}, {"uri": 3, "name": "no text"}, "nothing", {"uri": "", "name": "empty"}]
TEMPLATES: list[dict[str, Any]] = [
    {"uriTemplate": "page://{number}", "name": "page", "title": "Page", "icons": ICONS, "x-vendor": 1},
    {"uriTemplate": f"path://{options.name}/{{+path}}{{?page}}", "name": "path"},
]
PROMPTS: list[dict[str, Any]] = [
    {"name": "greet", "title": "Greet", "description": "Say hello.", "icons": ICONS, "x-vendor": 1,
     "arguments": [{"name": "whom", "required": True, "description": "Who is greeted.", "x-more": 1}]},
    {"name": "fail"},
]  # fmt: skip
HIDDEN = f"hidden://{options.name}"
LISTS = {
    "resources/list": ("resources", RESOURCES),
    "resources/templates/list": ("resourceTemplates", TEMPLATES),
    "prompts/list": ("prompts", PROMPTS),
}
bus = InMemorySubscriptionBus()
subscribed: list[str] = []


async def around(ctx: Any, call_next: Any) -> Any:
    """Note each request, hang where that is wanted, and answer past the models, which drop unknown keys."""
    if options.log:
        with options.log.open("a") as file:
            file.write(f"{ctx.method} {os.getpid()}\n")
    if ctx.method in options.hang:
        await asyncio.Event().wait()
    if ctx.method not in LISTS:
        return await call_next(ctx)
    while options.wait_for and not options.wait_for.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    key, items = LISTS[ctx.method]
    start = int((ctx.params or {}).get("cursor") or 0)
    result = {**await call_next(ctx), key: items[start : start + 2]}
    if options.bad and not start:
        result[key] += BAD
    return {**result, "nextCursor": str(start + 2)} if start + 2 < len(items) else result


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


async def read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    if uri == "path://one/secret":
        raise MCPError(-32050, "not on a Sunday", {"day": 7})
    if uri == "path://one/crash":
        os._exit(3)
    if uri == "path://one/slow":
        await asyncio.Event().wait()
    if uri == "path://one/steps":
        for step in (1, 2, 3):
            await ctx.session.report_progress(step, 3, f"step {step}")
    if uri.startswith("blob://"):
        part: Any = types.BlobResourceContents(uri=uri, blob="iVBORw0KGgo=", mime_type="image/png", _meta={"dpi": 72})
        return types.ReadResourceResult(contents=[part], _meta={"seen": True})
    listed = any(item["uri"] == uri for item in RESOURCES)
    if listed or uri == HIDDEN or uri.startswith(("page://", f"path://{options.name}/")):
        said = f"{options.name}: {uri} {dict(ctx.meta or {}).get('mark', '')}".strip()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=said)], ttl_ms=1234)
    raise MCPError(-32602, f"nothing at {uri}", {"uri": uri})


async def get(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    if params.name == "fail":
        raise MCPError(-32051, "the prompt failed", {"why": "it is meant to"})
    text = types.TextContent(text=f"{options.name} greets {(params.arguments or {}).get('whom')}")
    link = types.ResourceLink(name="note", uri="note://shared")
    messages = [types.PromptMessage(role="user", content=text), types.PromptMessage(role="assistant", content=link)]
    return types.GetPromptResult(description="A greeting", messages=messages, _meta={"seen": True})


async def complete(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    whose = getattr(params.ref, "name", None) or getattr(params.ref, "uri", None)
    earlier = (params.context.arguments if params.context else None) or {}
    values = [options.name, str(whose), params.argument.name, params.argument.value, *earlier.values()]
    return types.CompleteResult(completion=types.Completion(values=values, total=9, has_more=True))


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    if params.uri.startswith("page://9"):
        raise MCPError(-32602, "there are eight pages")
    subscribed.append(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.remove(params.uri)
    return types.EmptyResult()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=OBJECT) for name in ("do", "other")])


async def call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Change something: grow, touch URI, stop."""
    what = (params.arguments or {}).get("what", "")
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    if what == "grow":
        RESOURCES.append({"uri": f"note://{options.name}/grown", "name": "grown"})
        PROMPTS.append({"name": "grown"})
        if modern:
            await bus.publish(ResourcesListChanged())
            await bus.publish(PromptsListChanged())
        elif not options.quiet:
            await ctx.session.send_resource_list_changed()
            await ctx.session.send_prompt_list_changed()
    elif what.startswith("touch "):
        uri = what.removeprefix("touch ")
        if modern:
            await bus.publish(ResourceUpdated(uri=uri))
        elif any(uri.startswith(one) for one in subscribed):
            await ctx.session.send_resource_updated(uri)
    elif what == "stop":
        os._exit(3)
    elif what == "subscribed":
        return types.CallToolResult(content=[types.TextContent(text=" ".join(subscribed))])
    return types.CallToolResult(content=[types.TextContent(text=str(os.getpid()))])


class _Server(Server[Any]):
    def create_initialization_options(self, *args: Any, **more: Any) -> Any:
        told = not options.quiet
        changes = NotificationOptions(prompts_changed=told, resources_changed=told)
        return super().create_initialization_options(changes)


server: Server[Any] = _Server(
    options.name,
    version="1",
    on_list_tools=None if options.no_tools else list_tools,
    on_call_tool=None if options.no_tools else call,
    on_list_resources=list_resources,
    on_list_resource_templates=None if options.no_templates else list_templates,
    on_read_resource=read,
    on_subscribe_resource=None if options.quiet else subscribe,
    on_unsubscribe_resource=None if options.quiet else unsubscribe,
    on_list_prompts=list_prompts,
    on_get_prompt=get,
    on_completion=complete,
    on_subscriptions_listen=None if options.handshake or options.quiet else ListenHandler(bus),
    get_tool_input_schema=lambda name: OBJECT,
)
server.middleware.append(around)


async def over_stdio() -> None:
    async with stdio_server() as (read_stream, write_stream):
        if options.handshake:
            made = server.create_initialization_options()
            await serve_loop(server, read_stream, write_stream, lifespan_state={}, init_options=made)
        else:
            await server.run(read_stream, write_stream, server.create_initialization_options())


def old(app: Any) -> Any:
    """Know nothing of the new era."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        if headers.get(b"mcp-protocol-version", b"").decode() in MODERN_PROTOCOL_VERSIONS:
            await PlainTextResponse("unknown version", 400)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guard


def over_http() -> None:
    app: Any = server.streamable_http_app()
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(old(app) if options.handshake else app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if options.transport == "stdio":
    asyncio.run(over_stdio())
else:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    over_http()
