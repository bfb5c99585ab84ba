"""What becomes of tools that servers change: no model reads what no person has seen, on any way (A4)."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from pegboard import Pegboard
from pegboard.board.catalog.loader import PluginRequest
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.core.principals.bearer_tokens import Token
from pegboard.gateway import serving
from pegboard.operators.pins import OperatorPins

from .clients import ERAS, HERE, Connected, connected
from .written_changes import KINDS, lists, written_changes

SERVER = HERE.parent / "servers" / "listed_server.py"
DIALECTS = ("pegboard", "toolkits", "invokeother", "discovery")
CHANGES = written_changes()
pytestmark = pytest.mark.timeout(400)
TOKEN = "root-root-root-root-root"


class Everything:
    """All that models and clients were given after the changes, by where it came from; and what operators see."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.statuses: dict[str, str] = {}
        self.diffs: dict[str, str] = {}
        self.findings: dict[str, int] = {}


def configuration(folder: Path) -> Path:
    """Write a configuration of four servers, with an agent of every dialect that has them, and one that may."""
    servers: dict[str, Any] = {}
    for name in ("thief", "up", "moved", "mail"):
        args = [str(SERVER), str(folder / f"{name}.json"), "--pages"]
        servers[name] = {"command": sys.executable, "args": args, "trust": "annotations", "shared": True}
    servers["thief"]["prefix"] = ""
    every = list(servers)
    kits = {f"kit_{name}": {"description": f"The tools of {name}", "tools": [name]} for name in every}
    agents = {f"{dialect}_has": {"dialect": dialect, "tools": every} for dialect in DIALECTS}
    loads = {"allowed_toolkits": list(kits), "discoverable": ["*"]}
    agents |= {f"{dialect}_loads": {"dialect": dialect, **loads} for dialect in DIALECTS}
    document = {"store": "sqlite:///state.db", "servers": servers, "toolkits": kits, "agents": agents}
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    return folder / "pegboard.yaml"


def write(folder: Path, *, after: bool) -> None:
    for name, tools in lists(CHANGES, after=after).items():
        (folder / f"{name}.json").write_text(json.dumps(tools))


async def answer(client: Connected, name: str, /, **arguments: Any) -> str:
    """Return what comes back of a call, an error too."""
    try:
        return (await client.call(name, **arguments)).model_dump_json()
    except MCPError as error:
        return f"{error} {error.error}"


async def ask(client: Connected, tool: Any, asked: list[str], called: list[str]) -> str:
    """Call a meta-tool with what its schema wants: with every question, a name of each kind, or all at once."""
    properties = tool.input_schema.get("properties", {})
    found: list[str] = []
    wants_list = any(schema.get("type") == "array" for schema in properties.values())
    for text in asked if "query" in properties else called[:1] if wants_list else called[::5]:
        arguments = {
            name: called if schema.get("type") == "array" else {} if schema.get("type") == "object" else text
            for name, schema in properties.items()
            if name in tool.input_schema.get("required", []) or name in ("query", "name", "names")
        }
        found.append(await answer(client, tool.name, **arguments))
    return "\n".join(found)


async def gather(folder: Path) -> Everything:
    """Let every server change all at once, and take in what there is to be read afterwards."""
    config, found = configuration(folder), Everything()
    write(folder, after=False)
    async with Pegboard.open(config) as board:
        await board.ready()
        assert {one.status for one in await board.pins.list()} == {"pinned"}
    write(folder, after=True)
    async with Pegboard.open(config) as board:
        await asyncio.gather(
            *(board.services.loader.fetch(PluginRequest(plugin=name)) for name in board.world.catalog.plugins)
        )
        async with serving(board, port=0) as url:
            for place, agent in enumerate(board.world.agents):  # each dialect has two, and meets both eras
                era = ERAS[(place + place // len(DIALECTS)) % 2]
                async with connected(f"{url}/{agent}", era) as client:
                    found.given[f"{agent} {era}"] = await read_all(client)
        for agent in board.world.agents:
            session = await board.session(agent=agent, session_id="library")
            surface = await session.surface(message="tidy a shelf, send mail")
            searched = [await session.search(text) for text in ("tidy", "send mail")]
            found.given[f"library {agent}"] = f"{surface} {searched} {surface.missing}"
        found.given["console"] = await console(board)
        for one in await OperatorPins(board.services).shown():
            found.statuses[f"{one.plugin}/{one.tool}"] = one.status
            found.diffs[f"{one.plugin}/{one.tool}"] = one.diff
            found.findings[f"{one.plugin}/{one.tool}"] = len(one.findings)
    return found


async def read_all(client: Connected) -> str:
    """Return everything that a client gets: lists, instructions, the answers of meta-tools and of changed tools."""
    asked = ["tidy a shelf", "send mail", " ".join(one.mark for one in CHANGES).upper(), "kit_up"]
    wires = [f"{one.server}__{one.name}" for one in CHANGES if one.name] + ["kit_up", "up", "moved", "thief"]
    wires += [one.after_name if one.server == "thief" else f"{one.server}__{one.after_name}" for one in CHANGES]
    wires = [wire for wire in wires if "zq" not in wire]
    texts = [str(client.client.instructions)]
    listed = (await client.client.list_tools(cache_mode="refresh")).tools
    texts.append(json.dumps([tool.model_dump(mode="json") for tool in listed]))
    own = [tool for tool in listed if "__" not in tool.name and tool.name != "own"]
    texts += [await ask(client, tool, asked, wires) for tool in own]
    texts += [await answer(client, wire) for wire in wires[::5]]
    listed = (await client.client.list_tools(cache_mode="refresh")).tools
    texts.append(json.dumps([tool.model_dump(mode="json") for tool in listed]))
    texts.append((await client.client.list_resources()).model_dump_json())
    texts.append((await client.client.list_prompts()).model_dump_json())
    return "\n".join(texts)


async def console(board: Pegboard) -> str:
    """Return the pages on which tools are listed, but for the one on which people look at changes."""
    token = Token(value=TOKEN, principal="root", agents=None, rights=frozenset({"see"}))
    app = ConsoleApp(board, OperatorAccess(lambda: [token]))
    transport, headers = httpx2.ASGITransport(app=app), {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", headers=headers) as client:
        pages = ["/console/tools?q=tidy", "/console/agent?agent=pegboard_has"]
        pages += [f"/console/server?name={name}" for name in ("up", "moved", "thief", "mail")]
        answers = [await client.get(page) for page in pages]
        assert {answer.status_code for answer in answers} == {200}
    await app.close()
    # Above the list of tools stands what waits, and what it says to models.
    return "\n".join(answer.text.partition("<h2>Tools</h2>")[2] or answer.text for answer in answers)


def test_there_are_sixty_changes_of_twelve_kinds() -> None:
    """A4: each is one that the pin sees."""
    assert len(CHANGES) == 60
    assert {one.kind for one in CHANGES} == set(KINDS)
    assert all((one.mark in json.dumps(one.after)) or not one.marked or one.mark in one.after_name for one in CHANGES)


async def test_no_model_and_no_list_has_a_change_that_nobody_has_seen(tmp_path: Path) -> None:
    """A4: in no dialect, era, search, hint, load, call, resource, list of the console; one command has its diff."""
    everything = await gather(tmp_path)
    assert len(everything.given) == 2 * len(DIALECTS) + 2 * len(DIALECTS) + 1
    for one in CHANGES:
        for where, text in everything.given.items():
            assert one.mark not in text.replace("<wbr>", ""), (where, one)
        tool = f"{one.server}/{one.after_name}"
        assert everything.statuses[tool] == ("changed" if one.name == one.after_name else "new"), one
        assert everything.diffs[tool], one
        if one.marked:
            assert one.mark in everything.diffs[tool].replace("<U+00AD>", ""), one
