"""Call a server that floods its callers; print how each call ended, and what the process took, as JSON.

Arguments: ``around`` or ``through`` the SDK, the server as JSON, the tools as JSON. Another server is called meanwhile.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

from mcp_helpers import call, plain, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError
from pegboard.sources.mcp import McpSource


def peak() -> float:
    """Return the most memory that this process has had, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def main(way: str, server: str, tools: str) -> None:
    source = McpSource(fast_path=way == "around")
    spec = ServerSpec(**json.loads(server))
    ended: dict[str, list[object]] = {}
    await call(source, plain(), "pid")
    for tool in json.loads(tools):
        flood = asyncio.create_task(call(source, spec, tool))
        meanwhile = text(await call(source, plain(), "echo", text="meanwhile"))
        try:
            ended[tool] = ["result", text(await flood), meanwhile]
        except PegboardError as error:
            ended[tool] = [error.message, error.hint, meanwhile]
    await source.aclose()
    print(json.dumps({"peak": peak(), "ended": ended}))


asyncio.run(main(*sys.argv[1:]))
