"""A client over stdio that writes and reads lines of JSON itself, and a server that does so too."""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .clients import MODERN, modern_request, until
from .test_differential import hello, ready
from .test_stdio import start

Message = dict[str, Any]
CHANGED = "notifications/tools/list_changed"

SERVER = '''
"""Offers the tools that a file names, once there is that file, and announces when it names others."""

import json, sys, threading, time
from pathlib import Path

given, log = Path(sys.argv[1]), Path(sys.argv[2])
writing = threading.Lock()
while not given.exists():
    time.sleep(0.01)


def write(message):
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def announce():
    known = given.read_text()
    while True:
        time.sleep(0.01)
        if (now := given.read_text()) != known:
            known = now
            write({"method": "notifications/tools/list_changed"})


def tool(name):
    properties = {"before": {"type": "string"}, "dry_run": {"type": "boolean"}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object", "properties": properties}}


def answer(message):
    match message["method"]:
        case "initialize":
            version, capabilities = message["params"]["protocolVersion"], {"tools": {"listChanged": True}}
            about = {"name": "raw", "version": "1"}
            return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}
        case "tools/list":
            return {"tools": [tool(name) for name in given.read_text().split()]}
        case "tools/call":
            text = json.dumps(message["params"].get("arguments"))
            return {"content": [{"type": "text", "text": f"ran with {text}"}]}
        case "ping":
            return {}


threading.Thread(target=announce, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message)
    error = {"error": {"code": -32601, "message": "Method not found"}}
    write({"id": message["id"], **(error if result is None else {"result": result})})
    with log.open("a") as file:
        file.write(message["method"] + "\\n")
'''


class RawServer:
    """A server whose tools a test chooses; it does not answer before it has any."""

    def __init__(self, folder: Path, name: str = "up") -> None:
        self._script, self._tools, self._log = (folder / f"{name}.{end}" for end in ("py", "tools", "log"))
        self._script.write_text(SERVER)

    @property
    def entry(self) -> dict[str, Any]:
        """Return how it is started."""
        return {"command": sys.executable, "args": [str(self._script), str(self._tools), str(self._log)]}

    def offer(self, *names: str) -> None:
        """Have these tools from now on."""
        whole = self._tools.with_suffix(".new")
        whole.write_text(" ".join(names))
        whole.replace(self._tools)

    def answered(self, method: str) -> int:
        """Return how many requests of a method it has answered."""
        return self._log.read_text().split().count(method) if self._log.exists() else 0


class RawClient:
    """A client of one era.

    ``notes`` are the methods of the notifications that it received, ``notifications`` they themselves; ``says`` is what
    it answers to requests, by method, and ``asked`` what they were.
    """

    def __init__(self, process: asyncio.subprocess.Process, era: str) -> None:
        self.notes: list[str] = []
        self.notifications: list[Message] = []
        self.says: dict[str, Message] = {}
        self.asked: list[Message] = []
        self._process = process
        self._era = era
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Message]] = {}

    def message(self, method: str, params: Message | None = None) -> Message:
        """Return a request of its era, not sent yet."""
        number = next(self._numbers)
        if self._era == MODERN:
            return modern_request(method, number, **(params or {}))[0]
        return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}

    async def send(self, *messages: Message) -> list[asyncio.Future[Message]]:
        """Send messages in one write; return what will be the answers to those that are requests."""
        coming: list[asyncio.Future[Message]] = []
        for message in messages:
            if "id" in message:
                coming.append(asyncio.get_running_loop().create_future())
                self._answers[message["id"]] = coming[-1]
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        await self._process.stdin.drain()
        return coming

    async def request(self, method: str, params: Message | None = None) -> Message:
        """Return the result of a request, or its error."""
        (coming,) = await self.send(self.message(method, params))
        answer = await asyncio.wait_for(coming, 60)
        return answer["result"] if "result" in answer else answer["error"]

    async def call(self, name: str, arguments: Message) -> Message:
        """Return the result of a call."""
        return await self.request("tools/call", {"name": name, "arguments": arguments})

    async def text(self, name: str, arguments: Message) -> str:
        """Return the first text of the result of a call."""
        return (await self.call(name, arguments))["content"][0]["text"]

    async def tools(self) -> dict[str, Message]:
        """Return what it is listed now, by name."""
        return {tool["name"]: tool for tool in (await self.request("tools/list"))["tools"]}

    async def is_listed(self, name: str) -> bool:
        return name in await self.tools()

    async def begin(self) -> None:
        """Send what a client of its era sends first."""
        if self._era == MODERN:
            await self.request("server/discover")
            return
        params = hello()["params"]
        await self.request("initialize", params)
        await self.send(ready())

    async def listen(self) -> None:
        """Have its notifications come: in the newer era a client asks for them, on a stream."""
        if self._era == MODERN:
            await self.send(self.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
            await until(lambda: "notifications/subscriptions/acknowledged" in self.notes)

    def heard_of_changes(self) -> int:
        """Return how often it was notified that its list of tools has changed."""
        return self.notes.count(CHANGED)

    async def send_answer(self, number: int | str, result: Message) -> None:
        """Answer a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")
        await self._process.stdin.drain()

    async def read(self) -> None:
        """Take every line, until there are no more."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.asked.append(message)
                await self.send_answer(message["id"], self.says[message["method"]])
            elif "method" in message:
                self.notes.append(message["method"])
                self.notifications.append(message)
            elif (coming := self._answers.pop(message["id"], None)) is not None:
                coming.set_result(message)


@asynccontextmanager
async def raw_client(config: Path, era: str, *options: str) -> AsyncIterator[RawClient]:
    """Serve a configuration over stdio in a process of its own, to a client that has sent nothing yet."""
    process = await start(config, *options)
    client = RawClient(process, era)
    reading = asyncio.create_task(client.read())
    assert process.stderr is not None
    errors = asyncio.create_task(process.stderr.read())
    try:
        yield client
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                await process.wait()
        if process.returncode is None:
            process.kill()
        await reading
        said = await errors
        assert b"Traceback" not in said, said.decode()
