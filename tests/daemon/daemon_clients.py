"""Clients of a daemon of a test's own, and that daemon."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

DEADLINE = 90.0
SERVER = '''
"""Says who and where it is; takes its time where asked to, and writes down that it ran."""

import json, os, sys, time

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    match asked["method"]:
        case "initialize":
            about, version = {"name": "where", "version": "1"}, asked["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            properties = {"log": {"type": "string"}, "until": {"type": "string"}}
            schema = {"type": "object", "properties": properties}
            result = {"tools": [{"name": "where", "description": "Says where it is.", "inputSchema": schema}]}
        case "tools/call":
            given = asked["params"].get("arguments") or {}
            if "log" in given:
                with open(given["log"], "a") as file:
                    file.write("ran\\n")
            while "until" in given and not os.path.exists(given["until"]):
                time.sleep(0.01)
            text = json.dumps({"pid": os.getpid(), "folder": os.getcwd(), "args": sys.argv[1:]})
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
'''


def until(holds: Callable[[], Any]) -> Any:
    """Return what something returns, once it holds."""
    limit = time.monotonic() + DEADLINE
    while time.monotonic() < limit:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("it never held")


def alive(pid: int) -> bool:
    """Return whether a process runs: one that no one has waited for does not, once all of its threads have ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except FileNotFoundError:
        return False


@dataclass
class OwnDaemon:
    """The place of a daemon, and the environment of its clients."""

    runtime: Path
    env: dict[str, str]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pegboard", *arguments],
            env=self.env, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def processes(self) -> list[dict[str, Any]]:
        """Return what each daemon that runs here shows, the oldest first."""
        return json.loads(self.command("daemon", "status", "--json").stdout)["processes"]

    def status(self) -> dict[str, Any]:
        """Return what the oldest one shows, nothing where none runs."""
        return next(iter(self.processes()), {})

    def pids(self) -> list[int]:
        """Return the daemons that run here, of every key."""
        folder = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        found: list[int] = []
        for process in (one for one in Path("/proc").iterdir() if one.name.isdigit()):
            with contextlib.suppress(OSError):
                its = (process / "environ").read_bytes().split(b"\0")
                if b"daemon\0run" in (process / "cmdline").read_bytes() and folder in its:
                    found.append(int(process.name))
        return [pid for pid in found if alive(pid)]

    def end(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until(lambda: not self.pids())


@contextmanager
def own_daemon(**more: str) -> Iterator[OwnDaemon]:
    """Yield a place for a daemon, of a short path; what runs there at the end is ended."""
    runtime = Path(tempfile.mkdtemp(prefix="d-"))
    kept = {name: value for name, value in os.environ.items() if name != "PEGBOARD_DAEMON"}
    env = {**kept, "XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": str(runtime / "state"), **more}
    made = OwnDaemon(runtime, env)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(runtime)


@dataclass
class StdioClient:
    """A client that writes lines to `pegboard serve --stdio` and reads what comes."""

    process: subprocess.Popen[bytes]
    notifications: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    number: int = 0

    def send(self, method: str, **params: Any) -> int:
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        return self.number

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request; nothing else may be answered before it."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                assert message["id"] == number, message
                return message
            self.notifications.append(message)
        raise AssertionError(self.end())

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.answer(self.send(method, **params))

    def greet(self, name: str = "tester") -> Self:
        about = {"name": name, "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.write({"method": "notifications/initialized"})
        return self

    def call(self, **arguments: Any) -> dict[str, Any]:
        """Return what the tool of the server says of itself."""
        answer = self.ask("tools/call", name="box__where", arguments=arguments)
        return json.loads(answer["result"]["content"][0]["text"])

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, err.decode()


@contextmanager
def stdio_client(
    daemon: OwnDaemon, config: Path | None, *options: str, folder: Path | None = None, **more: str
) -> Iterator[StdioClient]:
    named = ["--config", str(config)] if config is not None else []
    command = [sys.executable, "-m", "pegboard", "serve", "--stdio", *named, *options]
    env, pipe = {**daemon.env, **more}, subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=folder) as process:
        try:
            yield StdioClient(process)
        finally:
            process.kill()
