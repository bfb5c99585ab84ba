"""What a client costs that lists everything when it connects, against one that lists the tools alone.

Fifteen servers, over stdio, all they list being kept from an earlier start. Starts alternate. Bars: four lists are
answered within 1.2 times of what tools alone take, in at most 70 MiB, and no server is started. Last, how long the
first call takes of a client that asks for it two seconds after its lists: the MCP SDK is imported meanwhile.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.first_answers import HELLO, READY, line, serve

STARTS, PAUSE = 9, 2.0
NAMES = tuple(f"s{number}" for number in range(15))
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
WAYS = {"tools": tuple(LISTS)[:1], "tools, prompts, resources, templates": tuple(LISTS)}
LENGTHS = {"prompts": 5 * len(NAMES), "resources": 20 * len(NAMES), "resourceTemplates": len(NAMES)}
"""How much of each kind all servers list."""
SERVER = """
import json, sys

name, log = sys.argv[1:]
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
lists = {
    "tools": [{"name": f"do_{n}", "description": f"Do the {n}. thing.", "inputSchema": schema} for n in range(10)],
    "prompts": [{"name": f"say_{n}", "description": "Say something.", "arguments": [{"name": "x"}]} for n in range(5)],
    "resources": [{"uri": f"note://{name}/{n}", "name": f"note {n}", "mimeType": "text/plain"} for n in range(20)],
    "resourceTemplates": [{"uriTemplate": f"page://{name}/{{n}}", "name": "page"}],
}
with open(log, "a") as file:
    file.write(name + "\\n")
for text in sys.stdin:
    message = json.loads(text)
    method = message.get("method", "")
    kind = {"resources/templates/list": "resourceTemplates"}.get(method, method.removesuffix("/list"))
    if "id" not in message:
        continue
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
            "serverInfo": {"name": name, "version": "1"},
        }
    elif kind in lists:
        result = {kind: lists[kind]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    else:
        result = None
    answer = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


class Client:
    """A client of the handshake era that has just started a gateway."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _answer(self, number: int) -> Any:
        assert self._process.stdout is not None
        while (message := json.loads(self._process.stdout.readline())).get("id") != number:
            pass
        return message["result"]

    def begin(self) -> None:
        self._write(HELLO)
        self._answer(0)
        self._write(READY)

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._write(line(id=self._number, method=method, params=params))
        return self._answer(self._number)

    def lengths(self) -> dict[str, int]:
        """List everything; return how much there is."""
        return {key: len(self.ask(method)[key]) for method, key in LISTS.items()}

    def peak(self) -> float:
        """Return how much memory the gateway had at most, in MiB; 0 where the system does not say."""
        status = Path(f"/proc/{self._process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


@contextmanager
def started(folder: str) -> Iterator[Client]:
    env = os.environ | {name: str(Path(folder, name)) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME")}
    with serve(folder, env, "--stdio", "--alone", "--config", "pegboard.json") as process:
        client = Client(process)
        try:
            client.begin()
            yield client
        finally:
            process.terminate()
            process.communicate()


def prepare(folder: str) -> None:
    """Write the configuration, and start until all lists are kept."""
    Path(folder, "server.py").write_text(SERVER, encoding="utf-8")
    servers = {name: {"command": sys.executable, "args": ["server.py", name, "log"]} for name in NAMES}
    document = {"store": "sqlite:///state.db", "servers": servers, "agents": {"default": {"tools": list(NAMES)}}}
    Path(folder, "pegboard.json").write_text(json.dumps(document), encoding="utf-8")
    for _ in range(2):
        with started(folder) as client:
            while not client.lengths().items() >= LENGTHS.items():
                time.sleep(0.5)


def start(folder: str, methods: tuple[str, ...]) -> dict[str, float]:
    log = Path(folder, "log")
    log.unlink(missing_ok=True)
    began = time.perf_counter()
    with started(folder) as client:
        for method in methods:
            client.ask(method)
        answered, peak = time.perf_counter() - began, client.peak()
        servers = len(log.read_text().splitlines()) if log.exists() else 0
        time.sleep(PAUSE)
        asked = time.perf_counter()
        client.ask("tools/call", name="s3__do_1", arguments={"text": "x"})
        called = time.perf_counter() - asked
    return {"lists ms": answered * 1000, "peak MiB": peak, "servers": servers, "first call ms": called * 1000}


def measure() -> list[dict[str, object]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        for _ in range(STARTS):
            for name, methods in WAYS.items():
                found[name].append(start(folder, methods))
    alone = statistics.median(one["lists ms"] for one in next(iter(found.values())))
    return [
        {
            "listed at connect": name,
            "answered, ms": round(statistics.median(one["lists ms"] for one in starts)),
            "of tools alone": round(statistics.median(one["lists ms"] for one in starts) / alone, 2),
            "peak, MiB": round(max(one["peak MiB"] for one in starts), 1),
            "servers started": int(max(one["servers"] for one in starts)),
            "first call, ms": round(statistics.median(one["first call ms"] for one in starts)),
        }
        for name, starts in found.items()
    ]
