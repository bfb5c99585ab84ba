"""What one call of an upstream costs by each way there is, in turns within one run."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource

ROUNDS, WARMING = 400, 50
SERVERS = Path(__file__).resolve().parent.parent / "tests" / "servers"
KINDS = {"raw": "fast_server.py", "SDK": "sdk_server.py"}
ARGUMENTS = {"text": "hello"}

Call = Callable[[], Awaitable[object]]


def request() -> bytes:
    """Return a call of the 2026 era."""
    about: dict[str, object] = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "floor", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in {**about, "clientCapabilities": {}}.items()}
    params = {"name": "echo", "arguments": ARGUMENTS, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


@asynccontextmanager
async def floor_stdio(command: list[str]) -> AsyncGenerator[Call]:
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def call() -> object:
        stdin.write(request() + b"\n")
        return json.loads(await stdout.readline())["result"]

    yield call
    process.kill()
    await process.wait()


@asynccontextmanager
async def floor_http(port: int) -> AsyncGenerator[Call]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: application/json, text/event-stream\r\n"
        "content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\n"
        "mcp-method: tools/call\r\nmcp-name: echo\r\n"
    ).encode()

    async def call() -> object:
        body = request()
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return json.loads(await reader.readexactly(size))["result"]

    yield call
    writer.close()


@asynccontextmanager
async def sdk(transport: Any) -> AsyncGenerator[Call]:
    from mcp import Client

    async with Client(transport, cache=None) as client:
        await client.list_tools()  # else each call lists the tools once more
        yield lambda: client.call_tool("echo", ARGUMENTS)


@asynccontextmanager
async def ours(spec: ServerSpec, *, fast_path: bool) -> AsyncGenerator[Call]:
    source = McpSource(fast_path=fast_path)
    tool, context = Tool(plugin=spec.name, name="echo"), CallContext()
    yield lambda: source.call(spec, {}, tool, ARGUMENTS, context)
    await source.aclose()


def ways_stdio(script: str) -> dict[str, Any]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    args = [str(SERVERS / script), "stdio"]
    spec = ServerSpec(name="up", command=sys.executable, args=tuple(args))
    return {
        "floor: pipe and json": floor_stdio([sys.executable, *args]),
        "pegboard": ours(spec, fast_path=True),
        "pegboard, by the SDK": ours(spec, fast_path=False),
        "bare SDK client": sdk(stdio_client(StdioServerParameters(command=sys.executable, args=args))),
    }


def ways_http(port: int) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port}/mcp"
    spec = ServerSpec(name="up", url=url, transport="http")
    return {
        "floor: socket and json": floor_http(port),
        "pegboard": ours(spec, fast_path=True),
        "pegboard, by the SDK": ours(spec, fast_path=False),
        "bare SDK client": sdk(url),
    }


async def race(ways: dict[str, Any]) -> dict[str, list[float]]:
    """Return the milliseconds of each call, one way after the other in each round."""
    async with AsyncExitStack() as stack:
        calls = {name: await stack.enter_async_context(way) for name, way in ways.items()}
        taken: dict[str, list[float]] = {name: [] for name in calls}
        order = list(calls.items())
        for _ in range(WARMING + ROUNDS):
            order.append(order.pop(0))  # no way always follows the same other
            for name, call in order if len(taken[order[0][0]]) % 2 else reversed(order):
                for _ in range(20):  # what the way before still has to tidy up is not this one's cost
                    await asyncio.sleep(0)
                start = time.perf_counter()
                await call()
                taken[name].append((time.perf_counter() - start) * 1000)
    return {name: times[WARMING:] for name, times in taken.items()}


def rows(transport: str, kind: str, taken: dict[str, list[float]]) -> list[dict[str, object]]:
    floor = next(iter(taken.values()))
    return [
        {
            "transport": transport,
            "server": kind,
            "way": name,
            "p50 ms": round(statistics.median(times), 3),
            "p95 ms": round(statistics.quantiles(times, n=20)[18], 3),
            "paired with floor, p50 ms": round(statistics.median(a - b for a, b in zip(times, floor, strict=True)), 3),
        }
        for name, times in taken.items()
    ]


def measure() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for kind, script in KINDS.items():
        found += rows("stdio", kind, asyncio.run(race(ways_stdio(script))))
        with Popen([sys.executable, str(SERVERS / script), "http"], stdout=PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            try:
                found += rows("http", kind, asyncio.run(race(ways_http(port))))
            finally:
                server.kill()
    return found
