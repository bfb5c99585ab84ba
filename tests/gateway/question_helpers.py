"""Servers that ask and log, in both eras and over both transports, and clients that answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from sdk_servers import sdk_command

from .clients import modern_request, way_in
from .conftest import ECHO

SERVER = "question_server.py"
FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "message": "Which branch?",
        "requestedSchema": {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]},
    },
}
URL: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"},
}
SAMPLE: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Name a bird."}}], "maxTokens": 9},
}
CAN = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
ROOTS = {"method": "roots/list"}
BRANCH = {"action": "accept", "content": {"branch": "main"}}
ANSWERS = [
    BRANCH,
    {"action": "accept"},
    {"role": "assistant", "content": {"type": "text", "text": "wren"}, "model": "m", "stopReason": "endTurn"},
    {"roots": [{"uri": "file:///work", "name": "work"}]},
]
CONFIG = """
store: sqlite:///state.db
servers:
  up: {{{up}, timeout: {timeout}}}
plugins:
  talk: {{python: talk_tools}}
agents:
  default: {{tools: [up], discoverable: [talk]}}
"""


def altered(request: dict[str, Any], **params: Any) -> dict[str, Any]:
    """Return a request with other parameters."""
    return {**request, "params": {**request["params"], **params}}


@contextmanager
def upstream(kind: str, *, handshake: bool) -> Iterator[dict[str, Any]]:
    """Start a server where it is one of HTTP, and yield what a configuration says of it."""
    more = ["--handshake"] if handshake else []
    if kind == "stdio":
        command, *args = sdk_command(SERVER, "stdio", *more)
        yield {"command": command, "args": args}
        return
    with Popen(sdk_command(SERVER, "http", *more), stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}
        finally:
            process.kill()


def configure(folder: Path, up: dict[str, Any], *, timeout: str = "30s", more: str = "") -> Path:
    """Write a configuration in which every tool of the server is loaded."""
    (folder / "talk_tools.py").write_text(ECHO)
    path = folder / "pegboard.yaml"
    inside = json.dumps(up)[1:-1]
    path.write_text(CONFIG.format(up=inside, timeout=timeout) + more)
    return path


def direct(up: dict[str, Any]) -> Any:
    """Return what a client connects to that knows nothing of Pegboard."""
    return up["url"] if "url" in up else StdioServerParameters(command=up["command"], args=up["args"])


def other_way_in(up: dict[str, Any], config: Path) -> AbstractAsyncContextManager[Any]:
    """Yield what a client connects to over the transport that the server behind the gateway does not have."""
    return way_in("stdio" if "url" in up else "http", config)


@dataclass
class Person:
    """Answer what is asked, and keep it; an answer waits while ``hold`` is set and ``go`` is not."""

    hold: bool = False
    asked: list[Any] = field(default_factory=list)
    logged: list[Any] = field(default_factory=list)
    gave_up: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        if self.hold:
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.gave_up += 1
                raise

    async def elicit(self, ctx: Any, params: Any) -> Any:
        self.asked.append(_plain(params))
        await self.wait()
        content: dict[str, Any] | None = {"branch": "main"} if _plain(params).get("mode", "form") == "form" else None
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, ctx: Any, params: Any) -> Any:
        self.asked.append(_plain(params))
        await self.wait()
        text = types.TextContent(text="wren")
        return types.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")

    async def roots(self, ctx: Any) -> Any:
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///work", "name": "work"})])

    async def log(self, params: Any) -> None:
        self.logged.append(_plain(params))


def _plain(params: Any) -> Any:
    """Return what was said, without what only the SDK put there."""
    wire = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    wire.pop("_meta", None)
    return wire


@asynccontextmanager
async def client(
    target: Any, era: str, person: Person | None, *, token: str | None = None, level: Any = None
) -> AsyncIterator[Client]:
    """Connect the official client; without a person it can answer nothing."""
    headers = {"Authorization": f"Bearer {token}"} if token else None
    answers: dict[str, Any] = {}
    if person is not None:
        answers = {
            "elicitation_callback": person.elicit,
            "sampling_callback": person.sample,
            "list_roots_callback": person.roots,
            "logging_callback": person.log,
        }
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        if isinstance(target, str):
            target = streamable_http_client(target, http_client=http)
        async with Client(target, mode=era, log_level=level, **answers) as connected:
            yield connected


async def call(client: Client, name: str, /, **arguments: Any) -> Any:
    """Return what a tool of the server says, however it is called."""
    (first, *_) = (await client.call_tool(name, arguments)).content
    assert isinstance(first, types.TextContent)
    return json.loads(first.text) if first.text[:1] in '[{"0123456789' else first.text


async def modern(
    http: httpx2.AsyncClient, url: str, name: str, arguments: Any, *, can: Any = CAN, token: str = "", **params: Any
) -> Any:
    """Send one raw call of the 2026-07-28 era and return its whole answer."""
    meta = {"io.modelcontextprotocol/clientCapabilities": can}
    body, headers = modern_request("tools/call", name=name, arguments=arguments, _meta=meta, **params)
    return (await http.post(url, json=body, headers={**headers, **of_token(token)})).json()


async def resumed(
    http: httpx2.AsyncClient, url: str, name: str, arguments: Any, first: Any, answers: Any, **more: Any
) -> Any:
    state = first["result"]["requestState"]
    return await modern(http, url, name, arguments, requestState=state, inputResponses=answers, **more)


def of_token(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}
