"""What eight published servers answer by themselves, behind Pegboard, and confined: ``python -m benchmarks
reference_servers [NAME …] [--rounds 5] [--json]``.

Each is asked for all that it lists and called several times: on its own, behind the gateway by clients of both eras,
and behind the gateway with each confinement that is tried. The clients have roots. Every way has a project of its own
with the same files. Printed is whether the answers are equal, or the first that differs, and how long a server takes
until its tools are listed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.gateways.installing import OLD_PYTHON, environment, node, packages
from pegboard import Pegboard
from pegboard.board.catalog.loader import PluginRequest

NPM: dict[str, str] = dict.fromkeys(
    (
        "@modelcontextprotocol/server-everything",
        "@modelcontextprotocol/server-filesystem",
        "@modelcontextprotocol/server-memory",
        "@modelcontextprotocol/server-sequential-thinking",
    ),
    "2026.8.31",
)
PYTHON = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24")
PAGE = "<html><head><title>Notes</title></head><body><h1>Notes</h1><p>Buy milk, and a lamp.</p></body></html>"
ENVELOPE = frozenset({"ttlMs", "cacheScope", "resultType", "io.modelcontextprotocol/serverInfo"})
"""What belongs to a connection of one era, and not to an answer."""
VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \([^)]*\)"), "TIME"),
    (re.compile(r"\d{1,2}:\d\d:\d\d [AP]M"), "TIME"),
)
DATES = {f"GIT_{who}_DATE": "1767225600 +0000" for who in ("AUTHOR", "COMMITTER")}
WHO = "[user]\n\tname = Ada\n\temail = ada@example.org\n"

ERAS = ("legacy", "2026-07-28")
"""The eras of the clients, as the SDK calls them; a server is asked by itself in the older, which all know."""

LATEST = 60.0
"""How long the tools of a server are waited for, in seconds."""

Call = tuple[str, dict[str, Any]]
"""A tool, and its arguments; ``{project}`` and ``{port}`` in a text are filled in."""


def _thought(number: int) -> dict[str, Any]:
    return {"thought": f"Step {number}.", "thoughtNumber": number, "totalThoughts": 2, "nextThoughtNeeded": number < 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A published server; ``lines`` are what is tried as its ``confine``."""

    name: str
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[Call, ...] = ()
    lines: tuple[Any, ...] = (True, {"write": [], "network": "none"})


SERVERS = (
    Reference(
        name="everything",
        calls=(
            ("echo", {"message": "hej"}),
            ("get-sum", {"a": 2, "b": 40}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-structured-content", {"location": "Chicago"}),
            ("get-resource-links", {"count": 3}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
            ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
            ("gzip-file-as-resource", {"name": "x.gz", "data": "data:text/plain;base64,aGVq"}),
        ),
    ),
    Reference(
        name="filesystem",
        arguments=("{project}/notes",),
        calls=(
            ("list_allowed_directories", {}),
            ("write_file", {"path": "{project}/notes/new.txt", "content": "one\ntwo\n"}),
            ("edit_file", {"path": "{project}/notes/new.txt", "edits": [{"oldText": "two", "newText": "three"}]}),
            ("read_text_file", {"path": "{project}/notes/new.txt"}),
            ("create_directory", {"path": "{project}/notes/deep/er"}),
            ("move_file", {"source": "{project}/notes/new.txt", "destination": "{project}/notes/deep/new.txt"}),
            ("directory_tree", {"path": "{project}/notes"}),
            ("search_files", {"path": "{project}/notes", "pattern": "**/*.txt"}),
            ("read_multiple_files", {"paths": ["{project}/notes/a.txt", "{project}/notes/none.txt"]}),
            ("read_text_file", {"path": "{project}/repository/a.txt"}),
        ),
        lines=(True, {"write": ["notes"], "network": "none"}),
    ),
    Reference(
        name="memory",
        env={"MEMORY_FILE_PATH": "{project}/memory/graph.jsonl"},
        calls=(
            ("create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}),
            ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["counts"]}]}),
            ("create_relations", {"relations": [{"from": "Ada", "to": "Ada", "relationType": "knows"}]}),
            ("search_nodes", {"query": "counts"}),
            ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": ["writes"]}]}),
            ("read_graph", {}),
        ),
        lines=(True, {"write": ["memory"], "network": "none"}),
    ),
    Reference(name="sequential-thinking", calls=tuple(("sequentialthinking", _thought(at)) for at in (1, 2))),
    Reference(
        name="git",
        arguments=("--repository", "{project}/repository"),
        calls=(
            ("git_status", {"repo_path": "{project}/repository"}),
            ("git_add", {"repo_path": "{project}/repository", "files": ["b.txt"]}),
            ("git_commit", {"repo_path": "{project}/repository", "message": "Second"}),
            ("git_create_branch", {"repo_path": "{project}/repository", "branch_name": "side"}),
            ("git_checkout", {"repo_path": "{project}/repository", "branch_name": "side"}),
            ("git_log", {"repo_path": "{project}/repository", "max_count": 5}),
            ("git_show", {"repo_path": "{project}/repository", "revision": "HEAD"}),
            ("git_branch", {"repo_path": "{project}/repository", "branch_type": "local"}),
        ),
        env=DATES,
        lines=(True, {"write": ["repository"], "read": ["~/.gitconfig"], "network": "none"}),
    ),
    Reference(
        name="time",
        arguments=("--local-timezone", "UTC"),
        calls=(
            ("get_current_time", {"timezone": "Europe/Paris"}),
            ("convert_time", {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
            ("get_current_time", {"timezone": "Nowhere/None"}),
        ),
    ),
    Reference(
        name="fetch",
        arguments=("--allow-private-ips",),
        env={"PATH": "{project}"},  # without Node, which it would use where it finds one
        calls=(
            ("fetch", {"url": "http://127.0.0.1:{port}/notes"}),
            ("fetch", {"url": "http://127.0.0.1:{port}/notes", "raw": True}),
            ("fetch", {"url": "http://127.0.0.1:{port}/notes", "max_length": 10}),
            ("fetch", {"url": "http://127.0.0.1:{port}/gone"}),
        ),
        lines=(True, {"write": [], "network": ["{port}"]}, {"write": [], "network": "none"}),
    ),
    Reference(
        name="sqlite",
        arguments=("--db-path", "{project}/data/notes.db"),
        calls=(
            ("create_table", {"query": "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)"}),
            ("write_query", {"query": "INSERT INTO notes (text) VALUES ('milk'), ('lamp')"}),
            ("read_query", {"query": "SELECT * FROM notes ORDER BY id"}),
            ("list_tables", {}),
            ("describe_table", {"table_name": "notes"}),
            ("append_insight", {"insight": "Lamps are few."}),
            ("read_query", {"query": "SELECT * FROM nothing"}),
        ),
        lines=(True, {"write": ["data"], "network": "none"}),
    ),
)


class _Pages(BaseHTTPRequestHandler):
    """Two pages: one that is there, and robots.txt, which is not."""

    def do_GET(self) -> None:
        body = PAGE.encode() if self.path == "/notes" else b"nothing here"
        self.send_response(200 if self.path == "/notes" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def pages() -> Iterator[int]:
    """Serve the pages on loopback; yields the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def programs() -> dict[str, tuple[str, ...]]:
    """Return the command of every server; installs what is missing."""
    modules = packages("reference-node", NPM) / "@modelcontextprotocol"
    names = ("everything", "filesystem", "memory", "sequential-thinking")
    found = {name: (node(), str(modules / f"server-{name}" / "dist" / "index.js")) for name in names}
    python = environment("reference-python", *PYTHON)
    found |= {name: (str(python / f"mcp-server-{name}"),) for name in ("git", "time", "fetch")}
    return {**found, "sqlite": (str(environment("python-old", *OLD_PYTHON) / "mcp-server-sqlite"),)}


def own_environment(folder: Path) -> dict[str, str]:
    """Return the environment of everything that is started: a home folder of its own, with the settings of git."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text(WHO)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "GIT_"))}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def project_in(folder: Path) -> Path:
    """Make a project with the files that the servers work on."""
    for name in ("notes", "memory", "data", "repository"):
        (folder / name).mkdir(parents=True)
    (folder / "notes" / "a.txt").write_text("hello\n")
    (folder / "repository" / "a.txt").write_text("a\n")
    git = ["git", "-C", str(folder / "repository")]
    env = {**own_environment(folder.parent), **DATES}
    for words in (("init", "-q", "-b", "main"), ("add", "a.txt"), ("commit", "-q", "-m", "First")):
        subprocess.run([*git, *words], check=True, env=env)
    (folder / "repository" / "b.txt").write_text("b\n")
    return folder


def _filled(value: Any, **known: object) -> Any:
    """Return a value with what is known of this way filled in."""
    if isinstance(value, str):
        for name, what in known.items():
            value = value.replace(f"{{{name}}}", str(what))
        return int(value) if value.isdecimal() else value
    if isinstance(value, dict):
        return {key: _filled(inner, **known) for key, inner in value.items()}
    return [_filled(inner, **known) for inner in value] if isinstance(value, list | tuple) else value


def _written(one: Reference, program: tuple[str, ...], project: Path, port: int, confine: Any) -> dict[str, Any]:
    """Write the configuration of a way, and return the server as it is in it."""
    command, *rest = program
    server = {"command": command, "args": [*rest, *one.arguments], "env": dict(one.env), "prefix": ""}
    server = _filled({**server, **({} if confine is None else {"confine": confine})}, project=project, port=port)
    document = {"servers": {one.name: server}, "agents": {"default": {"tools": [one.name]}}, "store": "sqlite:///s.db"}
    (project / "pegboard.yaml").write_text(json.dumps(document))
    return server


async def _said(ask: Awaitable[Any]) -> Any:
    """Return an answer as JSON, errors too."""
    from mcp import MCPError

    try:
        found = await ask
    except MCPError as error:
        return {"error": error.error.model_dump(mode="json")}
    return _bare(found.model_dump(mode="json", by_alias=True, exclude_none=True))


def _bare(value: Any) -> Any:
    """Return an answer without what belongs to its connection."""
    if isinstance(value, dict):
        kept = {key: _bare(inner) for key, inner in value.items() if key not in ENVELOPE}
        return {key: inner for key, inner in kept.items() if key != "_meta" or inner}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


async def answers(
    one: Reference,
    parameters: Any,
    project: Path,
    port: int,
    itself: Mapping[str, Any] | None = None,
    era: str = "legacy",
) -> dict[str, Any]:
    """Return what a server says to everything that it is asked: what ``itself`` lists, where that is known."""
    import mcp_types as types
    from mcp import Client
    from mcp.client.stdio import stdio_client

    async def roots(_: object) -> Any:
        folder = types.Root.model_validate({"uri": (project / "notes").as_uri(), "name": "notes"})
        return types.ListRootsResult(roots=[folder])

    found: dict[str, Any] = {}
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123 - it is open as long as the server runs
        transport = stdio_client(parameters, errlog=nowhere)
        async with Client(transport, mode=era, list_roots_callback=roots) as client:
            tools = await _tools(client, {tool["name"] for tool in itself["tools/list"]} if itself else set())
            known = {tool["name"] for tool in (itself["tools/list"] if itself else tools)}
            found["tools/list"] = sorted((t for t in tools if t["name"] in known), key=lambda tool: tool["name"])
            offered = client.server_capabilities
            if offered.prompts if itself is None else "prompts/list" in itself:
                found |= await _prompts(client)
            if offered.resources if itself is None else "resources/list" in itself:
                found |= await _resources(client)
            for at, (tool, arguments) in enumerate(one.calls):
                given = _filled(arguments, project=project, port=port)
                found[f"tools/call {at} {tool}"] = await _said(client.call_tool(tool, given))
    return json.loads(_plain(json.dumps(found), project, port))


async def _tools(client: Any, known: set[str]) -> list[dict[str, Any]]:
    """Return the tools that are listed, once they are those that are known: a first list goes without a slow server."""
    began = time.monotonic()
    while True:
        tools = (await _said(client.list_tools(cache_mode="refresh")))["tools"]
        if known <= {tool["name"] for tool in tools} or time.monotonic() - began > LATEST:
            return tools
        await asyncio.sleep(0.1)


async def _prompts(client: Any) -> dict[str, Any]:
    found = {"prompts/list": (listed := await _said(client.list_prompts()))}
    for prompt in listed["prompts"]:
        given = {a["name"]: "1" for a in prompt.get("arguments", ()) if a.get("required")}
        found[f"prompts/get {prompt['name']}"] = await _said(client.get_prompt(prompt["name"], given))
    return found


async def _resources(client: Any) -> dict[str, Any]:
    """Return resources and templates; a server that knows no templates has none."""
    found = {"resources/list": (listed := await _said(client.list_resources()))}
    templates = await _said(client.list_resource_templates())
    found["resources/templates/list"] = templates if "error" not in templates else {"resourceTemplates": []}
    for resource in listed["resources"][:5]:
        found[f"resources/read {resource['uri']}"] = await _said(client.read_resource(resource["uri"]))
    return found


def _plain(text: str, project: Path, port: int) -> str:
    """Return answers without what is another one each time."""
    text = text.replace(str(project), "PROJECT").replace(f":{port}/", ":PORT/")
    for pattern, stands in VARYING:
        text = pattern.sub(stands, text)
    return text


def difference(here: dict[str, Any], there: dict[str, Any]) -> str:
    """Return what the first difference is, or nothing."""
    for asked in dict.fromkeys((*here, *there)):
        if here.get(asked) != there.get(asked):
            return f"{asked}: {json.dumps(here.get(asked))[:160]} / {json.dumps(there.get(asked))[:160]}"
    return ""


async def compared(one: Reference, program: tuple[str, ...], folder: Path, port: int) -> Iterator[dict[str, Any]]:
    """Return for each confinement whether the answers are those of the server itself."""
    from mcp.client.stdio import StdioServerParameters

    env = own_environment(folder)
    rows: list[dict[str, Any]] = []
    alone = project_in(folder / "alone")
    server = _written(one, program, alone, port, None)
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env={**env, **server["env"]}, cwd=alone
    )
    itself = await answers(one, parameters, alone, port)
    ways = (*((None, era) for era in ERAS), *((confine, ERAS[0]) for confine in one.lines))
    for at, (confine, era) in enumerate(ways):
        project = project_in(folder / f"way{at}")
        _written(one, program, project, port, confine)
        command = [sys.executable, "-m", "pegboard", "serve", "--stdio", "--alone"]
        command += ["--config", str(project / "pegboard.yaml")]
        behind = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=project)
        differs = difference(itself, await answers(one, behind, project, port, itself, era))
        rows.append({
            "server": one.name,
            "era": era,
            "confine": "not confined" if confine is None else json.dumps(confine),
            "answers": "equal" if not differs else f"differ: {differs}",
            "asked": len(itself),
        })  # fmt: skip
    return iter(rows)


async def started(one: Reference, program: tuple[str, ...], folder: Path, port: int, rounds: int) -> dict[str, float]:
    """Return how long it takes until the tools are listed, unconfined and with ``confine: true``, in turn: medians."""
    took: dict[str, list[float]] = {"unconfined_ms": [], "confined_ms": []}
    projects = dict(zip(took, (project_in(folder / "unconfined"), project_in(folder / "confined")), strict=True))
    for what, project in projects.items():
        _written(one, program, project, port, True if what == "confined_ms" else None)
    for _ in range(rounds):
        for what, project in projects.items():
            async with Pegboard.open(project / "pegboard.yaml") as board:
                begun = time.perf_counter()
                await board.services.loader.ask_anew([PluginRequest(plugin=one.name)])
                took[what].append((time.perf_counter() - begun) * 1000)
    return {what: round(statistics.median(times)) for what, times in took.items()}


async def measure(names: list[str], rounds: int, say: Callable[[dict[str, Any]], None]) -> None:
    """Compare and time the servers, one after the other."""
    found = await asyncio.to_thread(programs)
    with pages() as port:
        for one in SERVERS:
            if names and one.name not in names:
                continue
            with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".pegboard-bench-") as folder:
                for row in await compared(one, found[one.name], Path(folder), port):
                    say(row)
                if rounds:
                    times = await started(one, found[one.name], Path(folder), port, rounds)
                    say({"server": one.name, "until its tools are listed": times})


def main(arguments: list[str]) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks reference_servers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(one.name for one in SERVERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often each start is timed, 0 for never")
    parser.add_argument("--json", action="store_true", help="one JSON object on each line")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []

    def say(row: dict[str, Any]) -> None:
        rows.append(row)
        shown = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
        print(shown, flush=True)

    asyncio.run(measure(options.names, options.rounds, say))
    return 0 if all("differ" not in str(row.get("answers")) or "none" in row["confine"] for row in rows) else 1
