"""The servers behind every gateway: 50 tools of five real servers, 191 of thirteen, or a tiny one of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.gateways import installing

HANGING = "hanging"
NEVER = "import sys\nfor _ in sys.stdin: pass\n"


@dataclass(frozen=True)
class Server:
    """One server over stdio; ``mark`` is in the command line of its process and of no other's.

    ``http``: the arguments with which it serves itself over HTTP, ``{port}`` being the port.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    mark: str = ""
    http: tuple[str, ...] = ()

    def entry(self) -> dict[str, Any]:
        """Return what a client's ``mcpServers`` has of it."""
        shape: dict[str, Any] = {"command": self.command, "args": list(self.args)}
        return {**shape, "env": self.env} if self.env else shape


def _node(name: str, script: Path, *args: str, **env: str) -> Server:
    return Server(name, installing.node(), (str(script), *args), env, mark=str(script))


def _python(name: str, program: Path, *args: str) -> Server:
    return Server(name, str(program), args, mark=str(program))


def five(folder: Path) -> list[Server]:
    """Return filesystem, everything, memory, git and time, working in a folder."""
    repository = folder / "repository"
    if not repository.exists():
        repository.mkdir(parents=True)
        (repository / "notes.txt").write_text("hello\n")
        subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    modules = installing.packages("node", installing.NPM) / "@modelcontextprotocol"
    programs = installing.environment("python", *installing.PYTHON)
    return [
        _node("filesystem", modules / "server-filesystem/dist/index.js", str(folder)),
        replace(
            _node("everything", everything := modules / "server-everything/dist/index.js"),
            http=(str(everything), "streamableHttp"),
        ),
        _node("memory", modules / "server-memory/dist/index.js", MEMORY_FILE_PATH=str(folder / "memory.json")),
        _python("git", programs / "mcp-server-git", "--repository", str(repository)),
        _python("time", programs / "mcp-server-time", "--local-timezone", "UTC"),
    ]


def tiny(_: Path) -> list[Server]:
    """Return one server that costs next to nothing, so that what is measured is the gateways."""
    script = str(Path(__file__).parents[2] / "tests/servers/fast_server.py")
    return [
        Server("everything", sys.executable, (script, "stdio"), mark=script, http=(script, "http", "--port", "{port}"))
    ]


def thirteen(folder: Path) -> list[Server]:
    """Return the five and eight more; those are listed and never called."""
    modules = installing.packages("node-more", installing.MORE_NPM)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    more = installing.environment("python-more", *installing.MORE_PYTHON)
    old = installing.environment("python-old", *installing.OLD_PYTHON)
    official = modules / "@modelcontextprotocol"
    return [
        *five(folder),
        _node("sequential-thinking", official / "server-sequential-thinking/dist/index.js"),
        _node("github", official / "server-github/dist/index.js", GITHUB_PERSONAL_ACCESS_TOKEN="none"),
        _node("playwright", modules / "@playwright/mcp/cli.js"),
        _node("chrome-devtools", modules / "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"),
        _node("desktop-commander", modules / "@wonderwhy-er/desktop-commander/dist/index.js", HOME=str(home)),
        _node("notion", modules / "@notionhq/notion-mcp-server/bin/cli.mjs", NOTION_TOKEN="ntn_none"),
        _python("fetch", more / "mcp-server-fetch"),
        _python("sqlite", old / "mcp-server-sqlite", "--db-path", str(folder / "bench.db")),
    ]


def hanging(folder: Path) -> Server:
    """Return a server that reads and never answers."""
    script = folder / "never_answers.py"
    script.write_text(NEVER)
    return Server(HANGING, sys.executable, (str(script),), mark=str(script))


def surroundings() -> dict[str, str]:
    """Return the environment of gateways: Node is on the path, proxies do not stand before 127.0.0.1."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
