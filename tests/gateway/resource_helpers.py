"""What the tests of resources and prompts share: servers, configurations, and a client that sees every byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sdk_servers import sdk_command

from .clients import HERE, MODERN, modern_request, until
from .test_differential import hello, ready

SERVER = "resource_server.py"
PLAIN = str(HERE.parent / "servers" / "plain_server.py")
STAMPS = {"ttlMs", "cacheScope", "resultType", "nextCursor"}
"""What belongs to one answer of the 2026 era, or to one page."""
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

Message = dict[str, Any]


def stdio(*options: str) -> list[str]:
    return sdk_command(SERVER, "stdio", *options)


def entry(command: list[str], **more: Any) -> Message:
    return {"command": command[0], "args": command[1:], **more}


def configured(folder: Path, servers: Message, **more: Any) -> Path:
    """Return a configuration of these servers; the agent `default` may have all of them."""
    path = folder / "pegboard.yaml"
    agents = {"default": {"discoverable": ["*"]}}
    document = {"store": "sqlite:///state.db", "servers": servers, "agents": agents, **more}
    path.write_text(json.dumps(document))
    return path


class Wire:
    """Speak to a process over its pipes, in one era; what it says besides answers is kept in order.

    ``declares`` is what this client can do, ``answers`` what it answers to requests, by method.
    """

    def __init__(self, process: asyncio.subprocess.Process, era: str, declares: Message | None = None) -> None:
        self.notes: list[Message] = []
        self.answers: dict[str, Message] = {}
        self.capabilities: Message = {}
        self._declares = declares or {}
        self._process = process
        self._era = era
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            waiting = self._waiting.get(message.get("id", -1)) if "method" not in message else None
            if "id" in message and message.get("method") in self.answers:
                self.notes.append(message)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": self.answers[message["method"]]})
            elif waiting is not None:
                waiting.set_result(message)
            else:
                self.notes.append(message)

    def send(self, message: Message) -> None:
        """Send a message as it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def open(self) -> None:
        if self._era != MODERN:
            self._waiting[0] = asyncio.get_running_loop().create_future()
            greeting = hello()
            greeting["params"]["capabilities"] = self._declares
            self.send(greeting)
            self.capabilities = (await self._waiting[0])["result"]["capabilities"]
            self.send(ready())

    async def ask(self, method: str, **params: Any) -> Message:
        """Return the whole answer to a request."""
        self._number += 1
        body: Message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        if self._era == MODERN:
            own = {"io.modelcontextprotocol/clientCapabilities": self._declares, **params.get("_meta", {})}
            body = modern_request(method, self._number, **{**params, "_meta": own})[0]
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self.send(body)
        return await asyncio.wait_for(answer, 30)

    async def all(self, method: str, key: str) -> list[Message]:
        """Return the items of every page."""
        result = (await self.ask(method))["result"]
        items = result[key]
        while "nextCursor" in result:
            result = (await self.ask(method, cursor=result["nextCursor"]))["result"]
            items += result[key]
        return items

    async def until_listed(self) -> None:
        """Wait for resources: a list goes without a server that is slow to start."""

        async def listed() -> bool:
            return bool(await self.all("resources/list", "resources"))

        await until(listed, 60)

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), 20)
        await self._reader


@asynccontextmanager
async def wire(command: list[str], era: str, declares: Message | None = None) -> AsyncIterator[Wire]:
    """Start a process and speak to it over its pipes."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**24)
    speaker = Wire(process, era, declares)
    try:
        await speaker.open()
        yield speaker
    finally:
        await speaker.close()


@asynccontextmanager
async def over_http(*options: str) -> AsyncIterator[str]:
    """Run the server over HTTP; yields its address."""
    command = sdk_command(SERVER, "http", *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.kill()
        await process.wait()


def bare(answer: Message) -> Message:
    """Return an answer without its id and what belongs to its era."""
    if "error" in answer:
        return answer["error"]
    result = {key: value for key, value in answer["result"].items() if key not in STAMPS}
    meta = {key: value for key, value in result.pop("_meta", {}).items() if key != SERVER_INFO}
    return {**result, "_meta": meta} if meta else result


def requests(log: Path, method: str) -> list[int]:
    """Return the process ids that were asked this, one per request."""
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.split()[0] == method]
