"""How far one load, search, surface and call go through the source: functions, files and SQL statements.

Three plugins of five tools in Python, two toolkits, a SQLite store; every verb is measured when it is made for the
fourth time. What an agent's file lists is the same in the library and over stdio. Audit of calls is written in batches
after the answer: these statements, and whatever else follows the answer, stand in a column of their own.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from benchmarks.tracing import Trace, Tracer, traced
from pegboard import Pegboard
from pegboard.board.observability import bill

REPETITION = 4
AFTERWARDS = 0.2
"""How long what follows an answer may take, in seconds: a batch of the audit waits at most 0.05."""
ROOT = Path(__file__).resolve().parent.parent

PLUGINS = ("alpha", "beta", "gamma")
CONFIG = """\
store: sqlite:///pegboard.db
plugins:
  alpha: {python: alpha}
  beta: {python: beta}
  gamma: {python: gamma}
toolkits:
  first: {description: Change texts, tools: [alpha]}
  second: {description: Compare texts, tools: [beta]}
agents:
  assistant:
    dialect: pegboard
    tools: [gamma]
    allowed_toolkits: [first, second]
"""
TOOL = '''
def {plugin}_{verb}(text: str) -> str:
    """Return the {verb} form of a text."""
    return text

'''
VERBS = ("upper", "lower", "title", "short", "long")

Row = dict[str, object]
Traces = dict[str, tuple[Trace, Trace]]
"""For each verb what was traced until its answer, and with all that followed."""


def measure() -> list[Row]:
    found: list[Row] = []
    for way, traces_of in (("library", library), ("stdio", stdio)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_board(folder)
            found += [row(way, verb, *traces) for verb, traces in traces_of(folder).items()]
    return found


def row(way: str, verb: str, answered: Trace, settled: Trace) -> Row:
    return {
        "way": way,
        "verb": verb,
        "function entries": len(answered.entered),
        "files entered": len(answered.files),
        "changes of file": answered.changes,
        "of them in the ranker": answered.changes_within("search/"),
        "SQL statements": len(answered.statements),
        "entries after the answer": len(settled.entered) - len(answered.entered),
        "statements after the answer": len(settled.statements) - len(answered.statements),
    }


def write_board(folder: Path) -> None:
    """Write the configuration and its plugins."""
    (folder / "pegboard.yaml").write_text(CONFIG)
    for plugin in PLUGINS:
        (folder / f"{plugin}.py").write_text("".join(TOOL.format(plugin=plugin, verb=verb) for verb in VERBS))


def library(folder: Path) -> Traces:
    """Return the traces of one session object's verbs."""
    with traced() as tracer:
        return asyncio.run(_library(tracer, folder / "pegboard.yaml"))


async def _library(tracer: Tracer, config: Path) -> Traces:
    found: Traces = {}
    bill.EVERY = 3600.0  # every five seconds it would be written with whichever verb comes first then
    async with Pegboard.open(config) as board:
        session = await board.session(agent="assistant", session_id="path", principal="ada")
        verbs: dict[str, Callable[[], Awaitable[Any]]] = {
            "load": lambda: session.load("first"),
            "search": lambda: session.search("the title of a text"),
            "surface": lambda: session.surface(),
            "call": lambda: session.call("alpha_upper", {"text": "x"}),
        }
        for _ in range(REPETITION):
            for verb, make in verbs.items():
                tracer.begin()
                answer = await make()
                answered = tracer.so_far()
                await asyncio.sleep(AFTERWARDS)
                found[verb] = answered, tracer.end()
                assert getattr(answer, "status", "ok") == "ok", answer
            assert (await session.unload("first")).status == "ok"
            await asyncio.sleep(AFTERWARDS)
    return found


def stdio(folder: Path) -> Traces:
    """Return the traces of a served process's answers to a client of the handshake era."""
    ours, theirs = multiprocessing.Pipe()
    command = [
        sys.executable,
        "-m",
        "benchmarks.traced",
        str(theirs.fileno()),
        "serve",
        "--stdio",
        "--alone",
        "--config",
    ]
    with Popen(
        [*command, str(folder / "pegboard.yaml")], cwd=ROOT, stdin=PIPE, stdout=PIPE, pass_fds=[theirs.fileno()]
    ) as process:
        theirs.close()
        try:
            return _Client(process, ours).measured()
        finally:
            process.kill()


class _Client:
    """A client of the handshake era that asks for one thing at a time."""

    def __init__(self, process: Popen[bytes], control: Connection) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output, self._control = process.stdin, process.stdout, control
        self._number = 0

    def measured(self) -> Traces:
        """Shake hands and return the traces of each verb's last repetition."""
        about = {"name": "path", "version": "1"}
        self._ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self._send({"method": "notifications/initialized"})
        verbs: dict[str, tuple[str, dict[str, object]]] = {
            "load": _call("load_tools", names=["first"]),
            "search": _call("search_tools", queries=["the title of a text"]),
            "surface": ("tools/list", {}),
            "call": _call("alpha_upper", text="x"),
        }
        found: Traces = {}
        for _ in range(REPETITION):
            for verb, (method, params) in verbs.items():
                found[verb] = self._traced(method, params)
            method, params = _call("unload_tools", names=["first"])
            self._traced(method, params)
        return found

    def _traced(self, method: str, params: dict[str, object]) -> tuple[Trace, Trace]:
        self._control.send("begin")
        self._control.recv()
        self._ask(method, **params)
        time.sleep(AFTERWARDS)
        self._control.send("end")
        answered, settled = self._control.recv()
        if answered is None:
            raise RuntimeError("the answer was not written with os.write: benchmarks/traced.py has to look elsewhere")
        return answered, settled

    def _ask(self, method: str, **params: object) -> None:
        """Send a request and read up to its answer."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while (answer := json.loads(self._output.readline())).get("id") != self._number:
            pass
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{method} was answered with {json.dumps(answer)}")

    def _send(self, message: dict[str, object]) -> None:
        self._input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._input.flush()


def _call(name: str, **arguments: object) -> tuple[str, dict[str, object]]:
    return "tools/call", {"name": name, "arguments": arguments}
