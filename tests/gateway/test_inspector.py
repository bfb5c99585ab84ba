"""The MCP Inspector's command line, a client that no one here wrote."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .clients import gateway, serve


@asynccontextmanager
async def reached(kind: str, config: Path) -> AsyncIterator[list[str]]:
    """Yield the arguments that tell the Inspector where the gateway is."""
    if kind == "stdio":
        command, *args = serve(config, "--stdio")
        session = config.with_name("inspector.json")
        session.write_text(json.dumps({"mcpServers": {"pegboard": {"command": command, "args": args}}}))
        yield ["--config", str(session), "--server", "pegboard"]
        return
    async with gateway(config) as running:
        yield [f"{running.url}?session=inspected"]


async def inspect(inspector: list[str], target: list[str], era: str, method: str, *options: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *inspector, *target, "--method", method, "--protocol-era", era, *options,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.parametrize("kind", ["http", "stdio"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_lists_loads_calls_and_unloads(
    config: Path, inspector: list[str], kind: str, era: str
) -> None:
    """G1, G4, G5: one session over several connections, in both eras."""
    async with reached(kind, config) as target:

        async def names() -> list[str]:
            return [tool["name"] for tool in (await inspect(inspector, target, era, "tools/list"))["tools"]]

        async def call(name: str, *arguments: str) -> str:
            given = [part for argument in arguments for part in ("--tool-arg", argument)]
            answer = await inspect(inspector, target, era, "tools/call", "--tool-name", name, *given)
            return answer["content"][0]["text"]

        before = await names()
        assert "note_add" not in before
        assert '"loaded"' in await call("load_tools", 'names=["notes"]')
        assert (await names() == before) is (era == "modern")
        assert await call("call_tool", "name=note_add", 'arguments={"text": "tea"}') == "added tea"
        assert '"unloaded"' in await call("unload_tools", 'names=["notes"]')
        assert await names() == before
