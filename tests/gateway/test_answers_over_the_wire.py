"""What a client's model reads of a search, and what the list of tools costs it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pegboard.assembly import Pegboard
from pegboard.gateway import serving
from pegboard.ports import Adapters
from pegboard.testing import Canned, FakeSource
from pegboard.tokens import OfflineTokenCounter

from .clients import HANDSHAKE, MODERN, Connected, connected, gateway

DESCRIBED = {
    "filesystem": "Read, write and search files in the folders that you allow. Nothing else is touched.",
    "github": "Issues, pull requests and code of GitHub repositories.",
    "postgres": "Read-only access to a PostgreSQL database, with its schema.",
    "slack": "Send messages to Slack channels, and read what was said there.",
    "sentry": "Errors and their traces, as Sentry has collected them.",
    "notion": "Pages and databases of a Notion workspace.",
}
BARE = {
    "git": ("git_status", "git_diff", "git_commit", "git_log", "git_create_branch", "git_checkout", "git_show"),
    "fetch": ("fetch",),
    "memory": ("create_entities", "create_relations", "add_observations", "search_nodes", "open_nodes"),
    "time": ("get_current_time", "convert_time"),
    "puppeteer": ("puppeteer_navigate", "puppeteer_screenshot", "puppeteer_click", "puppeteer_fill"),
    "jira": ("search_issues", "create_issue", "add_comment", "transition_issue"),
    "weather": ("get_forecast", "get_alerts"),
}


def canned(*names: str) -> dict[str, Canned]:
    return {name: Canned(results=["done"], description=f"Does {name} for whoever asks.") for name in names}


@asynccontextmanager
async def served(
    folder: Path, plugins: Mapping[str, Mapping[str, Canned]], told: Mapping[str, str]
) -> AsyncIterator[str]:
    """Serve servers that are defined here, those that are described with their descriptions."""
    servers = {name: {"url": "http://127.0.0.1:9/mcp", "description": told.get(name, "")} for name in plugins}
    agents = {"default": {"discoverable": ["*"], "dialect": "pegboard"}}
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps({"store": "memory:", "servers": servers, "agents": agents}))
    adapters = Adapters(sources=[FakeSource(plugins)])
    async with Pegboard.open(path, adapters=adapters) as board, serving(board, port=0) as url:
        await (await board.session(session_id="first")).search("anything")
        yield url


async def listed(client: Connected) -> tuple[int, list[str]]:
    """Return the tokens of the whole list, and the lines on what can be loaded."""
    count = OfflineTokenCounter().count
    tools = (await client.client.list_tools(cache_mode="refresh")).tools
    shown = [{"name": t.name, "description": t.description, "inputSchema": t.input_schema} for t in tools]
    load = next(tool for tool in tools if tool.name == "load_tools")
    text = "".join(json.dumps(tool, separators=(",", ":"), ensure_ascii=False) for tool in shown)
    return count(text), (load.description or "").splitlines()[1:]


async def test_the_list_for_thirteen_servers_says_what_each_is_for_in_400_tokens(tmp_path: Path) -> None:
    """F2: also where no one described it."""
    plugins = {name: canned(f"{name}_a", f"{name}_b") for name in DESCRIBED}
    plugins |= {name: canned(*tools) for name, tools in BARE.items()}
    async with served(tmp_path, plugins, DESCRIBED) as url, connected(url, MODERN) as client:
        tokens, lines = await listed(client)
    assert tokens <= 400
    assert [line.partition(":")[0] for line in lines] == list(plugins)
    assert all(len(line.partition(": ")[2]) > 6 for line in lines), lines
    assert "filesystem: Read, write and" in "\n".join(lines)


async def test_the_list_for_two_hundred_servers_takes_900_tokens(tmp_path: Path) -> None:
    """F2: as many names as fit, and how many more there are."""
    plugins = {f"service-{n}": canned(*(f"operation_{n}_{tool}" for tool in range(5))) for n in range(200)}
    async with served(tmp_path, plugins, {}) as url, connected(url, MODERN) as client:
        tokens, lines = await listed(client)
    assert tokens <= 900
    assert lines[0] == "service-0"
    assert len(lines) == 200 or lines[-1] == f"and {201 - len(lines)} more: search"


async def test_a_search_never_changes_the_list_of_a_client(config: Path) -> None:
    """D1, G4: a client's list is cached as far as anyone knows."""
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        await client.text("search_tools", queries=["add numbers"])  # the server has been seen from here on
        before = await listed(client), client.changes()
        document = json.loads(await client.text("search_tools", queries=["list the notes"]))
        assert document["results"][0]["name"] == "note_list"
        assert (await listed(client), client.changes()) == before
        assert "loaded" not in document["results"][0]


async def test_library_and_gateway_find_the_same(config: Path) -> None:
    """P3: in the same order, with the same evidence."""
    async with gateway(config) as running, connected(running.url, HANDSHAKE) as client:
        document: dict[str, Any] = json.loads(await client.text("search_tools", queries=["add a note"]))
    async with Pegboard.open(config) as board:
        await board.ready()
        found = await (await board.session(session_id="s")).search("add a note")
    names = [result["name"] for result in document["results"]]
    assert names == [result.name for result in found.results][: len(names)]
