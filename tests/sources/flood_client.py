"""Call servers that flood their callers; print how each call ended, and what the process took, as JSON.

The argument is JSON: by the name of a job, whether calls go around the SDK, the server, and its tools.
Another server is called meanwhile.
"""

import asyncio
import json
import sys
from typing import Any

from mcp_helpers import call, peak, plain, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError
from pegboard.sources.mcp import McpSource


async def main(jobs: str) -> None:
    ended = {name: await outcomes(*job) for name, job in json.loads(jobs).items()}
    print(json.dumps({"peak": peak(), "ended": ended}))


async def outcomes(fast_path: bool, server: dict[str, Any], tools: list[str]) -> dict[str, list[str]]:
    """Return how the call of each tool ended, and the answer of the other server."""
    source = McpSource(fast_path=fast_path)
    spec = ServerSpec(**server)
    ended: dict[str, list[str]] = {}
    await call(source, plain(), "pid")
    for tool in tools:
        flood = asyncio.create_task(call(source, spec, tool))
        meanwhile = text(await call(source, plain(), "echo", text="meanwhile"))
        try:
            ended[tool] = ["result", text(await flood), meanwhile]
        except PegboardError as error:
            ended[tool] = [error.message, error.hint, meanwhile]
    await source.aclose()
    return ended


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
