"""What the fast path saves: the same calls and starts with it and without it, in turns within one run."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

CALLS, WARMING, STARTS = 400, 50, 9
SERVER = Path(__file__).resolve().parent.parent / "tests" / "servers" / "fast_server.py"
WAYS = {"fast path": "1", "SDK": "0"}
MODERN = "2026-07-28"

Call = Callable[[], Awaitable[object]]


def message(method: str, **params: Any) -> bytes:
    """Return a request of the 2026 era."""
    values: dict[str, object] = {"protocolVersion": MODERN, "clientInfo": {"name": "b", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{k}": v for k, v in {**values, "clientCapabilities": {}}.items()}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}).encode()


ECHO = message("tools/call", name="up__echo", arguments={"text": "hello"})


async def start(config: Path, way: str, *options: str) -> Process:
    """Start a gateway with the fast path, or without."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pegboard", "serve", "--config", str(config), *options,
        stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**os.environ, "PEGBOARD_FAST_PATH": WAYS[way]},
    )  # fmt: skip


async def ask(process: Process, line: bytes) -> Any:
    """Send one request over stdio and return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + b"\n")
    answer = json.loads(await process.stdout.readline())
    return answer["result"]


@asynccontextmanager
async def stdio(config: Path, way: str) -> AsyncGenerator[Call]:
    process = await start(config, way, "--stdio", "--alone")
    await ask(process, message("tools/list"))
    yield lambda: ask(process, ECHO)
    process.terminate()
    await process.communicate()


@asynccontextmanager
async def http(config: Path, way: str) -> AsyncGenerator[Call]:
    process = await start(config, way, "--port=0")
    assert process.stderr is not None
    port = int((await process.stderr.readline()).decode().rpartition(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: application/json, text/event-stream\r\n"
        f"content-type: application/json\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\n"
        f"mcp-name: up__echo\r\ncontent-length: {len(ECHO)}\r\n\r\n"
    ).encode()

    async def call() -> object:
        writer.write(head + ECHO)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return json.loads(await reader.readexactly(size))["result"]

    yield call
    writer.close()
    process.terminate()
    await process.communicate()


async def calls(config: Path, transport: Callable[[Path, str], Any]) -> dict[str, list[float]]:
    """Return the milliseconds of each call, one way after the other in each round."""
    async with AsyncExitStack() as stack:
        ways = [(way, await stack.enter_async_context(transport(config, way))) for way in WAYS]
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(WARMING + CALLS):
            ways.reverse()
            for way, call in ways:
                began = time.perf_counter()
                await call()
                times[way].append((time.perf_counter() - began) * 1000)
    return {way: found[WARMING:] for way, found in times.items()}


async def starts(config: Path) -> dict[str, list[float]]:
    """Return the milliseconds from the start of a process to its first list over stdio."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(STARTS):
        for way in WAYS:
            began = time.perf_counter()
            process = await start(config, way, "--stdio", "--alone")
            await ask(process, message("tools/list"))
            times[way].append((time.perf_counter() - began) * 1000)
            process.terminate()
            await process.communicate()
    return times


async def run() -> dict[str, dict[str, list[float]]]:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "pegboard.json"
        server = {"command": sys.executable, "args": [str(SERVER), "stdio"]}
        agents = {"default": {"tools": ["up"]}}
        config.write_text(json.dumps({"store": "sqlite:///state.db", "servers": {"up": server}, "agents": agents}))
        return {
            "call over stdio": await calls(config, stdio),
            "call over HTTP": await calls(config, http),
            "start to first list, stdio": await starts(config),
        }


def measure() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for what, times in asyncio.run(run()).items():
        medians = {way: statistics.median(found) for way, found in times.items()}
        rows.append({"what": what, **{f"{way}, ms": round(median, 3) for way, median in medians.items()}})
    return rows
