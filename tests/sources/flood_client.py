"""Call a server that floods its callers; print how each call ended, and what the process took, as JSON.

Arguments: 1 where calls go around the SDK, else 0; the server as JSON, the tools as JSON.
Another server is called meanwhile.
"""

import asyncio
import json
import sys

from mcp_helpers import call, peak, plain, text

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError
from pegboard.sources.mcp import McpSource


async def main(fast_path: str, server: str, tools: str) -> None:
    source = McpSource(fast_path=fast_path == "1")
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


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
