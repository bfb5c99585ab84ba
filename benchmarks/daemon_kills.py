"""Kill the daemon, a proxy or a server again and again while clients call, and count what is lost or runs twice.

python -m benchmarks.daemon_kills --times 200
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

SERVER: Final = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        about, version = {"name": "log", "version": "1"}, asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        result = {"tools": [{"name": "write", "description": "Writes a word.", "inputSchema": schema}]}
    elif asked["method"] == "tools/call":
        with open(sys.argv[1], "a") as file:
            file.write(asked["params"]["arguments"]["word"] + "\\n")
        time.sleep(0.002)
        result = {"content": [{"type": "text", "text": "written"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
LIMIT: Final = 120.0
"""How long an answer may take before it counts as lost, in seconds."""


class SteadyClient(threading.Thread):
    """A client that makes one call after the other, and starts again where it is killed."""

    def __init__(self, number: int, config: Path, env: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.number, self.config, self.env = number, config, env
        self.ending = threading.Event()
        self.answered: set[str] = set()
        self.failed: set[str] = set()
        self.cut: set[str] = set()
        self.longest = 0.0
        self.lost = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._words = 0

    def run(self) -> None:
        """Call until it is to end."""
        while not self.ending.is_set():
            command = [sys.executable, "-m", "pegboard", "serve", "--stdio", "--config", str(self.config)]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=self.env)
            with suppress(OSError, EOFError):
                self._converse(self.process)
            self.process.kill()
            self.process.wait()

    def _converse(self, process: subprocess.Popen[bytes]) -> None:
        about = {"name": f"client{self.number}", "version": "1"}
        self._ask(process, 0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        number = 0
        while not self.ending.is_set():
            number += 1
            self._words += 1
            word = f"{self.number}-{self._words}"
            try:
                began = time.monotonic()
                answer = self._ask(process, number, "tools/call", name="log__write", arguments={"word": word})
            except (OSError, EOFError):
                self.cut.add(word)
                raise
            self.longest = max(self.longest, time.monotonic() - began)
            fine = not answer.get("result", {"isError": True}).get("isError")
            (self.answered if fine else self.failed).add(word)

    def _ask(self, process: subprocess.Popen[bytes], number: int, method: str, **params: Any) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        timer = threading.Timer(LIMIT, self._give_up, [process])
        timer.start()
        try:
            while said := process.stdout.readline():
                message = json.loads(said)
                if message.get("id") == number and "method" not in message:
                    return message
        finally:
            timer.cancel()
        raise EOFError

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        self.lost += 1
        process.kill()


def processes(folder: Path, part: bytes) -> list[int]:
    """Return the processes with this runtime folder that run a command with a part."""
    mark, found = f"XDG_RUNTIME_DIR={folder}".encode(), list[int]()
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            runs = one.name.isdigit() and part in (one / "cmdline").read_bytes()
            if runs and mark in (one / "environ").read_bytes():
                found.append(int(one.name))
    return found


def main() -> int:
    """Kill, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many, however often it was killed")
    given = parser.parse_args()
    chosen = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="k-") as name:
        folder = Path(name)
        (folder / "log.py").write_text(SERVER)
        server = {"command": sys.executable, "args": [str(folder / "log.py"), str(folder / "log")]}
        content = {"servers": {"log": server}, "agents": {"ada": {"tools": ["log"], "unloaded_call": "run"}}}
        (folder / "pegboard.yaml").write_text(json.dumps(content))
        env = {k: v for k, v in os.environ.items() if k != "PEGBOARD_DAEMON"}
        env |= {"XDG_RUNTIME_DIR": name, "XDG_STATE_HOME": f"{name}/state", "PEGBOARD_DAEMON_IDLE": "5"}
        clients = [SteadyClient(number, folder / "pegboard.yaml", env) for number in range(given.clients)]
        for client in clients:
            client.start()
        kinds = {"daemon": b"daemon\0run", "proxy": b"serve\0--stdio", "server": b"/log.py"}
        killed, began = dict.fromkeys(kinds, 0), time.monotonic()
        while sum(killed.values()) < given.times and time.monotonic() - began < given.seconds:
            before = sum(len(client.answered) for client in clients)
            limit = time.monotonic() + LIMIT
            while sum(len(client.answered) for client in clients) == before and time.monotonic() < limit:
                time.sleep(0.01)
            time.sleep(chosen.random() * 0.05)
            kind = chosen.choice(list(kinds))
            if found := processes(folder, kinds[kind]):
                with suppress(ProcessLookupError):
                    os.kill(chosen.choice(found), signal.SIGKILL)
                    killed[kind] += 1
        for client in clients:
            client.ending.set()
        for client in clients:
            client.join(LIMIT)
        limit = time.monotonic() + 60
        while any(processes(folder, part) for part in kinds.values()) and time.monotonic() < limit:
            time.sleep(0.1)
        report(folder, clients, killed, {kind: len(processes(folder, part)) for kind, part in kinds.items()})
    return 0


def report(folder: Path, clients: list[SteadyClient], killed: dict[str, int], left: dict[str, int]) -> None:
    """Print what became of the calls."""
    ran = (folder / "log").read_text().splitlines()
    answered = {word for client in clients for word in client.answered}
    print(f"killed: {killed}")
    print(f"answered {len(answered)}, with an error {sum(len(c.failed) for c in clients)}, ", end="")
    print(f"of killed proxies {sum(len(c.cut) for c in clients)}")
    print(f"answered and did not run: {len(answered - set(ran))}; ran twice: {len(ran) - len(set(ran))}")
    print(f"without an answer within {LIMIT:.0f} s: {sum(c.lost for c in clients)}", end="")
    print(f", longest call: {max(c.longest for c in clients):.2f} s; processes left: {left}")


if __name__ == "__main__":
    raise SystemExit(main())
