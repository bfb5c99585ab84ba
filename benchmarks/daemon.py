"""Several clients through one daemon: processes, memory, the first list, and a call beside one without the daemon.

    python -m benchmarks.daemon --clients 5 --servers 13

Times are taken in turns, with and without the daemon. Memory is what processes have to themselves and their part of
what they share (PSS), of the gateway's processes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from benchmarks.daemon_kills import processes

SERVER: Final = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        about, version = {"name": "small", "version": "1"}, asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "echo", "description": "Says it.", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": "said"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\\n")
    sys.stdout.flush()
"""


class LineClient:
    """A client that writes and reads lines; ``first_list`` is how long it waited for its first list, in seconds."""

    def __init__(self, config: Path, env: dict[str, str], *options: str) -> None:
        command = [str(Path(sys.executable).with_name("pegboard")), "serve", "--stdio", "--config", str(config)]
        began, pipe = time.perf_counter(), subprocess.PIPE
        self.process = subprocess.Popen([*command, *options], stdin=pipe, stdout=pipe, env=env)
        self._number = 0
        about = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.write({"method": "notifications/initialized"})
        self.ask("tools/list")
        self.first_list = time.perf_counter() - began

    def write(self, message: dict[str, Any]) -> None:
        """Write a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, **params: Any) -> int:
        """Send a request."""
        self._number += 1
        self.write({"id": self._number, "method": method, "params": params})
        return self._number

    def read(self) -> int:
        """Return the number of the next answer."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                assert "error" not in message, message
                return message["id"]
        raise EOFError

    def ask(self, method: str, **params: Any) -> None:
        """Send a request, and wait for its answer."""
        number = self.send(method, **params)
        while self.read() != number:
            pass

    def call(self, server: int = 0) -> float:
        """Call a tool of a server, and return how long that took, in seconds."""
        began = time.perf_counter()
        self.ask("tools/call", name=f"s{server}__echo", arguments={})
        return time.perf_counter() - began

    def rate(self, calls: int, at_once: int) -> float:
        """Return how many calls a second are answered with so many in flight."""
        began, sent = time.perf_counter(), at_once
        for _ in range(at_once):
            self.send("tools/call", name="s0__echo", arguments={})
        for _ in range(calls):
            self.read()
            if sent < calls:
                sent += 1
                self.send("tools/call", name="s0__echo", arguments={})
        return calls / (time.perf_counter() - began)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


def shared_memory(pid: int) -> float:
    """Return the memory of a process, with its part of what it shares, in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split()[0]) / 1024


def processor(command: list[str], env: dict[str, str]) -> float:
    """Return the processor time of a command, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--servers", type=int, default=13)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        folder = Path(name)
        (folder / "small.py").write_text(SERVER)
        server = {"command": sys.executable, "args": [str(folder / "small.py")]}
        servers = {f"s{number}": server for number in range(given.servers)}
        agents = {"ada": {"tools": list(servers), "unloaded_call": "run"}}
        config = folder / "pegboard.yaml"
        config.write_text(json.dumps({"servers": servers, "agents": agents}))
        env = {k: v for k, v in os.environ.items() if k != "PEGBOARD_DAEMON"}
        env |= {"XDG_RUNTIME_DIR": name, "XDG_STATE_HOME": f"{name}/state", "XDG_CACHE_HOME": f"{name}/cache"}
        try:
            measure(folder, config, env, given)
        finally:
            for pid in processes(folder, b"daemon\0run"):
                os.kill(pid, signal.SIGTERM)
            while processes(folder, b"daemon\0run") or processes(folder, b"/small.py"):
                time.sleep(0.05)
    return 0


def measure(folder: Path, config: Path, env: dict[str, str], given: argparse.Namespace) -> None:
    """Print each measurement."""
    clients = [LineClient(config, env) for _ in range(given.clients)]
    for client in clients:
        for number in range(given.servers):
            client.call(number)
    ours = processes(folder, b"daemon\0run") + processes(folder, b"serve\0--stdio")
    print(f"{given.clients} clients, {given.servers} servers: {len(processes(folder, b'/small.py'))} server processes")
    print(f"gateway processes: {len(ours)}, {sum(map(shared_memory, ours)):.0f} MiB together (PSS)")
    for client in clients:
        client.__exit__()
    lists: dict[str, list[float]] = {"through": [], "alone": []}
    python: list[float] = []
    for _ in range(given.rounds):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        python.append(time.perf_counter() - began)
        for kind, options in ("through", ()), ("alone", ("--alone",)):
            with LineClient(config, env, *options) as client:
                lists[kind].append(client.first_list)
    print(f"first list, ms: {per_kind(lists)}; python -c pass {1000 * median(python):.0f}")
    calls: dict[str, list[float]] = {"through": [], "alone": []}
    rates: dict[str, list[float]] = {"through": [], "alone": []}
    with LineClient(config, env) as through, LineClient(config, env, "--alone") as alone:
        both = {"through": through, "alone": alone}
        for client in both.values():
            client.rate(500, 32)
        for _ in range(given.rounds):
            for kind, client in both.items():
                calls[kind] += [client.call() for _ in range(200)]
                rates[kind].append(client.rate(1000, 32))
    print(f"a call, ms: {per_kind(calls, digits=3)}")
    print(f"calls a second, 32 at once: {', '.join(f'{kind} {median(rate):.0f}' for kind, rate in rates.items())}")
    bare = [sys.executable, "-c", "import json, socket"]
    thin = [str(Path(sys.executable).with_name("pegboard")), "serve", "--stdio", "--config", str(config)]
    spent = {"bare": [processor(bare, env) for _ in range(5)], "proxy": [processor(thin, env) for _ in range(5)]}
    print(f"processor, ms: {', '.join(f'{kind} {median(times):.0f}' for kind, times in spent.items())}")


def per_kind(times: dict[str, list[float]], digits: int = 0) -> str:
    """Return the median of each kind, in milliseconds."""
    return ", ".join(f"{kind} {1000 * median(found):.{digits}f}" for kind, found in times.items())


if __name__ == "__main__":
    raise SystemExit(main())
