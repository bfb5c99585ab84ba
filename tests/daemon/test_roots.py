"""Servers that work in the folder of a client, and those that keep its conversation: no other client has them."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.stdio import stdio_client as sdk_stdio

from .daemon_clients import DEADLINE, SERVER, OwnDaemon, StdioClient, stdio_client, until

ASKING = SERVER.replace(
    """    if "id" not in asked:
        continue
""",
    """    if "method" not in asked:
        said = asked["result"]["roots"][0]["uri"] if "result" in asked else asked["error"]["message"]
        with open(sys.argv[1], "a") as file:
            file.write(f"{asked['id']} {said}\\n")
        continue
    if "id" not in asked:
        ids = {"notifications/initialized": "first", "notifications/roots/list_changed": "changed"}
        if asked["method"] in ids:
            print(json.dumps({"jsonrpc": "2.0", "id": ids[asked["method"]], "method": "roots/list"}), flush=True)
        continue
""",
)
"""The same server, which asks for the roots of its client and writes down what it hears."""


@asynccontextmanager
async def sdk_client(daemon: OwnDaemon, config: Path, roots: list[Path]) -> AsyncGenerator[Client]:
    """Yield a client of the SDK that names roots."""

    async def named(_: object) -> types.ListRootsResult:
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


def roots_of(client: StdioClient, folder: str) -> StdioClient:
    """Let a client say that this folder is its root."""
    client.says["roots/list"] = {"roots": [{"uri": f"file:///{folder}"}]}
    return client


@pytest.fixture
def heard(config: Path) -> Path:
    """Return what the server of the configuration writes down: it asks for roots."""
    (config.parent / "box.py").write_text(ASKING)
    content, heard = json.loads(config.read_text()), config.parent / "heard"
    content["servers"]["box"]["args"].append(str(heard))
    config.write_text(json.dumps(content))
    return heard


def last_heard(heard: Path, client: StdioClient) -> str:
    """Return what the server heard last; the client answers meanwhile what it is asked."""
    client.ask("ping")
    lines = heard.read_text().splitlines() if heard.exists() else []
    return lines[-1] if lines else ""


def test_g12_a_server_hears_the_roots_of_the_client_that_is_alone(daemon: OwnDaemon, config: Path, heard: Path) -> None:
    """G12, G7: outside of any call, when the server starts and when the client says that they have changed."""
    with stdio_client(daemon, config) as client:
        roots_of(client, "one").greet(roots={"listChanged": True}).call()
        until(lambda: last_heard(heard, client) == "first file:///one")
        roots_of(client, "two").write({"method": "notifications/roots/list_changed"})
        until(lambda: last_heard(heard, client) == "changed file:///two")


def test_g12_a_shared_server_hears_of_the_next_client_and_of_no_roots_that_differ(
    daemon: OwnDaemon, config: Path, heard: Path
) -> None:
    """G12, G9: roots that are equal are those of all; where they differ it hears so, and those that are left later."""
    with stdio_client(daemon, config) as first, stdio_client(daemon, config) as second:
        roots_of(first, "one").greet(roots={}).call()
        until(lambda: last_heard(heard, first) == "first file:///one")
        roots_of(second, "two").greet(roots={}).call()
        until(lambda: second.ask("ping") and "instance: client" in last_heard(heard, first))
        first.end()
        until(lambda: last_heard(heard, second) == "changed file:///two")
        with stdio_client(daemon, config) as third:
            before = len(heard.read_text().splitlines())
            roots_of(third, "two").greet(roots={}).call()
            until(
                lambda: third.ask("ping") and last_heard(heard, second) and len(heard.read_text().splitlines()) > before
            )
            assert last_heard(heard, second) == "changed file:///two"


def test_g12_a_client_without_roots_leaves_the_server_without(daemon: OwnDaemon, config: Path, heard: Path) -> None:
    """G12, G9: it hears so in words, and its tools run."""
    with stdio_client(daemon, config) as client:
        assert client.greet().call()["pid"]
        until(lambda: "does not take" in last_heard(heard, client))
