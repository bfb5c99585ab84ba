"""A scripted coding agent does twelve tasks in three ways: what it has to run, to read and to write for each.

``python -m benchmarks coding_agent [--json]``. Published servers for files, git, sqlite, pages and memory stand behind
Pegboard. The agent is no model: it takes the shortest path.

- ``list``: a client over stdio that sends the model every definition, as most do.
- ``deferred``: the same client, whose model reads names and searches for definitions, as Claude Code's does.
- ``command``: `pegboard search` and `pegboard call` in a shell, without a client.

A command is a call of a tool by the model: one of MCP, a search of the client, or a line of the shell. The model writes
that call as JSON and reads its answer. A large answer is read whole where nothing cuts it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.own_daemon import PROGRAM, SMALL_SERVER, OwnUser, own_user
from benchmarks.reference_servers import DATES, pages, programs, project_in

TOKEN: Final = "operator-of-the-benchmark"
LARGE: Final = 5_000_000
LAST_ANSWER: Final = "{what was read last}"
_WAITS: Final = "60"
"""How long the agent waits for an approval, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call, and what its answer has to say; ``line`` replaces the call in a shell that does it in a shorter way."""

    tool: str
    arguments: Mapping[str, Any]
    expects: str
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Calls that follow one another; ``need`` is what the agent searches for, empty where it knows the tools."""

    name: str
    need: str
    steps: tuple[Step, ...]
    shell: tuple[Step, ...] | None = None
    """The calls of a shell, where they are fewer."""

    @property
    def tools(self) -> list[str]:
        return list(dict.fromkeys(step.tool for step in self.steps))


@dataclass(slots=True, kw_only=True)
class Effort:
    """What the agent did, in characters."""

    commands: int = 0
    read: int = 0
    written: int = 0

    def add(self, written: str, read: str) -> None:
        self.commands += 1
        self.read += len(read)
        self.written += len(written)


class Way(Protocol):
    """A way to call tools."""

    def start(self) -> str:
        """Return what the model reads before the first task."""
        ...

    async def find(self, task: Task, effort: Effort) -> None:
        """Learn how the tools of a task are called."""
        ...

    async def do(self, step: Step, effort: Effort) -> str:
        """Make a call, and return what the model reads of it."""
        ...


@dataclass(slots=True, kw_only=True)
class ByClient:
    """A client of MCP; ``deferred`` where its model reads names, and definitions once it searches for them."""

    client: Any
    deferred: bool
    listed: dict[str, str] = field(default_factory=dict[str, str])
    found: set[str] = field(default_factory=set[str])

    async def list(self) -> None:
        """Ask for the list."""
        found = (await self.client.list_tools()).tools
        self.listed = {
            tool.name: json.dumps({"name": tool.name, "description": tool.description, "schema": tool.input_schema})
            for tool in found
        }

    def start(self) -> str:
        texts = self.listed if self.deferred else self.listed.values()
        return "\n".join([self.client.instructions or "", *texts])

    async def find(self, task: Task, effort: Effort) -> None:
        wanted = [name for name in task.tools if name in self.listed and name not in self.found]
        if self.deferred and wanted:
            query = {"name": "ToolSearch", "arguments": {"query": f"select:{','.join(wanted)}"}}
            effort.add(json.dumps(query), "\n".join(self.listed[name] for name in wanted))
            self.found |= set(wanted)

    async def do(self, step: Step, effort: Effort) -> str:
        from mcp import MCPError

        try:
            answer = await self.client.call_tool(step.tool, dict(step.arguments))
        except MCPError as error:
            read = str(error)
        else:
            read = "\n".join(getattr(block, "text", "") for block in answer.content)
        effort.add(json.dumps({"name": step.tool, "arguments": step.arguments}), read)
        return read


@dataclass(slots=True, kw_only=True)
class ByCommand:
    """A shell, and an operator who allows what waits."""

    user: OwnUser
    approved: frozenset[str]

    def start(self) -> str:
        from pegboard.config.clients.shell_instructions import instructions

        text = self.user.config.read_text()
        return "\n".join(instructions(text, "cli", file="pegboard.yaml", program="pegboard", config=""))

    async def find(self, task: Task, effort: Effort) -> None:
        if task.need:
            found = await self._run(f"pegboard search {shlex.quote(task.need)} --agent cli", effort)
            missing = [name for name in task.tools if name not in found]
            assert not missing, f"{task.name}: {missing} not in\n{found}"

    async def do(self, step: Step, effort: Effort) -> str:
        words = [f"{name}={_text(value)}" for name, value in step.arguments.items()]
        waits = ["--wait", _WAITS] if step.tool in self.approved else []
        line = step.line or shlex.join(["pegboard", "call", step.tool, *words, *waits, "--agent", "cli"])
        if not waits:
            return await self._called(line, effort)
        read, _ = await asyncio.gather(self._called(line, effort), asyncio.to_thread(self._allow))
        return read

    async def _called(self, line: str, effort: Effort) -> str:
        """Run a call; once more where its tool may destroy something, and has shown first what it takes."""
        read = await self._run(line, effort)
        return await self._run(line, effort) if read.startswith("pegboard: not_loaded") else read

    async def _run(self, line: str, effort: Effort) -> str:
        env = {**self.user.env, "PATH": f"{Path(PROGRAM).parent}:{self.user.env['PATH']}"}
        pipe, joined = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        shell = await asyncio.create_subprocess_shell(
            line, env=env, cwd=self.user.folder, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=joined
        )
        read = (await shell.communicate())[0].decode()
        effort.add(json.dumps({"name": "Bash", "arguments": {"command": line}}), read)
        return read

    def _allow(self) -> None:
        """Allow the call that waits, as an operator elsewhere."""
        env = {**self.user.env, "PEGBOARD_OPERATOR_TOKEN": TOKEN}
        while not (found := json.loads(self.user.run("approvals", "list", "--json", env=env).stdout)):
            time.sleep(0.1)
        allowed = self.user.run("approvals", "allow", found[0]["id"], env=env)
        assert allowed.returncode == 0, allowed.stderr


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Servers and tasks: ``remove`` is a file without which a server no longer starts."""

    servers: Mapping[str, Any]
    tasks: tuple[Task, ...]
    approved: frozenset[str]
    denied: frozenset[str]
    remove: Path | None = None

    def configuration(self) -> Mapping[str, Any]:
        """Return the configuration: one agent has all in its list, the other loads what it calls."""
        servers = {
            name: {**server, "approve": dict.fromkeys(_of(name, self.approved), "always")}
            for name, server in self.servers.items()
        }
        denied = dict.fromkeys(sorted(self.denied), False)
        own = {"permissions": denied, "dialect": "pegboard"}
        return {
            "servers": servers,
            "agents": {"mcp": {**own, "tools": list(servers)}, "cli": {**own, "discoverable": list(servers)}},
            "approvals": {"by": "client"},
            "tokens": {"ada": {"token": TOKEN, "agents": ["mcp", "cli"], "console": ["see", "approve"]}},
        }


def _of(server: str, tools: frozenset[str]) -> list[str]:
    return [tool.partition("__")[2] for tool in sorted(tools) if tool.startswith(f"{server}__")]


async def efforts(way: Way, tasks: Sequence[Task]) -> dict[str, Effort]:
    """Return what each task took, and what was read before the first; an answer has to say what its step expects."""
    found = {"before the first task": Effort(read=len(way.start()))}
    for task in tasks:
        effort = found[task.name] = Effort()
        await way.find(task, effort)
        read = ""
        steps = task.shell if isinstance(way, ByCommand) and task.shell else task.steps
        for step in steps:
            arguments = {name: read if value == LAST_ANSWER else value for name, value in step.arguments.items()}
            read = await way.do(replace(step, arguments=arguments), effort)
            assert step.expects in read, f"{type(way).__name__}, {task.name}: {read[:2000]}"
    return found


@asynccontextmanager
async def opened(kind: str, user: OwnUser, world: World) -> AsyncGenerator[Way]:
    """Yield a way, once every server has listed its tools."""
    listed = await asyncio.to_thread(user.run, "tools", "--agent", "cli", "--json")
    assert listed.returncode == 0, listed.stderr
    if kind == "command":
        _take_away(user, world)
        yield ByCommand(user=user, approved=world.approved)
        return
    import mcp_types as types
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def allow(*_: object) -> Any:
        return types.ElicitResult(action="accept", content={})

    words = ["serve", "--stdio", "--agent", "mcp"]
    server = StdioServerParameters(command=PROGRAM, args=words, env=user.env, cwd=user.folder)
    async with Client(stdio_client(server), mode="legacy", elicitation_callback=allow) as client:
        way = ByClient(client=client, deferred=kind == "deferred")
        await way.list()
        _take_away(user, world)
        yield way


def _take_away(user: OwnUser, world: World) -> None:
    """Take the program of a server away that has listed its tools, and end it."""
    if world.remove is not None:
        world.remove.unlink()
        for pid in user.processes(str(world.remove).encode()):
            os.kill(pid, signal.SIGKILL)


async def played(kind: str, make: Callable[[Path], World]) -> dict[str, Effort]:
    """Return what each task took in a way, by a user of its own."""
    made: list[World] = []

    def content(folder: Path) -> Mapping[str, Any]:
        made.append(make(folder))
        return made[0].configuration()

    with own_user(content) as user:
        async with opened(kind, user, made[0]) as way:
            return await efforts(way, made[0].tasks)


def published(folder: Path, programs: Mapping[str, tuple[str, ...]], port: int) -> World:
    """Return the published servers in a project, and the twelve tasks."""
    project = project_in(folder / "work")
    notes, repository, page = str(project / "notes"), str(project / "repository"), f"http://127.0.0.1:{port}/notes"
    filler = "nothing to see here\n" * (LARGE // 20)
    Path(notes, "large.txt").write_text(f"{filler}the needle is here\n")
    gone = folder / "gone.py"
    shutil.copy(SMALL_SERVER, gone)
    servers = {name: {"command": programs[name][0], "args": [*programs[name][1:]]} for name in PUBLISHED}
    servers["filesystem"]["args"] += [notes]
    servers["git"]["args"] += ["--repository", repository]
    servers["git"]["env"] = DATES
    servers["fetch"]["args"] += ["--ignore-robots-txt", "--allow-private-ips"]
    servers["sqlite"]["args"] += ["--db-path", str(project / "data" / "notes.db")]
    servers["memory"]["env"] = {"MEMORY_FILE_PATH": str(project / "memory" / "graph.jsonl")}
    servers["gone"] = {"command": sys.executable, "args": [str(gone)], "description": "Says words aloud."}
    return World(
        servers=servers,
        tasks=tuple(_tasks(notes, repository, page)),
        approved=frozenset({"git__git_commit"}),
        denied=frozenset({"git__git_reset"}),
        remove=gone,
    )


PUBLISHED: Final = ("filesystem", "git", "sqlite", "fetch", "memory")


def _tasks(notes: str, repository: str, page: str) -> Iterator[Task]:
    """Yield the twelve tasks."""
    rows = "INSERT INTO notes (text) VALUES " + ", ".join(f"('buy {word}')" for word in ("milk", "oil", "a lamp"))
    create = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)"
    ada = [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
    long = "SELECT a.text, b.text, c.id, d.id, e.id FROM notes a, notes b, notes c, notes d, notes e"
    listing = Step(tool="filesystem__list_directory", arguments={"path": notes}, expects="large.txt")
    yield Task(
        name="find a file in a folder, and read it",
        need="list a folder; read a text file",
        steps=(listing, _read(f"{notes}/a.txt", "hello")),
    )
    yield Task(
        name="write a file",
        need="write a file",
        steps=(_call("filesystem__write_file", "rote", path=f"{notes}/b.txt", content="bread\nbutter\n"),),
    )
    yield Task(
        name="what changed (git)", need="git status", steps=(_call("git__git_status", "b.txt", repo_path=repository),)
    )
    yield Task(
        name="make a table, fill it, ask it (sqlite)",
        need="create a table; insert rows into a table; select rows",
        steps=(
            _call("sqlite__create_table", "created", query=create),
            _call("sqlite__write_query", "3", query=rows),
            _call("sqlite__read_query", "lamp", query="SELECT text FROM notes"),
        ),
    )
    yield Task(
        name="fetch a page of a local site", need="fetch a web page", steps=(_call("fetch__fetch", "milk", url=page),)
    )
    yield Task(
        name="remember a fact, and ask for it",
        need="create entities in the graph; search nodes",
        steps=(
            _call("memory__create_entities", "Ada", entities=ada),
            _call("memory__search_nodes", "tea", query="tea"),
        ),
    )
    yield Task(
        name="commit, which a person has to approve",
        need="stage files; commit changes",
        steps=(
            _call("git__git_add", "staged", repo_path=repository, files=["b.txt"]),
            _call("git__git_commit", "committed successfully", repo_path=repository, message="Add b"),
        ),
    )
    yield Task(
        name="a call that is denied", need="", steps=(_call("git__git_reset", "not found", repo_path=repository),)
    )
    yield Task(
        name="a wrong argument, then the right one",
        need="",
        steps=(
            _call("git__git_log", "repo_path", path=repository),
            _call("git__git_log", "Commit history", repo_path=repository, max_count=1),
        ),
    )
    yield Task(name="a server that is down", need="", steps=(_call("gone__say", "not available", word="hi"),))
    found = f"pegboard call filesystem__read_text_file path={notes}/large.txt --out - --agent cli | grep needle"
    yield Task(
        name="find a line in a result of 5 MB",
        need="",
        steps=(_read(f"{notes}/large.txt", "the needle is here"),),
        shell=(Step(tool="", arguments={}, expects="the needle is here", line=found),),
    )
    kept = shlex.join(["pegboard", "call", "sqlite__read_query", f"query={long}", "--agent", "cli"])
    kept += " > rows.txt && tail -c 40 rows.txt"
    yield Task(
        name="keep the 243 rows of a query in a file",
        need="",
        steps=(
            _call("sqlite__read_query", "lamp", query=long),
            _call("filesystem__write_file", "rote", path=f"{notes}/rows.txt", content=LAST_ANSWER),
        ),
        shell=(Step(tool="", arguments={}, expects="id", line=kept),),
    )


def _call(tool: str, expects: str, /, **arguments: Any) -> Step:
    return Step(tool=tool, arguments=arguments, expects=expects)


def _read(path: str, expects: str) -> Step:
    return _call("filesystem__read_text_file", expects, path=path)


def table(found: Mapping[str, Mapping[str, Effort]]) -> str:
    """Return commands, characters read and written of each task in each way."""
    lines = [f"| commands / read / written | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for name in next(iter(found.values())):
        cells = [f"{one.commands} / {one.read:,} / {one.written:,}" for one in (way[name] for way in found.values())]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = [
        " / ".join(f"{sum(getattr(one, what) for one in way.values()):,}" for what in ("commands", "read", "written"))
        for way in found.values()
    ]
    return "\n".join([*lines, f"| together | {' | '.join(sums)} |"])


WAYS: Final = ("list", "deferred", "command")


def main(arguments: Sequence[str]) -> int:
    """Let the agent do its tasks, and print what they took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks coding_agent", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    given = parser.parse_args(arguments)
    installed = programs()
    with pages() as port:
        found = {kind: asyncio.run(played(kind, lambda folder: published(folder, installed, port))) for kind in WAYS}
    if given.json:
        print(json.dumps({kind: {name: asdict(one) for name, one in way.items()} for kind, way in found.items()}))
    else:
        print(table(found))
    return 0
