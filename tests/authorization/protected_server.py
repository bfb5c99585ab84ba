"""The MCP server behind the login: it knows who calls, by whose token and with what scopes."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.authentication import AuthCredentials
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from authorization.grants import Grants
from authorization.options import BASE_SCOPE

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
SECONDS = {"type": "object", "properties": {"seconds": {"type": "number"}}}
TOOLS = {
    "whoami": ({"type": "object", "properties": {}}, "Say whose token this is, and its scopes."),
    "slow": (SECONDS, "Take so many seconds; without a number, until it is released."),
    "write": (TEXT, "Write a text down; needs the scope write."),
    "echo": (TEXT, "Say it again."),
}
NEEDED = {"write": {BASE_SCOPE, "write"}}
CALLS = {"tools/call", "resources/read", "prompts/get", "completion/complete"}
ME = "linear://me"
"""A resource that everyone has: each their own."""


def said(text: str, structured: dict[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured)


def mcp_server(released: Callable[[], Awaitable[object]]) -> Server[Any]:
    """Return the server without its guard."""

    async def on_list(ctx: Any, params: Any) -> types.ListToolsResult:
        tools = [types.Tool(name=name, description=text, input_schema=how) for name, (how, text) in TOOLS.items()]
        return types.ListToolsResult(tools=tools, ttl_ms=1000, cache_scope="private")

    async def on_call(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        match params.name:
            case "whoami":
                token: AccessToken = ctx.request.user.access_token
                who = {"account": token.subject, "client": token.client_id, "scopes": token.scopes}
                return said(json.dumps(who), who)
            case "slow" if "seconds" in arguments:
                await asyncio.sleep(arguments["seconds"])
                return said("done")
            case "slow":
                await released()
                return said("done")
            case "echo" if "repeat" in arguments:
                sent = json.dumps({"error": "no such entry", "sent": dict(ctx.request.headers)})
                return types.CallToolResult(content=[types.TextContent(text=sent)], is_error=True)
            case "write" | "echo":
                return said(str(arguments.get("text", "")))
        raise MCPError(-32602, f"unknown tool {params.name}")

    return Server(
        "protected",
        version="1",
        on_list_tools=on_list,
        on_call_tool=on_call,
        on_list_resources=on_resources,
        on_read_resource=on_read,
        on_list_prompts=on_prompts,
        on_get_prompt=on_prompt,
        on_completion=on_completion,
    )


def account_of(ctx: Any) -> str:
    token: AccessToken | None = getattr(ctx.request.user, "access_token", None) if "user" in ctx.request.scope else None
    return "nobody" if token is None else str(token.subject)


async def on_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    uris = [ME, f"linear://notes/{account_of(ctx)}"]
    resources = [types.Resource(uri=uri, name=uri) for uri in uris]
    return types.ListResourcesResult(resources=resources, ttl_ms=1000, cache_scope="private")


async def on_read(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    if params.uri not in (ME, f"linear://notes/{account_of(ctx)}"):
        raise MCPError(-32002, f"there is no {params.uri}")
    contents = types.TextResourceContents(uri=params.uri, text=f"this is {account_of(ctx)}'s")
    return types.ReadResourceResult(contents=[contents], ttl_ms=1000, cache_scope="private")


async def on_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="greeting")], ttl_ms=1000, cache_scope="private")


async def on_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    text = types.TextContent(text=f"I am {account_of(ctx)}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


async def on_completion(ctx: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[account_of(ctx)]))


class Guard:
    """Let only those in who have a token of the authorization server, for this resource, with the scopes they need."""

    def __init__(self, app: ASGIApp, grants: Callable[[], Grants], released: Callable[[], Awaitable[object]]) -> None:
        self._app, self._now, self._released = app, grants, released

    @property
    def _grants(self) -> Grants:
        return self._now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != "/mcp":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        body = await request.body()
        message = parsed(body)
        token = await self._token(request)
        response = self._refusal(request, token, message) or self._strange_era(request)
        if response is not None:
            await response(scope, receive, send)
            return
        if token is not None:
            scope["user"], scope["auth"] = AuthenticatedUser(token), AuthCredentials(token.scopes)
        if (counted := {"tools/call": "calls", "resources/list": "lists"}.get(str(message.get("method")))) is not None:
            self._grants.counts[counted] += 1
        await self._app(scope, again(body, receive), send)

    async def _token(self, request: Request) -> AccessToken | None:
        kind, _, value = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            return None
        token = await self._known(value)
        return token if token is not None and token.resource in (self._grants.resource, None) else None

    async def _known(self, value: str) -> AccessToken | None:
        elsewhere = self._grants.options.authorization_server
        if elsewhere is None:
            return await self._grants.load_access_token(value)
        async with httpx2.AsyncClient(trust_env=False, timeout=5) as http:
            answer = (await http.post(f"{elsewhere}/introspect", data={"token": value})).json()
        return AccessToken.model_validate(answer) if answer["active"] else None

    def _refusal(self, request: Request, token: AccessToken | None, message: dict[str, Any]) -> Response | None:
        options, called = self._grants.options, message.get("method") in CALLS
        if token is None:
            if options.open_lists and not called:
                return None
            self._grants.counts["unauthorized"] += 1
            return self._challenge(request, 401, "invalid_token", options.challenge_scope)
        name = (message.get("params") or {}).get("name") if called else None
        needed = NEEDED.get(str(name), {BASE_SCOPE})
        missing = needed - set(token.scopes)
        if options.never_enough and name == "write":
            missing = {"write"}
        if not missing:
            return None
        self._grants.counts["insufficient"] += 1
        return self._challenge(request, 403, "insufficient_scope", " ".join(sorted(missing)))

    def _challenge(self, request: Request, status: int, code: str, scope: str | None) -> Response:
        sent = request.headers.get("authorization")
        parts = [f'error="{code}"'] if sent else []
        if self._grants.options.challenge == "metadata" and self._grants.options.resource_metadata:
            where = f"{self._grants.origin}/.well-known/oauth-protected-resource/mcp"
            parts.append(f'resource_metadata="{where}"')
        if scope:
            parts.append(f'scope="{scope}"')
        headers = {"WWW-Authenticate": f"Bearer {', '.join(parts)}".strip()}
        if self._grants.options.challenge == "none":
            headers = {}
        repeated = {"error_description": sent} if sent and self._grants.options.echo_secrets else {}
        refusal = JSONResponse({"error": code, **repeated}, status, headers)
        if status == 403 and self._grants.options.late_refusals:
            return StreamingResponse(self._late(refusal), status, headers, media_type="application/json")
        return refusal

    async def _late(self, refusal: Response) -> AsyncGenerator[bytes]:
        await self._released()
        yield bytes(refusal.body)

    def _strange_era(self, request: Request) -> Response | None:
        modern = request.headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS
        return Response("unknown version", 400) if self._grants.options.handshake and modern else None


def parsed(body: bytes) -> dict[str, Any]:
    """Return the message in a body; an empty one where there is none."""
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def again(body: bytes, receive: Receive) -> Receive:
    """Return what hands out a body that was read already, and then what comes after it."""
    left = [body]

    async def received() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return received
