"""One gateway in front of servers that are large, odd, slow or broken: none takes the rest down (G8, G10)."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from .clients import HERE, MODERN, Connected, connected, process, until

SERVERS = HERE.parent / "servers"
LARGE, LONG, MANY = 50_000_000, ("A tool whose name nobody would call short " * 5)[:200].strip(), 300


def python(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / name), *arguments], **more}


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a client's file with servers of every kind."""
    servers = {
        "odd": python("odd_server.py", limits={"message": "64MiB"}),
        "twin": python("odd_server.py"),
        "mute": python("plain_server.py", "--mute", timeout=2),
        "noise": python("plain_server.py", "--garbage"),
        "absent": {"command": "no-such-command-anywhere"},
        "good": python("plain_server.py"),
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def tree(depth: int, leaf: object) -> Any:
    return leaf if depth == 0 else {"next": tree(depth - 1, leaf)}


async def found(pegboard: Connected, query: str) -> list[str]:
    answer = json.loads(await pegboard.text("search_tools", queries=[query]))
    return [item["name"] for item in answer["results"]]


async def test_every_kind_of_server_works_or_is_reported_by_name(many: Path) -> None:
    """G8, G10, X2: broken, mute and noisy servers beside one with 300 tools, deep schemas and large answers."""
    async with process(many) as running, connected(running.url, MODERN) as pegboard:
        assert "load_tools" in await pegboard.names()
        loaded = await pegboard.load("odd", "twin", "good", "noise", "absent")
        status = {item["name"]: item["status"] for item in loaded["items"]}
        assert status == dict.fromkeys(("odd", "twin", "good"), "loaded") | dict.fromkeys(
            ("noise", "absent"), "tool_unavailable"
        )
        said = {item["name"]: item.get("message", "") for item in loaded["items"]}
        assert "does not speak MCP" in said["noise"]
        assert "'no-such-command-anywhere' was not found" in said["absent"]

        names = [tool["name"] for item in loaded["items"] for tool in item.get("tools", ()) if item["name"] == "odd"]
        assert len(names) == MANY + 5
        assert all(len(name) <= 64 for name in names)
        assert await pegboard.text("call_tool", name=f"odd__tool_{MANY - 1}") == f"tool_{MANY - 1}"
        (long,) = [name for name in names if name.startswith("odd__A_tool")]
        assert await pegboard.text("call_tool", name=long) == LONG

        own, other = [await pegboard.text("call_tool", name=f"{server}__pid") for server in ("odd", "twin")]
        assert own != other

        deep = {"tree": tree(12, 7)}
        assert await pegboard.text("call_tool", name="odd__deep", arguments=deep) == "deep"
        refused = await pegboard.text("call_tool", name="odd__deep", arguments={"tree": tree(12, "seven")})
        assert "do not fit: argument 'tree.next" in refused

        assert len(await pegboard.text("call_tool", name="odd__large")) == LARGE
        assert "a message of more than 32MiB" in await pegboard.text("call_tool", name="twin__large")
        assert await pegboard.text("call_tool", name="odd__grow") == "grow"

        async def grown() -> bool:
            return "odd__grown" in await found(pegboard, "grown")

        await until(grown)
        assert await pegboard.text("call_tool", name="odd__grown") == "grown"

        async with httpx2.AsyncClient() as http:
            health = (await http.get(f"{running.base}/healthz")).json()
        states = {state["name"]: state for state in health["upstreams"]}
        assert states["odd"]["state"] == "up"
        assert states["noise"]["last_error"]
        assert states["absent"]["last_error"]


async def test_a_server_that_never_answers_keeps_only_its_own_callers(many: Path) -> None:
    """G8: lists and calls of the others go on while someone waits for one that hangs, and after."""
    async with process(many) as running, connected(running.url, MODERN) as pegboard:
        await pegboard.load("good")
        hanging = asyncio.create_task(pegboard.load("mute"))
        assert await pegboard.text("call_tool", name="good__echo", arguments={"text": "x"}) == "x"
        assert "load_tools" in await pegboard.names()
        assert not hanging.done()
        hanging.cancel()
        await asyncio.wait({hanging})
        assert await pegboard.text("call_tool", name="good__echo", arguments={"text": "y"}) == "y"
