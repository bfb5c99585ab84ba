"""What each half of the fast path saves over HTTP: a client, the gateway and a server, all over HTTP, in turns.

One gateway has both halves; in the others the half towards clients, that towards servers, or both are left to the SDK.
They take turns by short bursts. Where others use the machine, read the ratios and the processor time.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fast_path import ECHO, MODERN, message

ROUNDS, MANY, FEW, IN_FLIGHT = 20, 320, 40, 32
SERVER = Path(__file__).resolve().parent.parent / "tests" / "servers" / "fast_server.py"
CLIENTS_BY_THE_SDK = """
import pegboard.gateway.fast.http_middleware as fast
fast.FastCallMiddleware = lambda app, gateway, identified: app
"""
SERVERS_BY_THE_SDK = """
from pegboard.sources.mcp.transports.http import HttpTransport
made = HttpTransport.__init__
HttpTransport.__init__ = lambda self, spec, live, use_fast_path: made(self, spec, live, use_fast_path=False)
"""
SERVE = "\nimport sys\nfrom pegboard.cli import main\nsys.exit(main())\n"
WAYS = {
    "both halves": "",
    "clients by the SDK": CLIENTS_BY_THE_SDK,
    "servers by the SDK": SERVERS_BY_THE_SDK,
    "both by the SDK": CLIENTS_BY_THE_SDK + SERVERS_BY_THE_SDK,
}
LIST, CALL = message("tools/list"), message("tools/call", name="echo", arguments={"text": "hello"})


@dataclass
class Figures:
    """All that was measured of one way: calls a second, milliseconds of one call, processor time of the gateway."""

    rates: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


class Connection:
    """A connection that has one request at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent = 0.0
        self._read = b""

    def send(self, request: bytes) -> None:
        self.sent = time.perf_counter()
        self.socket.sendall(request)

    def body(self) -> bytes | None:
        """Read once; return the body of the answer where it is whole."""
        self._read += self.socket.recv(1 << 16)
        head, _, body = self._read.partition(b"\r\n\r\n")
        size = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if not size or len(body) < int(size):
            return None
        self._read = body[int(size) :]
        return body[: int(size)]

    def ask(self, request: bytes) -> bytes:
        self.send(request)
        while (body := self.body()) is None:
            pass
        return body


class Site:
    """A server or gateway that listens, and how its tool is called."""

    def __init__(self, process: subprocess.Popen[str], port: int, call: bytes, tool: str) -> None:
        self.process = process
        self.port = port
        self._request = self.request("tools/call", call, f"mcp-name: {tool}\r\n")

    def request(self, method: str, body: bytes, more: str = "") -> bytes:
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\naccept: application/json, text/event-stream\r\n"
            f"content-type: application/json\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{more}"
        )
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    def burst(self, calls: int, in_flight: int) -> tuple[float, float, float]:
        """Return calls a second, the median milliseconds of one, and microseconds of processor time for each."""
        connections = [Connection(self.port) for _ in range(in_flight)]
        with selectors.DefaultSelector() as selector:
            for one in connections:
                one.ask(self._request)  # a new connection costs more
                selector.register(one.socket, selectors.EVENT_READ, one)
            began, before = time.perf_counter(), self._processor()
            times: list[float] = []
            for one in connections:
                one.send(self._request)
            left = calls - in_flight
            while len(times) < calls:
                for key, _ in selector.select():
                    answer = key.data.body()
                    if answer is None:
                        continue
                    assert b"hello" in answer, answer
                    times.append((time.perf_counter() - key.data.sent) * 1000)
                    if left > 0:
                        left -= 1
                        key.data.send(self._request)
            taken, used = time.perf_counter() - began, self._processor() - before
        for one in connections:
            one.socket.close()
        return calls / taken, statistics.median(times), used / calls / 1000

    def _processor(self) -> int:
        """Return the nanoseconds of processor time that all threads of the process have used."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


def gateway(folder: Path, way: str, upstream: int) -> Site:
    """Start a gateway of one way and wait until it lists the tool of the server."""
    folder.mkdir()
    server = {"url": f"http://127.0.0.1:{upstream}/mcp", "type": "http"}
    written = {"store": "sqlite:///state.db", "servers": {"up": server}, "agents": {"default": {"tools": ["up"]}}}
    (folder / "pegboard.yaml").write_text(json.dumps(written))
    env = {**os.environ, "XDG_CACHE_HOME": str(folder), "PEGBOARD_FAST_PATH": "1"}
    command = [sys.executable, "-c", WAYS[way] + SERVE, "serve", "--port=0", "--config", "pegboard.yaml"]
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port = int(process.stderr.readline().rpartition(":")[2].partition("/")[0])
    site = Site(process, port, ECHO, "up__echo")
    while b'"up__echo"' not in Connection(port).ask(site.request("tools/list", LIST)):
        time.sleep(0.1)
    site.burst(2 * IN_FLIGHT, IN_FLIGHT)
    return site


def measure() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        process = subprocess.Popen([sys.executable, str(SERVER), "http"], stdout=subprocess.PIPE, text=True)
        stack.callback(process.kill)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        sites = {"without a gateway": Site(process, port, CALL, "echo")}
        for number, way in enumerate(WAYS):
            sites[way] = gateway(Path(folder, str(number)), way, port)
            stack.callback(sites[way].process.kill)
        found = {name: Figures() for name in sites}
        order = list(sites)
        for number in range(ROUNDS):
            order.append(order.pop(0))
            for name in order if number % 2 else reversed(order):
                rate, _, used = sites[name].burst(MANY, IN_FLIGHT)
                found[name].rates.append(rate)
                found[name].processor.append(used)
                found[name].times.append(sites[name].burst(FEW, 1)[1])
    return [row(name, found) for name in found]


def row(name: str, found: dict[str, Figures]) -> dict[str, object]:
    mine, whole, direct = found[name], found["both halves"], found["without a gateway"]
    low, middle, high = statistics.quantiles((a / b for a, b in zip(mine.rates, whole.rates, strict=True)), n=4)
    added = statistics.median(a - b for a, b in zip(mine.times, direct.times, strict=True))
    return {
        "way": name,
        "calls/s, 32 in flight": round(statistics.median(mine.rates)),
        "of both halves": round(middle, 2),
        "quartiles": f"{low:.2f} to {high:.2f}",
        "CPU µs/call": round(statistics.median(mine.processor)),
        "p50 ms, 1 in flight": round(statistics.median(mine.times), 3),
        "added p50 ms": round(added, 3),
    }
