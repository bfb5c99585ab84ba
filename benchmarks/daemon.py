"""Several clients through one daemon: processes, memory, the first list, and a call beside one without the daemon.

``python -m benchmarks daemon --clients 5 --servers 13``

Times are taken in turns, with and without the daemon. Memory is what processes have to themselves and their part of
what they share (PSS), of the gateway's processes alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Self

from benchmarks.own_daemon import DAEMON, PROGRAM, PROXY, SMALL_SERVER, OwnUser, own_user


class LineClient:
    """A client that writes and reads lines; ``first_list`` is how long it waited for its first list, in seconds."""

    def __init__(self, config: Path, env: dict[str, str], *options: str) -> None:
        command = [PROGRAM, "serve", "--stdio", "--config", str(config)]
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
        self.ask("tools/call", name=f"s{server}__say", arguments={"word": "hi"})
        return time.perf_counter() - began

    def rate(self, calls: int, at_once: int) -> float:
        """Return how many calls a second are answered with so many in flight."""
        began, sent = time.perf_counter(), at_once
        for _ in range(at_once):
            self.send("tools/call", name="s0__say", arguments={"word": "hi"})
        for _ in range(calls):
            self.read()
            if sent < calls:
                sent += 1
                self.send("tools/call", name="s0__say", arguments={"word": "hi"})
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


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks daemon", description=__doc__)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--servers", type=int, default=13)
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args(arguments)

    def configuration(_: Path) -> Mapping[str, Any]:
        server = {"command": sys.executable, "args": [str(SMALL_SERVER)]}
        # Equal servers are one process: a variable makes them differ.
        servers = {f"s{number}": {**server, "env": {"NUMBER": str(number)}} for number in range(given.servers)}
        return {"servers": servers, "agents": {"ada": {"tools": list(servers), "unloaded_call": "run"}}}

    with own_user(configuration) as user:
        measure(user, given)
    return 0


def measure(user: OwnUser, given: argparse.Namespace) -> None:
    """Print each measurement."""
    config, env = user.config, user.env
    clients = [LineClient(config, env) for _ in range(given.clients)]
    for client in clients:
        for number in range(given.servers):
            client.call(number)
    ours = user.processes(DAEMON) + user.processes(PROXY)
    print(f"{given.clients} clients, {given.servers} servers: {len(user.processes(b'/small.py'))} server processes")
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
    thin = [PROGRAM, "serve", "--stdio", "--config", str(config)]
    spent = {"bare": [processor(bare, env) for _ in range(5)], "proxy": [processor(thin, env) for _ in range(5)]}
    print(f"processor, ms: {', '.join(f'{kind} {median(times):.0f}' for kind, times in spent.items())}")


def per_kind(times: dict[str, list[float]], digits: int = 0) -> str:
    """Return the median of each kind, in milliseconds."""
    return ", ".join(f"{kind} {1000 * median(found):.{digits}f}" for kind, found in times.items())
