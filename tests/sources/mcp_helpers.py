"""What the tests of MCP servers share: specifications of the servers in tests/servers, and waiting."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource

SERVERS = Path(__file__).resolve().parent.parent / "servers"


def plain(*options: str, name: str = "plain", **fields: Any) -> ServerSpec:
    """Return a server of the handshake era, over stdio."""
    return ServerSpec(name=name, command=sys.executable, args=(str(SERVERS / "plain_server.py"), *options), **fields)


def modern(*options: str, name: str = "sdk", **fields: Any) -> ServerSpec:
    """Return a server of the 2026 era, over stdio."""
    from sdk_servers import sdk_command  # not beside this file: programs of the tests import this one too

    command, *args = sdk_command("sdk_server.py", "stdio", *options)
    return ServerSpec(name=name, command=command, args=tuple(args), **fields)


async def call(
    source: McpSource, spec: ServerSpec, name: str, /, *, scope: str = "shared", **arguments: Any
) -> CallResult:
    return await source.call(spec, {}, Tool(plugin=spec.name, name=name), arguments, CallContext(scope=scope))


def text(result: CallResult) -> str:
    return "".join(block["text"] for block in result.content)


def state(source: McpSource, name: str) -> JsonObject:
    return next(record for record in source.states() if record["name"] == name)


async def until(condition: Callable[[], object], *, seconds: float = 15.0) -> None:
    """Wait until the condition holds; fail where it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.005)


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended and waits to be reaped does not.

    The first thread of a process that is being killed is a zombie before the others have let go of its input.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    threads = Path(f"/proc/{pid}/task")
    try:
        return condition_of(pid) != "Z" or len(list(threads.iterdir())) > 1
    except OSError:
        return False


def condition_of(pid: int) -> str:
    """Return the letter that the system has for what a process does; "" where it does not say."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else ""


def peak(pid: int | str = "self") -> float:
    """Return the most memory that a process has had, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def gateway(folder: Path, servers: JsonObject, *, fast_path: bool, cold: bool = False) -> subprocess.Popen[str]:
    """Return a gateway over stdio in front of these servers; it takes calls, by number, at once.

    ``cold`` is as a user starts it, else it is forked off what has imported it.
    """
    from sdk_servers import pegboard_command  # not beside this file: programs of the tests import this one too

    config = {"servers": servers, "agents": {"default": {"tools": list(servers)}}, "store": "memory:"}
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "pegboard"] if cold else pegboard_command()
    return subprocess.Popen(
        [*command, "serve", "--config", str(path), "--stdio"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PEGBOARD_FAST_PATH": str(int(fast_path))},
    )  # fmt: skip


def requests_of(*calls: tuple[str, JsonObject]) -> str:
    """Return the lines that a client of the handshake era writes to make these calls, numbered from 1."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
    ]
    for number, (name, arguments) in enumerate(calls, start=1):
        messages.append({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def happened(log: Path) -> list[str]:
    """Return what a plain server noted, without process ids."""
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def started(log: Path) -> int:
    """Return the process id of the plain server that was started first."""
    return int(log.read_text().split()[1])
