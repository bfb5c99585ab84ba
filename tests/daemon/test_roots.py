"""Servers that work in the folder of a client, and those that keep its conversation: no other client has them."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.stdio import stdio_client as sdk_stdio

from .daemon_clients import DEADLINE, SERVER, OwnDaemon, stdio_client


@asynccontextmanager
async def sdk_client(daemon: OwnDaemon, config: Path, roots: list[Path]) -> AsyncGenerator[Client]:
    """Yield a client of the SDK that names roots."""

    async def named(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri()) for root in roots])  # type: ignore[arg-type]

    command = ["-m", "pegboard", "serve", "--stdio", "--config", str(config)]
    front = sdk_stdio(StdioServerParameters(command=sys.executable, args=command, env=daemon.env))
    async with Client(front, mode="legacy", list_roots_callback=named) as client:
        yield client


@pytest.mark.parametrize("where", ["args", "cwd", "relative"])
def test_g12_a_server_that_works_in_the_folder_of_a_client_is_that_folders(
    daemon: OwnDaemon, tmp_path: Path, where: str
) -> None:
    """G12: `${root}`; in the user's own configuration an argument that is a relative path says the same."""
    program = tmp_path / "box.py"
    program.write_text(SERVER)
    more = {"args": ["${root}"], "cwd": [], "relative": ["."]}[where]
    server = {"command": sys.executable, "args": [str(program), *more]}
    if where == "cwd":
        server["cwd"] = "${root}"
    settings = tmp_path / "settings"
    (settings / "pegboard").mkdir(parents=True)
    daemon.env["XDG_CONFIG_HOME"] = str(settings)
    config = settings / "pegboard" / "pegboard.yaml"
    config.write_text(
        json.dumps({"servers": {"box": server}, "agents": {"a": {"tools": ["box"], "unloaded_call": "run"}}})
    )
    said = []
    for name in "one", "two", "one":
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        with stdio_client(daemon, config, folder=folder) as client:
            said.append(client.greet().call())
    of = [one["args"][0] if where == "args" else one["folder"] for one in said]
    assert of == [str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "one")]
    assert said[0]["pid"] == said[2]["pid"] != said[1]["pid"]


def test_g12_a_server_that_keeps_a_conversation_is_one_clients(daemon: OwnDaemon, config: Path) -> None:
    """G12, G9: browsers and terminals are known by the names of their packages; `instance: all` shares one."""
    content = json.loads(config.read_text())
    content["servers"]["box"]["args"].append("@playwright/mcp@latest")
    config.write_text(json.dumps(content))
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        assert first.greet("one").call()["pid"] != second.greet("two").call()["pid"]


FILES = '''
"""Reads files of the folders that it is started with, and of no other ones."""

import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("files")


@server.tool()
def read(path: str) -> str:
    """Read a file."""
    found = Path(path).resolve()
    if not any(found.is_relative_to(Path(folder).resolve()) for folder in sys.argv[1:]):
        raise ValueError("it is outside of the allowed folders")
    return found.read_text()


server.run("stdio")
'''


async def test_g12_two_projects_with_one_filesystem_server_read_their_own_folder_alone(
    daemon: OwnDaemon, tmp_path: Path
) -> None:
    """G12: `${root}` is the one root that a client names, wherever its process runs; clients of the SDK."""
    (tmp_path / "files.py").write_text(FILES)
    server = {"command": sys.executable, "args": [str(tmp_path / "files.py"), "${root}"]}
    config = tmp_path / "pegboard.yaml"
    config.write_text(
        json.dumps({"servers": {"files": server}, "agents": {"a": {"tools": ["files"], "unloaded_call": "run"}}})
    )
    projects = [tmp_path / "one", tmp_path / "two words"]
    async with AsyncExitStack() as stack:
        clients: list[Client] = []
        for project in projects:
            project.mkdir()
            (project / "secret").write_text(f"of {project.name}")
            clients.append(await stack.enter_async_context(sdk_client(daemon, config, [project])))
        for client, own, other in zip(clients, projects, reversed(projects), strict=True):
            read = await client.call_tool("files__read", {"path": str(own / "secret")})
            assert f"of {own.name}" in read.model_dump_json()
            refused = await client.call_tool("files__read", {"path": str(other / "secret")})
            assert refused.is_error
            assert f"of {other.name}" not in refused.model_dump_json()
        assert {one["folder"] for one in daemon.status()["clients"]} == {str(project) for project in projects}


async def test_g12_a_client_that_goes_to_another_folder_takes_the_server_with_it(
    daemon: OwnDaemon, tmp_path: Path
) -> None:
    """G12: its next request goes to the server of the new root; with two roots it is that of its process again."""
    (tmp_path / "box.py").write_text(SERVER)
    server = {"command": sys.executable, "args": [str(tmp_path / "box.py"), "${root}"]}
    config = tmp_path / "pegboard.yaml"
    config.write_text(
        json.dumps({"servers": {"box": server}, "agents": {"a": {"tools": ["box"], "unloaded_call": "run"}}})
    )
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    roots = folders[:1]
    async with sdk_client(daemon, config, roots) as client:
        said: list[str] = []
        for now in (folders[:1], folders[1:], folders):
            roots[:] = now
            with anyio.fail_after(DEADLINE):
                await client.send_roots_list_changed()
                wanted = str(now[0] if len(now) == 1 else Path.cwd())
                while not said or said[-1] != wanted:
                    answer = await client.call_tool("box__where", {})
                    said += json.loads(answer.content[0].text)["args"]  # type: ignore[union-attr]


ASKING = '''
"""Asks for the roots when it begins and when they have changed, and says what was answered last."""

import json, os, sys

asked, answered = 0, None

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in ("notifications/initialized", "notifications/roots/list_changed"):
        asked += 1
        answered = None
        say(id=f"r{asked}", method="roots/list")
    elif message.get("id") == f"r{asked}" and "method" not in message:
        answered = message.get("result") or message.get("error")
    match message.get("method"):
        case "initialize":
            about = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            say(id=message["id"], result={**about, "serverInfo": {"name": "asking", "version": "1"}})
        case "tools/list":
            tool = {"name": "where", "description": "Says where.", "inputSchema": {"type": "object"}}
            say(id=message["id"], result={"tools": [tool]})
        case "tools/call":
            text = json.dumps({"pid": os.getpid(), "answered": answered})
            say(id=message["id"], result={"content": [{"type": "text", "text": text}]})
        case method if method and "id" in message:
            say(id=message["id"], error={"code": -32601, "message": "unknown"})
'''


@pytest.mark.parametrize("files", [1, 2], ids=["one configuration", "two configurations"])
async def test_g12_roots_that_a_server_asks_for_are_those_of_all_its_clients(
    daemon: OwnDaemon, tmp_path: Path, files: int
) -> None:
    """G12, G9: one client alone, several with equal roots; else it is refused. It asks again when they change."""
    (tmp_path / "asking.py").write_text(ASKING)
    configs = [tmp_path / f"{number}.yaml" for number in range(files)]
    for config in configs:
        server = {"command": sys.executable, "args": [str(tmp_path / "asking.py")]}
        agent = {"tools": ["box"], "unloaded_call": "run"}
        config.write_text(json.dumps({"servers": {"box": server}, "agents": {"a": agent}}))
    one, two = [tmp_path / name for name in ("one", "two")]
    theirs = [one]

    async def becomes(client: Client, wanted: str) -> None:
        said = ""
        with anyio.move_on_after(DEADLINE):
            while wanted not in said:
                answer = await client.call_tool("box__where", {})
                said = json.dumps(json.loads(answer.content[0].text)["answered"])  # type: ignore[union-attr]
        assert wanted in said

    async with sdk_client(daemon, configs[0], [one]) as first:
        await becomes(first, one.as_uri())
        async with sdk_client(daemon, configs[-1], theirs) as second:
            await becomes(second, one.as_uri())
            theirs[:] = [two]
            await second.send_roots_list_changed()
            await becomes(second, "not the same")
            await becomes(first, "not the same")
        await becomes(first, one.as_uri())
