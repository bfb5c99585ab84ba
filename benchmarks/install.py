"""Which of ten servers move behind Pegboard in each client: ``python -m benchmarks install [CLIENT …] [--json]``.

For each of the twelve clients, and each scope that it has, a home of its own gets a file of that client with the
servers. `pegboard init --install` starts each server as the client does and through Pegboard; `--uninstall` gives the
file back. Printed is how many tools a server has both ways, or that it stays, and whether the file came back byte for
byte. ``--servers NAME …`` takes only these. With ``--confine`` Pegboard starts them confined, in a project and at user
level of Claude Code where no client is named, and calls each that needs no network once, to do some work. The packages
come from the registries, into one cache for all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pegboard.config.client_files.known import CLIENTS, spots_of_client
from pegboard.config.clients.installing import scopes_of
from pegboard.config.location import Machine

SERVERS: dict[str, tuple[str, ...]] = {
    "everything": ("npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31"),
    "filesystem": ("npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "{project}"),
    "memory": ("npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"),
    "thinking": ("npx", "-y", "@modelcontextprotocol/server-sequential-thinking@2026.8.31"),
    "playwright": ("npx", "-y", "@playwright/mcp@latest"),
    "commander": ("npx", "-y", "@wonderwhy-er/desktop-commander@latest"),
    "git": ("uvx", "mcp-server-git==2026.10.19"),
    "time": ("uvx", "mcp-server-time==2026.10.19"),
    "fetch": ("uvx", "mcp-server-fetch==2026.10.24"),
    "sqlite": ("uvx", "--with", "mcp<2", "mcp-server-sqlite", "--db-path", "{project}/data.db"),
}

WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "everything": ("everything__get-sum", {"a": 2, "b": 40}),
    "filesystem": ("filesystem__write_file", {"path": "{project}/new.txt", "content": "one"}),
    "memory": ("memory__create_entities", {"entities": [{"name": "Ada", "entityType": "p", "observations": ["x"]}]}),
    "thinking": (
        "thinking__sequentialthinking",
        {"thought": "One.", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False},
    ),
    "commander": ("commander__list_directory", {"path": "{project}"}),
    "git": ("git__git_status", {"repo_path": "{project}"}),
    "time": ("time__get_current_time", {"timezone": "UTC"}),
    "sqlite": ("sqlite__create_table", {"query": "CREATE TABLE notes (id INTEGER)"}),
}
"""A call that does some work of each server, without the network; ``{project}`` is filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What became of one client in one scope; ``servers`` are the tools of each, or why it stays."""

    client: str
    scope: str
    seconds: float
    servers: dict[str, int | str] = field(default_factory=dict[str, int | str])
    given_back: bool = False
    error: str = ""


def file_of(client: str, servers: Mapping[str, tuple[str, ...]], env: Mapping[str, str]) -> str:
    """Return the file of a client with servers, as that client writes it."""
    entries = {
        name: {"command": words[0], "args": list(words[1:]), "env": dict(env)} for name, words in servers.items()
    }
    match client:
        case "codex":
            lines = [
                f"[mcp_servers.{name}]\ncommand = {json.dumps(entry['command'])}\nargs = {json.dumps(entry['args'])}\n"
                f"[mcp_servers.{name}.env]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in env.items())
                for name, entry in entries.items()
            ]
            return "\n".join(lines)
        case "goose":
            stdio = {"type": "stdio", "enabled": True, "timeout": 300}
            extensions = {
                name: {**stdio, "name": name, "cmd": entry["command"], "args": entry["args"], "envs": entry["env"]}
                for name, entry in entries.items()
            }
            return yaml.safe_dump({"extensions": extensions}, sort_keys=False)
        case "opencode":
            local = {
                name: {"type": "local", "command": [entry["command"], *entry["args"]], "environment": entry["env"]}
                for name, entry in entries.items()
            }
            return json.dumps({"mcp": local}, indent=2)
        case "zed":
            own = {name: {"source": "custom", **entry} for name, entry in entries.items()}
            return json.dumps({"context_servers": own}, indent=2)
        case _:
            root = {"vscode": "servers"}.get(client, "mcpServers")
            return json.dumps({root: entries}, indent=2)


def tried(
    client: str, scope: str, servers: Mapping[str, tuple[str, ...]], caches: Path, *, confine: bool = False
) -> Installed:
    """Install Pegboard into a client of a new home, take it out again, and return what became of it."""
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "home", "project")
        home.mkdir()
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | {"HOME": str(home)}
        machine = Machine(folder=project, home=home, env=env)
        given = {"npm_config_cache": str(caches / "npm"), "UV_CACHE_DIR": str(caches / "uv")}
        here = str(project)
        filled = {name: tuple(one.replace("{project}", here) for one in words) for name, words in servers.items()}
        text = file_of(client, filled, given)
        level = "user" if scope == "local" else scope
        spot = next(one for one in spots_of_client(CLIENTS[client], machine) if one.scope == level)
        if scope == "local":
            text = json.dumps({"projects": {str(project): json.loads(text)}}, indent=2)
        spot.path.parent.mkdir(parents=True, exist_ok=True)
        spot.path.write_text(text)
        began = time.perf_counter()
        accepted = [sys.executable, "-c", _ACCEPT, str(spot.path)]
        subprocess.run(accepted, cwd=project, env=env, check=True)
        confining = ("--confine",) if confine else ()
        ran = _pegboard(project, env, "--install", client, "--scope", scope, "--json", *confining)
        seconds = time.perf_counter() - began
        document: dict[str, Any] = json.loads(ran.stdout or "{}")
        if ran.returncode:
            return Installed(client=client, scope=scope, seconds=seconds, error=document["error"]["message"])
        found: dict[str, int | str] = {one["name"]: one["reason"] for one in document["staying"]}
        found |= dict.fromkeys(document["checked"], 0) | found
        for line in ran.stderr.splitlines():  # pegboard: 3 of 10 servers: git: 12 tools
            _, _, rest = line.partition(" servers: ")
            name, _, result = rest.partition(": ")
            if result.endswith((" tool", " tools")):
                found[name] = int(result.split()[0])
        if confine:
            found |= worked(project, env, Path(document["config"]), found)
        _pegboard(project, env, "--uninstall", client, "--scope", scope)
        back = spot.path.read_text() == text
        return Installed(client=client, scope=scope, seconds=seconds, servers=found, given_back=back)


def worked(project: Path, env: Mapping[str, str], config: Path, found: Mapping[str, int | str]) -> dict[str, str]:
    """Return why servers that came up confined did not do their work, each by one call as an agent makes it."""
    failed: dict[str, str] = {}
    for name, (tool, arguments) in WORK.items():
        if isinstance(found.get(name), int):
            given = json.dumps(arguments).replace("{project}", str(project))
            words = ["call", "--config", str(config), tool, given]
            _run(project, env, "session", "load", name, "--config", str(config))
            ran = _run(project, env, *words)
            if ran.returncode:
                failed[name] = f"it came up, and {tool} failed: {f'{ran.stdout} {ran.stderr}'.strip()[:600]}"
    return failed


_ACCEPT = """
import sys
from pathlib import Path
from pegboard.config.acceptance import accept_text
accept_text(Path(sys.argv[1]))
"""


def _pegboard(project: Path, env: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return _run(project, env, "init", *arguments)


def _run(project: Path, env: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pegboard", *arguments]
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)


def rows(
    clients: list[str], servers: Mapping[str, tuple[str, ...]], caches: Path, *, confine: bool
) -> Iterator[Installed]:
    """Yield what became of each client in each of its scopes."""
    for client in clients:
        for scope in scopes_of(CLIENTS[client]):
            if not confine or scope in ("project", "user"):
                yield tried(client, scope, servers, caches, confine=confine)


def main(arguments: list[str]) -> int:
    """Print the table; return 1 where a file did not come back, or nothing was installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks install", description=__doc__)
    parser.add_argument("clients", nargs="*", help="only these clients")
    parser.add_argument("--servers", nargs="*", choices=list(SERVERS), default=list(SERVERS))
    parser.add_argument("--confine", action="store_true", help="start them confined, and let each do some work")
    parser.add_argument("--caches", type=Path, default=Path(".venv", "server-packages"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # uvx may be there alone
    if missing := [name for name in ("npx", "uvx") if shutil.which(name) is None]:
        parser.error(f"{', '.join(missing)} cannot be found on the PATH")
    servers = {name: SERVERS[name] for name in given.servers}
    found: list[Installed] = []
    if not given.json:
        print("| client | scope | " + " | ".join(servers) + " | file back | seconds |")
        print("|---|---|" + "---|" * (len(servers) + 2))
    clients = given.clients or (["claude-code"] if given.confine else list(CLIENTS))
    for row in rows(clients, servers, given.caches.absolute(), confine=given.confine):
        found.append(row)
        if not given.json:
            _show(row, list(servers))
    if given.json:
        print(json.dumps([asdict(row) for row in found], indent=2))
    return 0 if all(row.given_back and not row.error for row in found) else 1


def _show(row: Installed, servers: list[str]) -> None:
    """Print a row, and why servers stay."""
    results = [row.servers.get(name, "?") for name in servers]
    cells = ["stays" if isinstance(one, str) and one != "?" else str(one) for one in results]
    back = "yes" if row.given_back else "no"
    print(f"| {row.client} | {row.scope} | {' | '.join(cells)} | {back} | {row.seconds:.0f} |", flush=True)
    reasons = {name: why for name, why in row.servers.items() if isinstance(why, str)}
    for name, why in ({"": row.error} if row.error else reasons).items():
        print(f"    {name}: {why}", flush=True)
