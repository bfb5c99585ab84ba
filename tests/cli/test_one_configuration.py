"""Two clients and two projects at once on one configuration, and what git sees of a project (G1, G11, G12)."""

import asyncio
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from command_serving import serving, url_in
from command_support import Run, command_of, put, servers_in
from mcp import StdioServerParameters
from test_install_shared import CONFIG, CURSOR, WINDSURF, placed
from test_kept_files import git

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from gateway.clients import ERAS, HANDSHAKE, Connected, connected, until
from pegboard.support.own_folder import folder_of
from sdk_servers import pegboard_command
from terminals import Terminal

__all__ = ["running_site", "site"]

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
FILES: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER)]}
DEADLINE = 60
pytestmark = pytest.mark.usefixtures("home")


def log_in(config: Path, server: str) -> str:
    """Run `pegboard login` as a person does, follow the address that it shows, and return what it prints."""
    command = pegboard_command("login", server, "--config", str(config))
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in process.stderr or ()], daemon=True).start()
    end = time.monotonic() + DEADLINE
    while not (address := lines.get(timeout=end - time.monotonic()).strip()).startswith("http"):
        pass
    with httpx2.Client(follow_redirects=True, trust_env=False) as browser:
        assert browser.get(f"{address}&account=ada").status_code == 200
    assert process.wait(DEADLINE) == 0
    assert process.stdout is not None
    return process.stdout.read()


def added(server: str) -> Any:
    """Run `pegboard add` as a person does who agrees at the terminal, and return what it prints."""
    command = [sys.executable, "-m", "pegboard", "add", server, "--json", "--", FILES["command"], *FILES["args"]]
    with Terminal("y") as terminal:
        ran = subprocess.run(
            command, capture_output=True, start_new_session=True, preexec_fn=terminal.controls(), timeout=DEADLINE
        )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


@asynccontextmanager
async def started(file: Path, project: Path, name: str, era: str, *, cold: bool = False) -> AsyncIterator[Connected]:
    """Start what is in a client's file, as that client does in a project."""
    command, *arguments = command_of(servers_in(file)["pegboard"])
    assert Path(command).name == "pegboard"
    if not cold:
        command, *arguments = pegboard_command(*arguments)
    env = {key: os.environ[key] for key in ("HOME", "PATH", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PEGBOARD_DAEMON")}
    given = StdioServerParameters(command=command, args=arguments, cwd=str(project), env=env)
    async with connected(given, era, name=name) as client:
        yield client


async def finds(client: Connected, name: str) -> bool:
    """Return whether a search of the model returns what has a name: the gateway has read that it is there."""
    return name in await client.text("search_tools", queries=[name])


@pytest.mark.parametrize("era", ERAS)
async def test_two_clients_in_two_projects_have_one_login_and_lists_of_their_own_and_one_command_adds_for_all(
    run: Run, folder: Path, site: LoginSite, era: str
) -> None:
    """G1, G11, G12: each client is started from its own file; the second one has another set of servers."""
    docs = {"url": site.url}
    placed(CURSOR, docs=docs, files=FILES)
    placed(WINDSURF, docs=docs, files=FILES, other={**FILES, "args": [*FILES["args"], "--babble", "ok"]})
    for client in ("cursor", "windsurf"):
        assert (await asyncio.to_thread(run, "init", "--install", client)).code == 0
    assert await asyncio.to_thread(log_in, CONFIG, "docs") == "Logged in to 'docs'.\n"
    projects = [folder / "first", folder / "second"]
    for project in projects:
        project.mkdir()
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(started(file, project, name, era))
            for file, name, project in zip(
                (CURSOR, CURSOR, WINDSURF), ("cursor", "cursor", "windsurf"), (*projects, projects[0]), strict=True
            )
        ]
        loaded, *others = clients
        await loaded.load("files")
        assert await loaded.text("files__echo", text="tea") == "tea"
        for client in others:
            assert "files__echo" not in await client.names()
            assert (await client.call("files__echo", text="tea")).is_error
        assert ("files__echo" in await loaded.names()) == (era == HANDSHAKE)
        for client in clients:
            await client.load("docs")
            assert json.loads(await client.text("docs__whoami"))["account"] == "ada"
        counts = site.counts
        assert (counts["registrations"], counts["authorizations"], counts["exchanges"]) == (1, 1, 1)
        assert (await asyncio.to_thread(added, "extra"))["agents"] == ["default", "windsurf"]
        for client in clients:
            await until(partial(finds, client, "extra"))
            assert (await client.load("extra"))["status"] == "ok"
            assert await client.text("extra__echo", text="tea") == "tea"
    async with started(CURSOR, folder, "cursor", era, cold=True) as later:
        assert (await later.load("extra"))["status"] == "ok"


def test_after_an_installation_a_login_and_a_gateway_git_sees_the_configuration_alone(
    run: Run, folder: Path, site: LoginSite
) -> None:
    """A7, G11: the store, its key, the login, copies and secrets are in the user's state folder."""
    secret = "a-secret-of-the-client-1"
    git("init", "--quiet")
    put(".gitignore", "/home/\n/user-*/\n")
    placed(Path(".mcp.json"), docs={"url": site.url}, files={**FILES, "env": {"A_TOKEN": secret}})
    git("add", "-A")
    assert run("init", "--install", "claude-code", "--no-keyring").code == 0
    assert log_in(Path("pegboard.yaml"), "docs") == "Logged in to 'docs'.\n"
    with serving("--port", "0", cold=True) as gateway:
        url = url_in(gateway.until("Pegboard serves MCP at "))
        assert asyncio.run(account(url)) == "ada"
    assert run("add", "extra", "--config", "pegboard.yaml", "--", FILES["command"], *FILES["args"]).code == 0
    assert "pegboard.db" in {path.name for path in folder_of(folder / "pegboard.yaml").iterdir()}
    git("add", "-A")
    assert git("status", "--short").splitlines() == ["A  .gitignore", "A  .mcp.json", "A  pegboard.yaml"]
    committed = git("diff", "--cached")
    assert [one for one in (secret, *site.secrets) if one in committed] == []


async def account(url: str) -> str:
    """Return whose login the server at the back sees."""
    async with connected(url, HANDSHAKE) as client:
        await client.load("docs")
        return json.loads(await client.text("docs__whoami"))["account"]
